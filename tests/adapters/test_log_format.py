from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless.adapters.dynamodb import log_format
from a2a_serverless.domain.events import ArtifactEvent, Incoming, StatusEvent
from a2a_serverless.domain.model import Artifact, Message, Part, Role, TaskState
from a2a_serverless.ports.tasks import StepResult

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
parts = st.one_of(
    st.builds(Part, st.sampled_from(["text", "raw", "url"]), texts, st.none() | texts, st.none() | texts, metadata),
    st.builds(Part, st.just("data"), values, st.none() | texts, st.none() | texts, metadata),
)
many_parts = st.lists(parts, max_size=3).map(tuple)
maybe = st.none() | texts
messages = st.builds(Message, texts, st.sampled_from(Role), many_parts, maybe, maybe, metadata, some, some)
artifacts = st.builds(Artifact, texts, many_parts, maybe, maybe, metadata, some)
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
    text = log_format.dump_event(event)
    assert repr(log_format.load_event(text, event.n, event.append_id)) == repr(event)
    assert text.encode().decode() == text


@given(texts, values)
def test_a_result_comes_back_as_it_was(arguments: str, value: Json) -> None:
    result = StepResult(arguments, value)
    assert repr(log_format.load_step(log_format.dump_step(result))) == repr(result)


def test_what_is_not_given_takes_no_room() -> None:
    event = StatusEvent(2, 5, "by", TaskState.WORKING)
    assert json.loads(log_format.dump_event(event)) == {"k": "s", "s": "working", "at": 5}


def test_a_text_in_chinese_is_stored_in_its_own_letters() -> None:
    event = StatusEvent(2, 5, "by", TaskState.WORKING, Message("m", Role.AGENT, (Part("text", "大纲"),)))
    assert "大纲" in log_format.dump_event(event)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_json_does_not_have_is_refused(value: float) -> None:
    event = StatusEvent(2, 5, "by", TaskState.WORKING, Message("m", Role.AGENT, (Part("data", value),)))
    with pytest.raises(ValueError, match="JSON"):
        log_format.dump_event(event)
    with pytest.raises(ValueError, match="JSON"):
        log_format.dump_event(replace(event, message=Message("m", Role.AGENT, (Part("data", ["\ud800", value]),))))
