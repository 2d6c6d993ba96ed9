"""What a called task is known to be: what was said counts, whatever is said later, and no leniency invents an end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.called_task import AskedQuestion, CalledTask, Source, TaskBounds
from a2a_serverless.domain.errors import InvalidAgentResponse
from a2a_serverless.domain.events import PART_BYTES
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.peers import read_item
from a2a_serverless.protocol.v1 import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

S = TaskState


def asks(text: str, message_id: str = "", at: int = 0) -> TaskStatus:
    message = Message(message_id=message_id, role=Role.AGENT, parts=(Part(text=text),))
    return TaskStatus(state=S.INPUT_REQUIRED, timestamp=at, message=message)


def seen(state: TaskState, **artifacts: str) -> Task:
    made = tuple(Artifact(artifact_id=name, parts=(Part(text=text),)) for name, text in artifacts.items())
    return Task(id="t", status=TaskStatus(state=state), artifacts=made)


def known_after(*items: Any) -> CalledTask:
    known = CalledTask("t")
    for item in items:
        known.take(item, Source.LOOK)
    return known


def texts(known: CalledTask) -> dict[str, str]:
    return {artifact.artifact_id: artifact.text() for artifact in known.task.artifacts}


def test_a_stale_replica_says_nothing_of_a_task_that_has_ended() -> None:
    known = known_after(seen(S.COMPLETED, a="whole"), seen(S.WORKING, a="wh"), seen(S.FAILED))
    assert (known.task.status.state, texts(known)) == (S.COMPLETED, {"a": "whole"})


def test_an_artifact_is_its_last_whole_statement_and_absence_removes_nothing() -> None:
    known = known_after(seen(S.WORKING, a="a long draft", b="b"), seen(S.WORKING, a="short"), seen(S.COMPLETED))
    assert texts(known) == {"a": "short", "b": "b"}


def test_chunks_continue_an_artifact_and_an_artifact_without_parts_replaces_none() -> None:
    one, two = (Artifact(artifact_id="a", parts=(Part(text=text),)) for text in ("one", "two"))
    first = TaskArtifactUpdateEvent(task_id="t", context_id="", artifact=one)
    second = TaskArtifactUpdateEvent(task_id="t", context_id="", artifact=two, append=True)
    empty = seen(S.COMPLETED).model_copy(update={"artifacts": (Artifact(artifact_id="a", parts=()),)})
    known = known_after(seen(S.WORKING), first, second, empty)
    assert texts(known) == {"a": "onetwo"}


def test_a_question_is_withdrawn_when_the_newest_read_does_not_show_it_and_stays_without_its_message() -> None:
    question = seen(S.WORKING).model_copy(update={"status": asks("Sure?", "q")})
    known = known_after(question, seen(S.INPUT_REQUIRED))
    assert known.task.status.message
    known.take(seen(S.WORKING), Source.LOOK)
    assert not known.is_asking
    assert known.task.status.message is None


def test_the_source_of_each_thing_is_known() -> None:
    known = CalledTask("t")
    known.take(seen(S.WORKING, a="a"), Source.SEND)
    known.take(seen(S.WORKING, b="b"), Source.STREAM)
    known.take(seen(S.COMPLETED), Source.LOOK)
    assert known.sources == {"a": Source.SEND, "b": Source.STREAM}
    assert known.status_source is Source.LOOK


def test_a_read_differs_in_what_it_does_not_show() -> None:
    known = CalledTask("t")
    known.take(seen(S.WORKING, a="a"), Source.STREAM)
    known.take(seen(S.COMPLETED, b="b"), Source.SEND)
    assert known.differences(seen(S.COMPLETED, a="a", b="b", c="c")) == []
    assert known.differences(seen(S.WORKING)) == ["completed (send)", "1 artifacts (stream)", "1 artifacts (send)"]


def test_a_task_has_no_more_than_its_bounds_allow_and_what_replaces_takes_no_room_twice() -> None:
    bounds = TaskBounds(artifacts=2, bytes=3 * (4 + PART_BYTES))
    known = CalledTask("t", "far", bounds)
    for text in ("1111", "2222", "3333"):
        known.take(seen(S.WORKING, a=text, b=text), Source.LOOK)
    with pytest.raises(AgentCallFailed, match="The task at the agent 'far' has more than 2 artifacts"):
        known.take(seen(S.WORKING, c="c"), Source.LOOK)
    known = CalledTask("t", "far", bounds)
    chunk = TaskArtifactUpdateEvent(
        task_id="t", context_id="", artifact=seen(S.WORKING, a="4444").artifacts[0], append=True
    )
    for _ in range(3):
        known.take(chunk, Source.STREAM)
    with pytest.raises(AgentCallFailed, match="more than 108 bytes"):
        known.take(chunk, Source.STREAM)


def test_only_what_is_new_of_an_answer_is_stored_with_it() -> None:
    known = known_after(seen(S.INPUT_REQUIRED, a="a", b="b"))
    answer = seen(S.COMPLETED, a="a", b="other", c="c")
    new = known.only_new(answer)
    assert [artifact.artifact_id for artifact in new.artifacts] == ["b", "c"]
    known.take(new, Source.SEND)
    assert known.task == answer


def test_a_result_is_the_same_whether_its_end_came_in_a_stream_or_in_a_look() -> None:
    words = Message(message_id="m", role=Role.AGENT, parts=(Part(text="Thinking"),))
    done = seen(S.COMPLETED, a="a").model_copy(update={"context_id": "c", "history": (words,)})
    chunk = TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=done.artifacts[0])
    end = TaskStatusUpdateEvent(task_id="t", context_id="c", status=done.status)
    assert known_after(chunk, end).task == known_after(done).task == known_after(done, seen(S.COMPLETED)).task


@pytest.mark.parametrize(
    ("later", "at_once", "after_a_minute", "with_stable_ids"),
    [
        (asks("Sure?", "q", 7), True, True, True),
        (asks("Sure?", "q", 8), True, True, True),
        (asks("Really?", "q", 8), True, True, True),
        (asks("Sure?", "r", 7), True, True, False),
        (asks("Sure?", "r", 8), True, False, False),
        (asks("Really?", "r", 7), False, False, False),
        (asks("Really?", "r", 8), False, False, False),
        (asks("Sure?", "", 7), True, True, True),
        (asks("Really?", "", 7), True, True, True),
        (asks("Sure?"), True, False, False),
        (asks("Really?"), False, False, False),
    ],
)
def test_a_question_is_the_same_by_one_of_its_marks_or_for_a_while_by_its_content(
    later: TaskStatus, *, at_once: bool, after_a_minute: bool, with_stable_ids: bool
) -> None:
    """With stable ids an equal question a moment after the answer is another one."""
    first, second = AskedQuestion.of(asks("Sure?", "q", 7)), AskedQuestion.of(later)
    assert first.is_same(second, keeps_ids=False, may_repeat=True) is at_once
    assert first.is_same(second, keeps_ids=False, may_repeat=False) is after_a_minute
    assert first.is_same(second, keeps_ids=True, may_repeat=False) is with_stable_ids


NAMES = st.sampled_from([*(state.value for state in S), *(f"TASK_STATE_{state.name}" for state in S), *range(9)])
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TEXT_PART = st.builds(lambda text: {"text": text}, st.text("abc", min_size=1, max_size=4))
ODD_PART = TEXT_PART | st.builds(lambda raw: {"raw": raw}, st.text(max_size=6)) | JUNK
ARTIFACT = st.builds(
    lambda name, parts, more: {**more, "artifactId": name, "parts": parts},
    st.sampled_from("abc"),
    st.lists(ODD_PART, max_size=3) | JUNK,
    st.dictionaries(st.sampled_from(["name", "metadata", "extensions", "description"]), JUNK, max_size=2),
)
ITEM = st.builds(
    lambda state, artifacts, more, is_wrapped: _item({**more, "artifacts": artifacts}, state, is_wrapped=is_wrapped),
    NAMES | JUNK,
    st.lists(ARTIFACT, max_size=3) | JUNK,
    st.dictionaries(st.sampled_from(["history", "metadata", "contextId", "extra"]), JUNK, max_size=3),
    st.booleans(),
)
COMPLETED = {"completed", "COMPLETED", "TASK_STATE_COMPLETED", 3}


def _item(task: dict[str, Any], state: Any, *, is_wrapped: bool) -> dict[str, Any]:
    task = {**task, "id": "t", "status": {"state": state, "message": task.get("extra")}}
    return {"task": task} if is_wrapped else {"kind": "task", **task}


@given(st.lists(ITEM, max_size=6))
def test_no_form_completes_a_task_that_no_peer_called_completed_or_loses_an_artifact(items: list[Any]) -> None:
    known, artifacts = CalledTask("t"), set[str]()
    is_completed = False
    for item in items:
        try:
            read = read_item("1.0", item)
        except InvalidAgentResponse:
            continue
        assert isinstance(read, Task)
        state = (item.get("task") or item)["status"]["state"]
        is_named = isinstance(state, str | int) and not isinstance(state, bool) and state in COMPLETED
        assert (read.status.state is S.COMPLETED) is is_named
        is_completed |= is_named
        if known.take(read, Source.LOOK):
            artifacts |= {artifact.artifact_id for artifact in read.artifacts if artifact.parts}
        assert artifacts <= {artifact.artifact_id for artifact in known.task.artifacts if artifact.parts}
    if known.status and known.status.state is S.COMPLETED:
        assert is_completed


@given(st.lists(TEXT_PART, min_size=1, max_size=3), st.lists(JUNK, max_size=3), JUNK)
def test_the_good_parts_of_an_artifact_are_read_whatever_stands_beside_them(
    good: list[dict[str, str]], junk: list[Any], metadata: Any
) -> None:
    junk = [part for part in junk if not isinstance(part, dict)]
    artifact = {"artifactId": "a", "parts": [*junk, *good], "metadata": metadata, "extensions": metadata}
    read = read_item("1.0", {"task": {"id": "t", "status": {"state": "completed"}, "artifacts": [artifact]}})
    assert isinstance(read, Task)
    assert [part.text for part in read.artifacts[0].parts] == [part["text"] for part in good]


@given(st.lists(st.sampled_from(list(S)), min_size=1, max_size=8))
def test_the_first_end_is_final(states: list[TaskState]) -> None:
    known = known_after(
        *(TaskStatusUpdateEvent(task_id="t", context_id="", status=TaskStatus(state=state)) for state in states)
    )
    ends = [state for state in states if state in TERMINAL]
    assert known.task.status.state is (ends[0] if ends else states[-1])
