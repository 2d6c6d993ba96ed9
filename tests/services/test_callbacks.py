"""News of calls: who may wake a task, and who is answered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.adapters.memory import MemoryProofs
from a2a_serverless.domain.errors import TaskNotFound
from a2a_serverless.domain.model import TaskState
from a2a_serverless.ports import ExpectedNews, News, Unproven
from a2a_serverless.services.callbacks import take_news
from tests.echo import agent_of
from tests.engine.test_calls import Endless
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import AgentTask


class Waiting:
    """A task that waits for an agent, the address that it gave, and its wake counter."""

    def __init__(self) -> None:
        async def ask(task: AgentTask) -> None:
            await task.call("write it", "echo", "hello")

        self.world, self.peer = World([agent_of(ask, "parent")]), Endless()
        self.world.engine = replace(self.world.engine, directory=replace(self.world.directory, peers=self.peer))
        self.task = self.world.send("hello", agent="parent", push=False)
        self.world.wait(30_000)
        assert self.peer.callback
        self.callback = self.peer.callback

    @property
    def woken(self) -> int:
        look = self.world.table.look(ME.key(self.task.task_id))
        assert look
        wake: int = look.head.wake
        return wake

    def tell(self, token: str | None = None, proofs: object = None, body: bytes = b"{}", url: str = "") -> str | None:
        news = News({"x-a2a-notification-token": token or self.callback.token or ""}, body)
        address = (url or self.callback.url).rpartition("/")[2]
        return take_news(self.world.desk, proofs or MemoryProofs(), address, news)  # type: ignore[arg-type]


class Nothing:
    """Believes nothing."""

    def check(self, news: News, call: ExpectedNews) -> str | None:
        del news
        assert call.address == "https://far.example.com/echo"
        raise Unproven("wrong-signature")


def test_news_with_its_token_wakes_the_task() -> None:
    waiting = Waiting()
    before = waiting.woken
    assert waiting.tell() is None
    assert waiting.woken == before + 1


def test_the_address_says_nothing_of_task_owner_or_tenant() -> None:
    waiting = Waiting()
    key = ME.key(waiting.task.task_id)
    assert not [name for name in (key.tenant, key.owner, key.task, "write") if f"/{name}" in waiting.callback.url]


@pytest.mark.parametrize(("token", "url"), [("wrong", ""), (None, "https://api.example.com/callbacks/other")])
def test_another_token_or_address_wakes_nobody(token: str | None, url: str) -> None:
    waiting = Waiting()
    before = waiting.woken
    with pytest.raises(TaskNotFound):
        waiting.tell(token, url=url)
    assert waiting.woken == before


def test_what_is_not_proven_wakes_nobody_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    waiting = Waiting()
    before = waiting.woken
    with pytest.raises(TaskNotFound):
        waiting.tell(proofs=Nothing())
    assert waiting.woken == before
    assert "refused: wrong-signature" in caplog.text


def test_the_question_whether_the_address_is_ours_is_answered_and_wakes_nobody() -> None:
    waiting = Waiting()
    before = waiting.woken
    assert waiting.tell(body=b'{"challenge": "c"}') == "c"
    assert waiting.woken == before


def test_news_of_a_task_that_has_ended_is_fine() -> None:
    waiting = Waiting()
    waiting.peer.state = TaskState.COMPLETED
    waiting.world.settle()
    assert waiting.world.get(waiting.task.task_id, "parent").status.state is TaskState.COMPLETED
    assert waiting.tell() is None
