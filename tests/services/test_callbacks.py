"""News of calls: who may wake a task, and who is answered."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.errors import TaskNotFound, TooManyRequests
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent, update_of
from a2a_serverless.ports.agents import ExpectedCallback, IncomingNotification, InvalidCallback
from a2a_serverless.protocol.notification_bodies import notification
from a2a_serverless.protocol.v1 import Artifact, Part, Task, TaskState, TaskStatus
from a2a_serverless.services.callbacks import handle_callback
from a2a_serverless.testing.memory import MemoryCallbackVerifier, MemoryStores, MemoryTable
from tests.echo import agent_of
from tests.engine.test_calls import Endless
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1 import Message, TaskPushNotificationConfig
    from a2a_serverless.store.items import Item


class Waiting:
    """A task that waits for an agent, the address that it gave, and its wake counter."""

    def __init__(self, work: object = None, peer: Endless | None = None, **options: Any) -> None:
        async def ask(task: TaskContext) -> None:
            await task.call("write it", "echo", "hello")

        self.world, self.peer = World([agent_of(work or ask, "parent")], **options), peer or Endless()
        self.world.engine = replace(self.world.engine, registry=replace(self.world.registry, remote_agents=self.peer))
        self.task = self.world.send("hello", agent="parent", push=False)
        self.world.wait(30_000)
        assert self.peer.callback
        self.callback = self.peer.callback

    @property
    def woken(self) -> int:
        snapshot = self.world.table.read_head(ME.key(self.task.id))
        assert snapshot
        wake: int = snapshot.head.wake
        return wake

    def tell(self, token: str | None = None, verifier: object = None, body: bytes = b"{}", url: str = "") -> str | None:
        incoming = IncomingNotification({"x-a2a-notification-token": token or self.callback.token or ""}, body)
        address = (url or self.callback.url).rpartition("/")[2]
        return handle_callback(self.world.service, verifier or MemoryCallbackVerifier(), address, incoming)  # type: ignore[arg-type]


class Nothing:
    """Believes nothing."""

    def verify(self, incoming: IncomingNotification, call: ExpectedCallback) -> str | None:
        del incoming
        assert call.address == "https://far.example.com/echo"
        raise InvalidCallback("wrong-signature")


def test_news_with_its_token_wakes_the_task() -> None:
    waiting = Waiting()
    before = waiting.woken
    assert waiting.tell() is None
    assert waiting.woken == before + 1


def test_the_address_says_nothing_of_task_owner_or_tenant() -> None:
    waiting = Waiting()
    key = ME.key(waiting.task.id)
    assert not [name for name in (key.tenant, key.owner, key.task, "write") if f"/{name}" in waiting.callback.url]


def test_the_token_may_be_in_the_header_of_the_sdk_in_go() -> None:
    waiting = Waiting()
    headers = {"a2a-notification-token": waiting.callback.token or ""}
    handle_callback(
        waiting.world.service,
        MemoryCallbackVerifier(),
        waiting.callback.url.rpartition("/")[2],
        IncomingNotification(headers, b"{}"),
    )


@pytest.mark.parametrize(("token", "url"), [("wrong", ""), (None, "https://api.example.com/callbacks/other")])
def test_another_token_or_address_wakes_nobody(token: str | None, url: str) -> None:
    waiting = Waiting()
    before = waiting.woken
    with pytest.raises(TaskNotFound):
        waiting.tell(token, url=url)
    assert waiting.woken == before


@pytest.mark.parametrize(("token", "url"), [("wrong", ""), (None, "https://api.example.com/callbacks/other")])
def test_a_callback_with_a_wrong_address_or_token_is_not_read(token: str | None, url: str) -> None:
    waiting, read = Waiting(), list[bytes]()

    def tell(token: str, url: str) -> None:
        incoming = IncomingNotification({"x-a2a-notification-token": token}, b"{}")
        handle_callback(waiting.world.service, MemoryCallbackVerifier(), url.rpartition("/")[2], incoming, read.append)

    with pytest.raises(TaskNotFound):
        tell(token or waiting.callback.token or "", url or waiting.callback.url)
    assert not read
    tell(waiting.callback.token or "", waiting.callback.url)
    assert read == [b"{}"]


def test_an_unproven_callback_wakes_no_task_and_its_reason_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    waiting = Waiting()
    before = waiting.woken
    with pytest.raises(TaskNotFound):
        waiting.tell(verifier=Nothing())
    assert waiting.woken == before
    (line,) = caplog.records
    assert (line.getMessage(), line.__dict__["reason"]) == ("callback refused", "wrong-signature")
    assert (line.__dict__["task"], line.__dict__["call"]) == (waiting.task.id, "write it")


class Reads(MemoryTable):
    """Notes the sort keys of the items that are read."""

    def __init__(self, now: Callable[[], int], on_put: Callable[[Item], None] = lambda _: None) -> None:
        super().__init__(now, on_put)
        self.read = list[str]()

    def get(self, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        self.read.append(sk)
        return super().get(pk, sk, consistent=consistent)

    def query_range(self, pk: str, first: str, last: str, **how: Any) -> Iterator[Item]:
        for item in super().query_range(pk, first, last, **how):
            self.read.append(item["sk"]["S"])
            yield item


class ReadStores(MemoryStores):
    make_table = Reads


@pytest.mark.parametrize("refused", ["token", "proof"])
def test_a_refused_request_reads_its_own_call_and_no_other_record_of_the_task(refused: str) -> None:
    async def many(task: TaskContext) -> None:
        for number in range(100):
            await task.step(f"step {number}", dict)
        await task.call("write it", "echo", "hello")

    waiting = Waiting(many, table=ReadStores)
    waiting.world.table.items.read = read = list[str]()
    with pytest.raises(TaskNotFound):
        waiting.tell(token="wrong" if refused == "token" else None, verifier=Nothing())
    assert len(read) <= 3, read
    waiting.tell()
    assert not any("step" in name for name in read)


def test_requests_that_are_refused_are_counted_at_their_address_and_keep_no_genuine_request_away() -> None:
    waiting = Waiting()
    before = waiting.woken
    for _ in range(10):
        with pytest.raises(TaskNotFound):
            waiting.tell("wrong")
    wrong: dict[str, Any]
    for wrong in ({"token": "wrong"}, {"verifier": Nothing()}):
        with pytest.raises(TooManyRequests) as refused:
            waiting.tell(**wrong)
        assert refused.value.retry_after_s == 60
    assert waiting.tell() is None
    assert waiting.woken == before + 1
    waiting.world.now += 60_000
    with pytest.raises(TaskNotFound):
        waiting.tell("wrong")


def test_the_question_whether_the_address_is_ours_is_answered_and_wakes_nobody() -> None:
    waiting = Waiting()
    before = waiting.woken
    assert waiting.tell(body=b'{"challenge": "c"}') == "c"
    assert waiting.woken == before


def test_news_of_a_task_that_has_ended_is_fine() -> None:
    waiting = Waiting()
    waiting.peer.state = TaskState.COMPLETED
    waiting.world.settle()
    assert waiting.world.get(waiting.task.id, "parent").status.state is TaskState.COMPLETED
    assert waiting.tell() is None


def event(**item: Any) -> Any:
    return update_of(StatusEvent(2, 0, "by", **item), "far", "context")


CHUNK = update_of(ArtifactEvent(3, 0, "by", Artifact(artifact_id="a", parts=(Part(text="one"),))), "far", "context")
SUBMITTED, WORKING, COMPLETED, ASKS = (
    Task(id="far", context_id="context", status=TaskStatus(state=state, timestamp=0)).as_of(2)
    for state in (TaskState.SUBMITTED, TaskState.WORKING, TaskState.COMPLETED, TaskState.INPUT_REQUIRED)
)


def body(item: Any, version: Any = "1.0") -> bytes:
    return notification(version, item).content


GOES_ON = {
    "snapshot": body(SUBMITTED),
    "working": body(event(state=TaskState.WORKING)),
    "chunk": body(CHUNK),
    "0.3": body(WORKING, "0.3"),
    "0.3 chunk": b'{"kind": "artifact-update", "taskId": "far", "contextId": "c",'
    b' "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "one"}]}}',
    "0.3 working": b'{"kind": "status-update", "taskId": "far", "contextId": "c", "status": {"state": "working"}}',
}
WAITED_FOR = {
    "ended snapshot": body(COMPLETED),
    "ended": body(event(state=TaskState.CANCELED)),
    "question": body(event(state=TaskState.AUTH_REQUIRED)),
    "0.3 ended": body(COMPLETED, "0.3"),
    "0.3 question": body(ASKS, "0.3"),
    "message": b'{"message": {"messageId": "m"}}',
    "another state": b'{"task": {"id": "far", "status": {"state": "TASK_STATE_DREAMING"}}}',
    "other members": b'{"statusUpdate": {"taskId": 7, "status": "working"}}',
    "no object": b"[1]",
    "no JSON": b"{",
}


class AnyProof:
    """Believes everything."""

    def verify(self, incoming: IncomingNotification, call: ExpectedCallback) -> str | None:
        del incoming, call
        return None


@pytest.mark.parametrize("said", GOES_ON)
def test_a_task_is_not_woken_for_an_agent_that_goes_on(said: str) -> None:
    waiting = Waiting()
    before = waiting.woken
    assert waiting.tell(body=GOES_ON[said], verifier=AnyProof()) is None
    assert waiting.woken == before


@pytest.mark.parametrize("said", WAITED_FOR)
def test_an_end_a_question_or_an_unreadable_body_wakes_the_task(said: str) -> None:
    waiting = Waiting()
    before = waiting.woken
    assert waiting.tell(body=WAITED_FOR[said], verifier=AnyProof()) is None
    assert waiting.woken == before + 1


class EndsOnce(Endless):
    """Says once, when ``ends`` is set, that its task has ended."""

    ends = False

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        self.state, self.ends = TaskState.COMPLETED if self.ends else TaskState.WORKING, False
        return super().get(caller, agent, task_id)


def test_news_of_a_call_that_is_over_wakes_nobody() -> None:
    async def two(task: TaskContext) -> None:
        await task.call("first", "echo", "hello")
        await task.call("second", "echo", "hello")

    peer = EndsOnce()
    waiting = Waiting(two, peer)
    first = waiting.callback
    peer.ends = True
    waiting.tell()
    waiting.world.wait(10_000)
    assert peer.callback != first, "the second call waits"
    before = waiting.woken
    waiting.tell(body=body(COMPLETED))
    assert waiting.woken == before


def test_the_first_webhook_of_a_call_names_the_task_that_has_to_end_with_ours() -> None:
    """The answer to SendMessage was lost each time, so the call has failed; the agent works all the same."""

    async def gives_up(task: TaskContext) -> None:
        with suppress(AgentCallFailed):
            await task.call("write it", "echo", "hello")
        await task.ask("And now?")

    waiting = Waiting(gives_up, LostAnswers())
    assert waiting.world.get(waiting.task.id, "parent").status.state is TaskState.INPUT_REQUIRED
    waiting.tell(body=body(SUBMITTED))
    waiting.world.cancel(waiting.task.id, "parent")
    waiting.world.settle()
    assert waiting.peer.state is TaskState.CANCELED


class LostAnswers(Endless):
    """Takes messages, and never gets its answer through."""

    def send(self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig) -> Task:
        super().send(caller, agent, message, callback)
        raise AgentCallFailed("The agent could not be reached.")


@pytest.mark.parametrize(("said", "after"), [("chunk", TaskState.CANCELED), ("ended", TaskState.WORKING)])
def test_an_agent_that_says_it_works_on_for_a_task_that_has_ended_is_canceled(said: str, after: TaskState) -> None:
    waiting = Waiting()
    waiting.world.cancel(waiting.task.id, "parent")
    waiting.world.settle()
    waiting.peer.state = TaskState.WORKING  # it took the cancel and went on
    waiting.tell(body=(GOES_ON | WAITED_FOR)[said])
    waiting.world.settle()
    assert waiting.peer.state is after
