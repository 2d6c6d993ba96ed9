from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless.domain.events import ArtifactEvent, Incoming, StatusEvent
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Role, TaskState
from a2a_serverless.store.stored_forms import dump_event, dump_step, load_event, load_step
from tests.protocol.strategies import built

if TYPE_CHECKING:
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.model import Json

texts = st.text(st.characters(codec=None), max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
metadata = st.none() | st.dictionaries(texts, values, max_size=2)
some = st.lists(texts, max_size=2).map(tuple)
about = {"media_type": st.none() | texts, "filename": st.none() | texts, "metadata": metadata}
parts = st.one_of(
    built(Part, text=texts, **about),
    built(Part, raw=texts, **about),
    built(Part, url=texts, **about),
    built(Part, data=values, **about),
)
many_parts = st.lists(parts, max_size=3).map(tuple)
maybe = st.none() | texts
messages = built(
    Message,
    message_id=texts,
    role=st.sampled_from(Role),
    parts=many_parts,
    context_id=maybe,
    task_id=maybe,
    metadata=metadata,
    extensions=some,
    reference_task_ids=some,
)
artifacts = built(
    Artifact,
    artifact_id=texts,
    parts=many_parts,
    name=maybe,
    description=maybe,
    metadata=metadata,
    extensions=some,
)
numbers = st.integers(0, 10**12)
statuses = st.builds(
    StatusEvent,
    numbers,
    numbers,
    texts,
    st.sampled_from(TaskState),
    st.none() | messages,
    st.none() | st.builds(Incoming, messages, some, metadata),
    numbers,
)
chunks = st.builds(
    ArtifactEvent,
    numbers,
    numbers,
    texts,
    artifacts,
    st.booleans(),
    st.booleans(),
    st.tuples(numbers, numbers),
    numbers,
)


@given(statuses | chunks)
def test_an_event_comes_back_as_it_was(event: Event) -> None:
    text = dump_event(event)
    assert repr(load_event(text, event.n, event.append_id)) == repr(event)
    assert text.encode().decode() == text


@given(texts, values)
def test_a_result_comes_back_as_it_was(arguments: str, value: Json) -> None:
    result = StepResult(arguments, value)
    assert repr(load_step(dump_step(result))) == repr(result)


def test_fields_without_a_value_are_not_in_a_stored_event() -> None:
    event = StatusEvent(2, 5, "by", TaskState.WORKING)
    assert json.loads(dump_event(event)) == {"state": "TASK_STATE_WORKING", "at": 5}


@pytest.mark.parametrize("text", ["x", "\ud800"])
def test_a_result_is_stored_without_spaces_between_its_members(text: str) -> None:
    assert " " not in dump_step(StepResult("digest", {"a": [1, 2], "b": text}))


def test_a_text_in_chinese_is_stored_in_its_own_letters() -> None:
    event = StatusEvent(
        2, 5, "by", TaskState.WORKING, Message(message_id="m", role=Role.AGENT, parts=(Part(text="大纲"),))
    )
    assert "大纲" in dump_event(event)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_json_does_not_have_is_refused(value: float) -> None:
    event = StatusEvent(
        2, 5, "by", TaskState.WORKING, Message(message_id="m", role=Role.AGENT, parts=(Part(data=value),))
    )
    with pytest.raises(ValueError, match="JSON"):
        dump_event(event)
    with pytest.raises(ValueError, match="JSON"):
        dump_event(
            event._replace(message=Message(message_id="m", role=Role.AGENT, parts=(Part(data=["\ud800", value]),)))
        )
