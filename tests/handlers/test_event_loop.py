"""A local server answers each request in a thread: one that waits does not hold others up."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Final

import pytest

from a2a_serverless.domain import cursors
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.http.threads import in_threads
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.v1 import Message, Part, Role
from tests.echo import Writer
from tests.edge import scope_of
from tests.handlers.requests import BINDINGS, Names
from tests.handlers.test_operations import CURRENT, Place
from tests.handlers.test_waiting import waiting
from tests.services.test_callbacks import Waiting
from tests.world import ME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import Message as Sent

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports.agents import ExpectedCallback, IncomingNotification
    from a2a_serverless.ports.system import Clock
    from tests.edge import Edge

DEADLINE_S: Final = 60
REPLY: Final = Message(message_id="reply", role=Role.AGENT, parts=(Part(text="hello"),))


class Gate:
    """Everything that may wait: it waits until ``go``, and refuses to do so in an event loop."""

    agents = frozenset({"echo"})

    def __init__(self) -> None:
        self.entered, self.go = Event(), Event()

    def wait(self) -> None:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        self.entered.set()
        assert self.go.wait(DEADLINE_S)

    def answer_directly(self, *_: object) -> Message:
        self.wait()
        return REPLY

    def check(self, _: object) -> None:
        self.wait()

    def verify(self, incoming: IncomingNotification, call: ExpectedCallback) -> str:
        del incoming, call
        self.wait()
        return "challenge"


class GatedClock:
    """A clock whose sleep waits at the gate."""

    def __init__(self, clock: Clock, gate: Gate) -> None:
        self._clock, self._gate = clock, gate
        self.now = clock.now

    def sleep(self, seconds: float) -> None:
        self._gate.wait()
        self._clock.sleep(seconds)


def wait_for_agent(operation: Operation) -> Callable[[Place, Gate, str], HttpRequest]:
    def make(place: Place, gate: Gate, binding: str) -> HttpRequest:
        agents = {"echo": replace(Writer().agent, runs="inline")}
        service = place.edge.service._replace(inline_runner=lambda _: gate)  # type: ignore[arg-type, return-value]
        place.edge = replace(place.edge, agents=agents, service=service)
        return BINDINGS[binding][operation](Names())

    return make


def wait_for_task(place: Place, gate: Gate, binding: str) -> HttpRequest:
    service = place.edge.service
    place.edge = replace(place.edge, service=service._replace(clock=GatedClock(service.clock, gate)))
    return waiting(binding)


def look_name_up(place: Place, gate: Gate, binding: str) -> HttpRequest:
    resolve_by(gate, place)
    return BINDINGS[binding][Operation.PUSH_CREATE](Names(task=place.send("first")))


def look_name_of_send_up(place: Place, gate: Gate, binding: str) -> HttpRequest:
    resolve_by(gate, place)
    request = BINDINGS[binding][Operation.SEND](Names())
    body = json.loads(request.body)
    config = "taskPushNotificationConfig" if binding.startswith("1.0") else "pushNotificationConfig"
    body.get("params", body)["configuration"][config] = {"url": "https://hooks.example.com/a2a"}
    return request._replace(body=json.dumps(body).encode())


def resolve_by(gate: Gate, place: Place) -> None:
    service = place.edge.service
    webhooks = replace(service.webhooks(), resolver=gate.check)
    place.edge = replace(place.edge, service=service._replace(webhooks=lambda: webhooks))


def wait_for_attempt(place: Place, gate: Gate, binding: str) -> HttpRequest:
    names = Names(task=place.send("first"))
    place.ask(binding, Operation.PUSH_CREATE, names)
    lease_cursor(place, ME.key(str(names.task)))
    service = place.edge.service
    webhooks = replace(service.webhooks(), clock=GatedClock(service.clock, gate))
    place.edge = replace(place.edge, service=service._replace(webhooks=lambda: webhooks))
    return BINDINGS[binding][Operation.PUSH_DELETE](names)


def lease_cursor(place: Place, key: TaskKey) -> None:
    (cursor,) = place.world.table.list_cursors(key)
    assert place.world.table.move_cursor(key, cursor, cursors.claim_lease(cursor, "other", now=place.world.now))


WAITS: Final[Mapping[str, Callable[[Place, Gate, str], HttpRequest]]] = {
    "an inline agent": wait_for_agent(Operation.SEND),
    "an inline agent before its stream": wait_for_agent(Operation.STREAM),
    "a task": wait_for_task,
    "the address of a name": look_name_up,
    "the address of a name in a send": look_name_of_send_up,
    "an attempt of a webhook": wait_for_attempt,
}


async def ask(edge: Edge, request: HttpRequest) -> bytes:
    """The body of the answer."""
    unread: list[Sent] = [{"type": "http.request", "body": request.body, "more_body": False}]
    body = bytearray()

    async def receive() -> Sent:
        return unread.pop() if unread else await asyncio.Future()

    async def send(message: Sent) -> None:
        body.extend(message.get("body", b""))

    await edge.app(scope_of(request), receive, send)
    return bytes(body)


async def ask_meanwhile(edge: Edge, slow: HttpRequest, quick: HttpRequest, gate: Gate) -> tuple[bytes, bytes]:
    """The answers to both, the second of which has come while the first request waited."""
    asked = asyncio.create_task(ask(edge, slow))
    entered = asyncio.create_task(asyncio.to_thread(gate.entered.wait, DEADLINE_S))
    await asyncio.wait([asked, entered], return_when=asyncio.FIRST_COMPLETED)
    try:
        assert not asked.done(), f"it does not wait: {asked.result()!r}"
        answer = await ask(edge, quick)
        assert not asked.done()
    finally:
        gate.entered.set()
        gate.go.set()
    return await asked, answer


def of_local_server(edge: Edge) -> Edge:
    """As ``local.deployment`` has it."""
    return replace(edge, run=in_threads())


@pytest.mark.parametrize("binding", CURRENT)
@pytest.mark.parametrize("wait", WAITS)
def test_the_server_answers_other_requests_while_a_request_waits_for(wait: str, binding: str) -> None:
    place, gate = Place(), Gate()
    task = place.send()
    slow, quick = WAITS[wait](place, gate, binding), BINDINGS[binding][Operation.GET](Names(task=task))
    answer, got = asyncio.run(ask_meanwhile(of_local_server(place.edge), slow, quick, gate))
    assert task.encode() in got
    assert b'"error"' not in answer
    assert b'"violations"' not in answer


def test_the_server_answers_requests_while_a_callback_waits_for_the_keys_of_its_sender() -> None:
    place, gate, caller = Place(), Gate(), Waiting()
    service = caller.world.service
    path = "/callbacks/" + caller.callback.url.rpartition("/")[2]
    headers = {"x-a2a-notification-token": caller.callback.token or "", "content-type": "application/json"}
    edge = replace(of_local_server(place.edge), service=service, verifier=gate)
    quick = BINDINGS["1.0 JSON-RPC"][Operation.LIST](Names())
    answer, got = asyncio.run(ask_meanwhile(edge, HttpRequest("POST", path, headers, body=b"{}"), quick, gate))
    assert (json.loads(answer), b'"tasks"' in got) == ({"challenge": "challenge"}, True)
