"""Events from outside that have to be signed: what takes the address, and what does not."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from a2a_serverless import SecretNotRead, Task, TaskState
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless.testing.harness import CLIENT
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless import TaskContext

SECRET: Final = "whsec_of the account"


class Order:
    """An agent that waits for a payment whose request has to be signed, and its harness."""

    def __init__(self, signed_with: str | None = "stripe:payments") -> None:
        self.urls: list[str] = []
        self.errors: list[str] = []
        self.signed_with = signed_with
        self.harness = AgentTestHarness(agent_of(self.work))
        self.reads = 0
        self.harness.engine = replace(self.harness.engine, read_secret=self.read_secret)

    def read_secret(self, name: str) -> str:
        self.reads += 1
        if name == "payments":
            return SECRET
        raise SecretNotRead(name)

    async def work(self, task: TaskContext) -> str:
        try:
            paid = await task.callback("paid", signed_with=self.signed_with)
        except Exception as error:
            self.errors.append(str(error))
            raise
        self.urls.append(paid.url)
        return str((await paid.received()).json())

    def begin(self) -> Task:
        task = self.harness.begin("a lamp")
        assert isinstance(task, Task)
        self.harness.settle(60_000)
        return task

    def send(self, body: str, *, secret: str = SECRET, age_s: int = 0) -> int:
        at = self.harness.now // 1000 - age_s
        signature = hmac.new(secret.encode(), f"{at}.{body}".encode(), hashlib.sha256).hexdigest()
        return self.harness.send_event(self.urls[0], body, {"Stripe-Signature": f"t={at},v1={signature}"})


def test_only_a_signed_request_takes_the_address() -> None:
    order = Order()
    task = order.begin()
    refused = [
        order.harness.send_event(order.urls[0], '"forged"'),
        order.send('"forged"', secret="guessed"),
        order.send('"old"', age_s=301),
    ]
    runs = len(order.harness.runs)
    order.harness.settle(60_000)
    assert (refused, len(order.harness.runs)) == ([401] * 3, runs), "it wakes nothing"
    assert [order.send('"paid"'), order.send('"paid"', age_s=2), order.send('"again"')] == [200, 200, 409]
    assert order.harness.send_event(order.urls[0], '"paid"') == 401, "also afterwards"
    order.harness.settle()
    assert order.harness.reply(task.id).said == "paid"
    assert order.send('"paid"') == 404


def test_the_secret_is_read_once_and_is_stored_sealed_only() -> None:
    order = Order()
    task = order.begin()
    order.send('"paid"')
    order.harness.settle()
    assert (order.harness.reply(task.id).said, len(set(order.urls)), order.reads) == ("paid", 1, 1)
    assert len(order.urls) > 1, "a second run came there too"
    assert SECRET not in str(order.harness.table.read_steps(CLIENT.key(task.id)))


def test_refused_requests_are_counted_so_that_a_flood_of_them_is_refused_before_its_bodies_are_read() -> None:
    order = Order()
    task = order.begin()
    forged = [order.send('"forged"', secret="guessed") for _ in range(12)]
    assert forged == [401] * 10 + [429] * 2
    order.harness.now += 60_000
    assert [order.send('"forged"', secret="guessed"), order.send('"paid"')] == [401, 200]
    order.harness.settle()
    assert order.harness.reply(task.id).said == "paid"


def test_the_right_request_is_not_counted_before_the_address_is_taken() -> None:
    order = Order()
    order.begin()
    assert [order.send('"forged"', secret="guessed") for _ in range(9)] == [401] * 9
    assert order.send('"paid"') == 200


@pytest.mark.parametrize("signed_with", ["paypal:payments", "payments", ""])
def test_an_unknown_scheme_fails_when_the_agent_asks_for_it(signed_with: str) -> None:
    order = Order(signed_with)
    assert order.harness.send("a lamp").state is TaskState.FAILED
    assert "Schemes: github, standard-webhooks, stripe" in order.errors[0]


@pytest.mark.parametrize("signed_with", ["stripe:absent", "standard-webhooks:payments"])
def test_a_secret_that_is_absent_or_of_another_form_opens_no_address(signed_with: str) -> None:
    order = Order(signed_with)
    reply = order.harness.send("a lamp")
    assert (reply.state, order.urls) == (TaskState.FAILED, [])
    assert SECRET not in f"{reply.said} {order.errors}"


@pytest.mark.parametrize(("before", "after"), [(None, "stripe:payments"), ("stripe:payments", None)])
def test_an_address_stays_as_it_was_made(before: str | None, after: str | None) -> None:
    order = Order(before)
    task = order.begin()
    order.signed_with = after
    order.send('"paid"')
    order.harness.settle()
    assert order.harness.reply(task.id).state is TaskState.FAILED
    (error,) = order.errors
    assert error.startswith("The callback 'paid' was made with another signed_with. Stored: ")
