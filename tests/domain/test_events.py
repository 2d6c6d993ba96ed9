"""The log and its replay: any sequence of events either follows the rules or is refused and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_serverless.domain.budgets import METADATA_KEY as BUDGET
from a2a_serverless.domain.errors import IllegalTransition
from a2a_serverless.domain.events import ArtifactEvent, Event, Incoming, StatusEvent, contiguous
from a2a_serverless.domain.replay import TaskReplay, replay
from a2a_serverless.domain.states import NEXT
from a2a_serverless.domain.usage import METADATA_KEY as USAGE
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Role, Task, TaskState, TaskStatus
from a2a_serverless.store.stored_forms import dump_snapshot, load_snapshot
from tests.protocol.strategies import built

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject

MANY = settings(deadline=None, max_examples=100)

MESSAGES = built(
    Message,
    message_id=st.sampled_from("mnopqr"),
    role=st.sampled_from(Role),
    parts=st.lists(built(Part, text=st.sampled_from("xyz")), min_size=1, max_size=2).map(tuple),
)
INCOMING = st.builds(Incoming, MESSAGES, metadata=st.none() | st.dictionaries(st.sampled_from("kl"), st.integers(0, 9)))
ARTIFACTS = built(
    Artifact,
    artifact_id=st.sampled_from("ab"),
    parts=st.lists(built(Part, text=st.sampled_from("uvw")), min_size=1, max_size=2).map(tuple),
    name=st.sampled_from([None, "document.md"]),
)
# Mostly the next number, sometimes one too few or too many.
STEPS = st.sampled_from([1, 1, 1, 1, 1, 1, 0, 2, -1])
STATES = st.sampled_from([*TaskState, *[TaskState.WORKING] * 8])
STATUSES = st.builds(
    StatusEvent,
    n=STEPS,
    at=st.integers(0, 1000),
    append_id=st.just("a"),
    state=STATES,
    message=st.none() | MESSAGES,
    incoming=st.none() | INCOMING,
    usage=st.none() | st.fixed_dictionaries({"model": st.integers(1, 9)}),
    budget=st.none() | st.fixed_dictionaries({"spent": st.integers(1, 9)}),
)
CHUNKS = st.builds(
    ArtifactEvent,
    n=STEPS,
    at=st.integers(0, 1000),
    append_id=st.just("a"),
    artifact=ARTIFACTS,
    append=st.booleans(),
    last_chunk=st.booleans(),
)
FIRST = st.just(StatusEvent(1, 5, "a", TaskState.SUBMITTED))
PROPOSALS = st.tuples(FIRST, st.lists(STATUSES | CHUNKS, max_size=25)).map(lambda pair: [pair[0], *pair[1]]) | st.lists(
    STATUSES | CHUNKS, max_size=5
)


@dataclass
class Reference:
    """What a client should see, written once more in the plainest way: everything is kept and worked out at the end."""

    accepted: list[Event] = field(default_factory=list)

    def statuses(self) -> list[StatusEvent]:
        return [event for event in self.accepted if isinstance(event, StatusEvent)]

    def chunks(self) -> list[ArtifactEvent]:
        return [event for event in self.accepted if isinstance(event, ArtifactEvent)]

    def allows(self, event: Event) -> bool:
        statuses = self.statuses()
        state = statuses[-1].state if statuses else None
        if event.n != len(self.accepted) + 1:
            return False
        if isinstance(event, StatusEvent):
            return event.state in NEXT[state]
        known = {chunk.artifact.artifact_id for chunk in self.chunks()}
        return state is TaskState.WORKING and (not event.append or event.artifact.artifact_id in known)

    def task(self) -> Task:
        last = self.statuses()[-1]
        said = [message for status in self.statuses() for message in self.messages(status)]
        brought = [status.incoming.metadata for status in self.statuses() if status.incoming]
        metadata = next((given for given in reversed(brought) if given is not None), None)
        for status in self.statuses():
            for name, member in ((USAGE, status.usage), (BUDGET, status.budget)):
                metadata = {**(metadata or {}), name: member} if member else metadata
        return Task(
            id="task",
            context_id="context",
            status=TaskStatus(state=last.state, timestamp=last.at, message=last.message),
            artifacts=self.artifacts(),
            history=tuple(said[:-1] if last.message else said),
            metadata=metadata,
        ).as_of(len(self.accepted))

    @staticmethod
    def messages(status: StatusEvent) -> list[Message]:
        incoming = [status.incoming.message] if status.incoming else []
        return [*incoming, *([status.message] if status.message else [])]

    def artifacts(self) -> tuple[Artifact, ...]:
        order = list(dict.fromkeys(chunk.artifact.artifact_id for chunk in self.chunks()))
        return tuple(self.artifact(artifact_id) for artifact_id in order)

    def artifact(self, artifact_id: str) -> Artifact:
        chunks = [chunk for chunk in self.chunks() if chunk.artifact.artifact_id == artifact_id]
        start = max(index for index, chunk in enumerate(chunks) if not chunk.append)
        texts = [[str(part.value) for part in chunk.artifact.parts] for chunk in chunks[start:]]
        whole = texts[0]
        for first, *others in texts[1:]:
            whole = [*whole[:-1], whole[-1] + first, *others]
        parts = tuple(Part(text=text) for text in whole)
        return chunks[start].artifact.model_copy(update={"parts": parts})


def seen(replayed: TaskReplay) -> Task | None:
    return replayed.task() if replayed.n else None


@MANY
@given(PROPOSALS)
def test_rule_01_an_event_follows_the_rules_or_is_refused_and_changes_nothing(proposals: list[Event]) -> None:
    replayed, reference = TaskReplay("task", "context"), Reference()
    for proposal in proposals:
        event, before = proposal._replace(n=replayed.n + proposal.n), seen(replayed)
        if reference.allows(event):
            replayed.apply(event)
            reference.accepted.append(event)
            assert replayed.task() == reference.task()
        else:
            with pytest.raises(IllegalTransition):
                replayed.apply(event)
            assert seen(replayed) == before


@MANY
@given(PROPOSALS)
def test_folding_a_whole_log_gives_what_applying_it_step_by_step_gave(proposals: list[Event]) -> None:
    replayed, log = TaskReplay("task", "context"), list[Event]()
    for proposal in proposals:
        event = proposal._replace(n=replayed.n + proposal.n)
        if Reference(log).allows(event):
            replayed.apply(event)
            log.append(event)
    if log:
        assert replay("task", "context", log) == replayed.task()


@MANY
@given(PROPOSALS, st.integers(0, 30))
def test_rule_04_a_snapshot_and_later_events_replay_to_the_task_of_the_whole_log(
    proposals: list[Event], pause: int
) -> None:
    log = list[Event]()
    for proposal in proposals:
        event = proposal._replace(n=len(log) + proposal.n)
        if Reference(log).allows(event):
            log.append(event)
    for n in {1, min(pause, len(log))} - {0} if log else ():
        stored = load_snapshot(dump_snapshot(replay("task", "context", log[:n]), {})).task
        assert TaskReplay.from_task(stored).after(log[n:]) == replay("task", "context", log)


@MANY
@given(PROPOSALS, st.integers(0, 30))
def test_later_events_do_not_change_a_task_that_a_reader_has(proposals: list[Event], pause: int) -> None:
    replayed, log = TaskReplay("task", "context"), list[Event]()
    given_out: tuple[Task, int] | None = None
    for proposal in proposals:
        event = proposal._replace(n=replayed.n + proposal.n)
        if Reference(log).allows(event):
            replayed.apply(event)
            log.append(event)
            given_out = (replayed.task(), len(log)) if len(log) == pause else given_out
    if given_out:
        assert given_out[0] == replay("task", "context", log[: given_out[1]])


@given(st.integers(0, 5), st.lists(st.integers(1, 12), max_size=12))
def test_rule_01_readers_get_only_the_run_without_a_gap(after: int, numbers: list[int]) -> None:
    events = [StatusEvent(n, 0, "a", TaskState.WORKING) for n in numbers]
    run = [event.n for event in contiguous(after, events)]
    assert run == list(range(after + 1, after + 1 + len(run)))
    assert numbers[: len(run)] == run
    assert numbers[len(run) : len(run) + 1] != [after + len(run) + 1]


def test_a_replay_without_events_has_no_task() -> None:
    replayed = TaskReplay("task", "context")
    assert replayed.state is None
    with pytest.raises(IllegalTransition, match="begins with its first event"):
        replayed.task()
    with pytest.raises(IllegalTransition, match="begins with its first event"):
        replay("task", "context", [])


def test_a_log_that_nobody_could_have_written_is_refused() -> None:
    submitted = StatusEvent(1, 0, "a", TaskState.SUBMITTED)
    with pytest.raises(IllegalTransition, match="event 3 may not follow event 1"):
        replay("task", "context", [submitted, StatusEvent(3, 0, "a", TaskState.WORKING)])


def test_a_chunk_cannot_be_appended_to_an_artifact_that_has_none() -> None:
    log: list[Event] = [StatusEvent(1, 0, "a", TaskState.SUBMITTED), StatusEvent(2, 0, "a", TaskState.WORKING)]
    chunk = ArtifactEvent(3, 0, "a", Artifact(artifact_id="report", parts=(Part(text="x"),)), append=True)
    with pytest.raises(IllegalTransition, match="artifact report has no chunk to append to"):
        replay("task", "context", [*log, chunk])


def test_metadata_is_that_of_the_latest_message_which_brought_some() -> None:
    def said(n: int, state: TaskState, metadata: JsonObject | None) -> StatusEvent:
        message = Message(message_id=f"m-{n}", role=Role.USER, parts=(Part(text="x"),))
        return StatusEvent(n, 0, "a", state, incoming=Incoming(message, metadata=metadata))

    log: list[Event] = [said(1, TaskState.SUBMITTED, {"a": 1}), said(2, TaskState.SUBMITTED, None)]
    assert replay("task", "context", log).metadata == {"a": 1}
    assert replay("task", "context", [*log, said(3, TaskState.SUBMITTED, {})]).metadata == {}


WORKING: Final = StatusEvent(2, 0, "a", TaskState.WORKING)
OWN: Final = [name for name in StatusEvent._fields if WORKING._replace(**{name: {"x": 1}}).metadata]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", OWN)
def test_metadata_of_a_status_outlives_a_snapshot_and_the_next_message(name: str) -> None:
    message = Message(message_id="m", role=Role.USER, parts=(Part(text="x"),))
    begun, own = StatusEvent(1, 0, "a", TaskState.SUBMITTED), WORKING._replace(**{name: {"x": 1}})  # type: ignore[arg-type]
    said = StatusEvent(3, 0, "a", TaskState.WORKING, incoming=Incoming(message, metadata={"a": 1}))
    stored = load_snapshot(dump_snapshot(replay("task", "context", [begun, own]), {})).task
    assert TaskReplay.from_task(stored).after([said]).metadata == {"a": 1, **own.metadata}
