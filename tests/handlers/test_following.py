"""Streams as clients read them, in world time: in order, resumed anywhere, side by side, alive, to an end."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import pytest

from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.decisions import ask, report_status, start_run
from a2a_serverless.domain.states import INTERRUPTED
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.v1 import Message, Part, Role, SendMessageRequest, TaskState
from a2a_serverless.services.operation_runner import StreamLimits, open_stream
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.streams import StreamItem
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from a2a_serverless.testing.simulated_loop import SimulatedLoop
from tests.contract.tasks import chunk
from tests.echo import agent_of
from tests.edge import Edge
from tests.handlers.requests import BINDINGS, Names
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from a2a_serverless.domain.head import CurrentHead
    from a2a_serverless.domain.model import Principal, TaskKey
    from a2a_serverless.domain.task_context import TaskContext

WHOLE: Final = sorted(set(BINDINGS) - {"legacy"})
MINUTE_MS: Final = 60_000
DONE: Final = TaskState.COMPLETED
Plan: TypeAlias = tuple[int, TaskState | None]


@dataclass
class Heard:
    """What a client has read: frames, with the moment of each (ms)."""

    frames: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def beats(self) -> list[int]:
        """When there were signs of life."""
        return [at for at, frame in self.frames if frame.startswith(b":")]

    @property
    def told(self) -> list[int]:
        """When there were events."""
        return [at for at, frame in self.frames if frame.startswith(b"id:")]

    @property
    def numbers(self) -> list[int]:
        """The ids of the events."""
        return [int(frame.split(b"\n")[0].removeprefix(b"id: ")) for _, frame in self.frames if frame[:3] == b"id:"]

    @property
    def data(self) -> list[Any]:
        """The documents of the events, without the JSON-RPC envelope."""
        lines = [frame.split(b"data: ")[1] for _, frame in self.frames if not frame.startswith(b":")]
        documents = [json.loads(line) for line in lines]
        return [document.get("result", document) for document in documents]


class Mine(AllowAnonymous):
    """Everybody is me."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        del headers
        return Caller(ME)

    def enter_tenant(self, principal: Principal, tenant: str) -> Principal:
        del tenant
        return principal


class Scene:
    """A deployment whose agent does what a test plans, and clients that read streams meanwhile."""

    def __init__(self, stream_ms: int = 10 * MINUTE_MS) -> None:
        self.world = World([agent_of(rests)])
        self.world.busy = True  # there is no worker but ``plan``
        self.stream_ms = stream_ms

    def made(self, *plans: Plan) -> str:
        """A new task, and what becomes of it."""
        return self.plan(self.world.send(push=False).id, *plans)

    def plan(self, task: str, *plans: Plan) -> str:
        """After so many ms the task gets a chunk (None) or that status."""
        for ms, state in plans:
            self.world.plan(ms, partial(self._change, ME.key(task), state))
        return task

    def sent(self, binding: str, *plans: Plan, **fields: Any) -> tuple[str, AsyncIterator[bytes]]:
        """A message that is streamed: its task, and the stream."""
        stream = self.opened(BINDINGS[binding][Operation.STREAM](Names())._replace(**fields))
        (entry,) = self.world.table.list_page(ME, None, None, 0, 10)[0]
        return self.plan(entry.task, *plans), stream

    def numbers(self, task: str) -> list[int]:
        """All that has happened."""
        return [event.n for event in self.world.events(task)]

    def _change(self, key: TaskKey, state: TaskState | None) -> None:
        snapshot: CurrentHead = self.world.table.read_head(key)
        now, by = self.world.now, self.world.ids.new()
        if state is None:
            event = chunk(snapshot.last + 1)._replace(append_id=by, at=now)
            assert self.world.table.append_chunk(snapshot.head, event)
        elif state is TaskState.WORKING:
            assert self.world.table.append(start_run(snapshot, now=now, by=by))
        else:
            said = Message(
                message_id=by,
                role=Role.AGENT,
                parts=(Part(text="?"),),
                context_id=snapshot.head.context_id,
                task_id=key.task,
            )
            head = snapshot.head
            if state in INTERRUPTED:
                change = ask(snapshot, head.fence, state, said, head.wake, now=now, by=by)
            else:
                change = report_status(snapshot, head.fence, state, said, now=now, by=by)
            assert self.world.table.append(change)

    def edge(self) -> Edge:
        """One more instance: nothing is shared with the others but the table."""
        service, world = self.world.service, self.world
        return Edge(service, world.engine.agents, Mine(), MemoryCallbackVerifier(), 60, stream_ms=self.stream_ms)

    def subscribe(self, binding: str, task: str, after: int | None = None) -> AsyncIterator[bytes]:
        """Subscribes at an instance of its own, behind event ``after``."""
        request = BINDINGS[binding][Operation.SUBSCRIBE](Names(task=task))
        seen = {} if after is None else {"last-event-id": str(after)}
        return self.opened(request._replace(headers={**request.headers, **seen}))

    def opened(self, request: Any) -> AsyncIterator[bytes]:
        answer = self.edge().answer(request)
        assert answer.stream is not None, answer.body
        return answer.stream

    def read(self, *streams: AsyncIterator[bytes], leave_after: dict[int, int] | None = None) -> list[Heard]:
        """Reads streams side by side to their ends; the one that ``leave_after`` numbers goes after so many frames."""
        heard, leaving = [Heard() for _ in streams], leave_after or {}

        async def client(number: int, stream: Any) -> None:
            async for frame in stream:
                heard[number].frames.append((self.world.now, frame))
                if len(heard[number].frames) == leaving.get(number):
                    await stream.aclose()
                    return

        async def clients() -> None:
            await asyncio.gather(*(client(number, stream) for number, stream in enumerate(streams)))

        loop = SimulatedLoop(lambda: self.world.now, self.world.wait)
        try:
            loop.run_until_complete(clients())
        finally:
            loop.close()
        return heard


async def rests(_: TaskContext) -> None:
    """Never runs here."""


WORK: Final = ((900, TaskState.WORKING), (1_300, None), (1_400, None), (9_000, None))
TO_THE_END: Final = (*WORK, (9_100, DONE))
TO_A_QUESTION: Final = (*WORK, (9_100, TaskState.INPUT_REQUIRED))


@pytest.mark.parametrize("binding", WHOLE)
def test_a_stream_begins_with_the_task_and_tells_every_event_under_its_number(binding: str) -> None:
    scene = Scene()
    task, stream = scene.sent(binding, *TO_THE_END)
    (heard,) = scene.read(stream)
    assert heard.numbers == scene.numbers(task) == [1, 2, 3, 4, 5, 6]
    first = heard.data[0]
    assert first.get("kind") == "task" or "task" in first


@pytest.mark.parametrize("binding", WHOLE)
def test_a_reader_that_resumes_at_another_instance_gets_exactly_the_other_events(binding: str) -> None:
    scene = Scene()
    task = scene.made(*TO_THE_END)
    (whole,) = scene.read(scene.subscribe(binding, task))
    for after in range(1, whole.numbers[-1]):
        (rest,) = scene.read(scene.subscribe(binding, task, after))
        assert rest.numbers == whole.numbers[after:]
        assert rest.data == whole.data[after:]


@pytest.mark.parametrize("binding", WHOLE)
def test_a_reader_that_subscribes_again_after_the_end_is_told_of_the_end(binding: str) -> None:
    scene = Scene()
    task = scene.made(*TO_THE_END)
    (whole,) = scene.read(scene.subscribe(binding, task))
    request = BINDINGS[binding][Operation.SUBSCRIBE](Names(task=task))
    seen = {"last-event-id": str(whole.numbers[-1])}
    began, answer = scene.world.now, scene.edge().answer(request._replace(headers={**request.headers, **seen}))
    frames = scene.read(answer.stream)[0].frames if answer.stream else [(began, answer.body)]
    assert [at for at, body in frames if b"The task has ended" in body] == [began]


@pytest.mark.parametrize("binding", WHOLE)
def test_a_message_that_is_streamed_again_by_who_has_seen_its_end_is_answered_at_once(binding: str) -> None:
    scene = Scene()
    _, stream = scene.sent(binding, *TO_THE_END)
    (whole,) = scene.read(stream)
    began = scene.world.now
    request = BINDINGS[binding][Operation.STREAM](Names())
    seen = {"last-event-id": str(whole.numbers[-1])}
    scene.read(scene.opened(request._replace(headers={**request.headers, **seen})))
    assert scene.world.now - began < 1_000


def test_a_stream_that_breaks_off_at_any_event_and_is_resumed_tells_what_an_unbroken_one_tells() -> None:
    for frames in range(1, 6):
        scene = Scene()
        task = scene.made(*TO_THE_END)
        (first,) = scene.read(scene.subscribe("1.0 REST", task), leave_after={0: frames})
        (rest,) = scene.read(scene.subscribe("1.0 REST", task, first.numbers[-1]))
        assert first.numbers + rest.numbers == scene.numbers(task)


@pytest.mark.parametrize("binding", ["1.0 REST", "0.3 REST"])
def test_a_subscription_by_get_tells_what_one_by_post_tells(binding: str) -> None:
    scene = Scene()
    task = scene.made(*TO_THE_END)
    post = BINDINGS[binding][Operation.SUBSCRIBE](Names(task=task))
    one, other = scene.read(scene.opened(post), scene.opened(post._replace(verb="GET", body=b"")))
    assert one.frames == other.frames
    assert one.numbers == scene.numbers(task)


def test_an_early_stream_that_is_asked_for_again_begins_with_the_task_whatever_its_client_has_seen() -> None:
    scene = Scene()
    task, stream = scene.sent("legacy", *TO_THE_END)
    scene.read(stream, leave_after={0: 2})
    again = BINDINGS["legacy"][Operation.STREAM](Names())
    (heard,) = scene.read(scene.opened(again._replace(headers={**again.headers, "last-event-id": "2"})))
    assert heard.data[0]["task"]["id"] == task
    assert heard.data[-1]["task"]["status"]["state"] == "completed"


@pytest.mark.parametrize("binding", sorted(BINDINGS))
def test_a_stream_in_which_something_breaks_says_so_in_its_last_event_and_says_no_more(binding: str) -> None:
    scene = Scene()
    scene.world.service = scene.world.service._replace(log=cast("Any", Breaking(scene.world, scene.world.now + 5_000)))
    _, stream = scene.sent(binding, *WORK)
    (heard,) = scene.read(stream)
    *told, (_, last) = heard.frames
    assert [frame for _, frame in told if frame.startswith(b"event:")] == []
    assert heard.numbers == [1, 2, 3, 4]
    assert last.startswith(b"event: error\n")
    assert [word for word in (b"Traceback", b"ConnectionError", b"table-1", b"a2a_serverless") if word in last] == []


def test_several_streams_of_a_task_tell_the_same_in_the_same_order_and_closing_one_changes_nothing() -> None:
    scene = Scene()
    task = scene.made(*TO_THE_END)
    streams = [scene.subscribe("1.0 REST", task) for _ in range(4)]
    one, left, two, three = scene.read(*streams, leave_after={1: 2})
    assert [frame for _, frame in one.frames] == [frame for _, frame in two.frames]
    assert one.data == two.data == three.data
    assert left.data == one.data[:2]
    assert one.numbers == scene.numbers(task)


def test_a_stream_in_which_nothing_happens_shows_a_sign_of_life_every_fifteen_seconds() -> None:
    scene = Scene()
    began = scene.world.now
    (heard,) = scene.read(scene.subscribe("1.0 REST", scene.made((80_000, TaskState.WORKING), (81_000, DONE))))
    moments = [began, *heard.beats]
    gaps = [after - before for before, after in pairwise(moments)]
    assert len(gaps) == 5
    assert all(15_000 <= gap <= 15_500 for gap in gaps)
    assert heard.numbers == [1, 2, 3]


def test_a_stream_ends_by_itself_before_the_platform_ends_it_and_can_be_resumed() -> None:
    scene = Scene(stream_ms=20_000)
    began = scene.world.now
    task = scene.made((5_000, TaskState.WORKING), (30_000, DONE))
    (cut,) = scene.read(scene.subscribe("1.0 REST", task))
    assert scene.world.now - began <= 20_000 + 500
    assert [sorted(one) for one in cut.data] == [["task"], ["statusUpdate"]], "an end is no error"
    (rest,) = scene.read(scene.subscribe("1.0 REST", task, cut.numbers[-1]))
    assert cut.numbers + rest.numbers == scene.numbers(task)


def test_the_time_that_the_platform_leaves_a_request_bounds_its_stream() -> None:
    scene = Scene()
    began = scene.world.now
    _, stream = scene.sent("1.0 REST", time_left_ms=30_000)
    scene.read(stream)
    assert 20_000 < scene.world.now - began < 30_000


@pytest.mark.parametrize("binding", WHOLE)
def test_a_send_stream_ends_at_a_question_because_the_turn_is_the_clients(binding: str) -> None:
    scene = Scene()
    began = scene.world.now
    task, stream = scene.sent(binding, *TO_A_QUESTION)
    (heard,) = scene.read(stream)
    assert scene.world.now - began < 10_000
    assert heard.numbers == scene.numbers(task)
    assert scene.world.table.read_head(ME.key(task)).head.state is TaskState.INPUT_REQUIRED


def test_a_subscription_of_1_0_goes_on_over_a_question_and_its_answer_to_the_end_of_the_task() -> None:
    scene = Scene()
    task = scene.made(*TO_A_QUESTION)
    scene.world.plan(12_000, lambda: scene.world.send("red", push=False, task_id=task))
    scene.plan(task, (13_000, TaskState.WORKING), (14_000, DONE))
    (heard,) = scene.read(scene.subscribe("1.0 REST", task))
    assert heard.numbers == scene.numbers(task) == list(range(1, 10))


@pytest.mark.parametrize("quiet_ms", [0, 70, 4_980, *range(5_020, 5_500, 60), 61_111, 299_999])
def test_a_new_event_is_told_within_a_quarter_of_a_second_however_quiet_it_was(quiet_ms: int) -> None:
    scene = Scene()
    task = scene.made((1_000 + quiet_ms, TaskState.WORKING), (3_000 + quiet_ms, DONE))
    (heard,) = scene.read(scene.subscribe("1.0 REST", task))
    happened = {event.n: event.at for event in scene.world.events(task)}
    told = {n: at for n, at in zip(heard.numbers, heard.told, strict=True) if n > 1}
    assert sorted(told) == [2, 3]
    assert all(0 <= told[n] - happened[n] <= 250 for n in told)


def test_waiting_reads_ten_times_a_second_while_there_is_news_and_four_times_when_there_is_none() -> None:
    scene = Scene(stream_ms=MINUTE_MS)
    task, began = scene.made(), scene.world.now
    counting = Counting(scene.world)
    scene.world.service = scene.world.service._replace(log=cast("Any", counting))
    scene.read(scene.subscribe("1.0 REST", task))
    seconds = Counter((at - began) // 1000 for at in counting.looked)
    assert max(seconds[second] for second in range(5)) <= 10
    assert max(seconds[second] for second in range(6, 59)) <= 4


class Counting:
    """The table, and when news were looked for."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.looked: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.table, name)

    def read(self, *arguments: Any) -> Any:
        """A look for news."""
        self.looked.append(self._world.now)
        return self._world.table.read(*arguments)


class Breaking(Counting):
    """The table, which does not answer from ``at`` (ms) on."""

    def __init__(self, world: World, at: int) -> None:
        super().__init__(world)
        self._at = at

    def read(self, *arguments: Any) -> Any:
        """A look for news."""
        if self._world.now >= self._at:
            raise ConnectionError("table-1 does not answer")
        return super().read(*arguments)


class AtOnce(EngineInlineRunner):
    """Inline runs that have ended before ``start`` returns."""

    def start(self, key: TaskKey, time_ms: int) -> None:
        self.run(key, time_ms)


async def asks_and_writes(task: TaskContext) -> None:
    answer = await task.ask("Which colour?")
    for number in range(3):
        await task.emit(f"{number}.txt", answer.text(), last=True)


def test_a_stream_that_begins_with_an_answer_has_all_events_behind_it_though_the_run_ends_at_once() -> None:
    world = World([replace(agent_of(asks_and_writes), runs="inline")])
    task = world.send("paint", push=False)
    world.settle()
    runner = AtOnce(world.engine, world.play)
    service = world.service._replace(inline_runner=runner.for_agent)
    before = len(world.events(task.id))
    request = SendMessageRequest(message=world.request("red", push=False, task_id=task.id).message)
    context = RequestContext(ME, "echo", "1.0")
    limits = StreamLimits(None, world.now + MINUTE_MS, frozenset())
    stream = open_stream(Operation.STREAM, service, context, world.engine.agents["echo"], request, limits)

    async def read() -> list[int]:
        return [item.n for item in [item async for item in stream.items] if isinstance(item, StreamItem) and item.n]

    numbers = world.play(read())
    assert world.get(task.id).status.state is DONE
    assert numbers == [event.n for event in world.events(task.id)][before:]
