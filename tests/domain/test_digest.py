"""Digests tell one value from another, in this process and in the next."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from pydantic import BaseModel

from a2a_serverless.domain.contents import StoredFile
from a2a_serverless.domain.model import digest
from a2a_serverless.protocol.v1 import Message, Part, Role
from tests.protocol.strategies import JSON, MESSAGES, OBJECTS

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json, JsonObject

ALL = settings(deadline=None)


@dataclass(frozen=True)
class Flight:
    seats: int
    meal: str | None = None


@dataclass(frozen=True)
class Train:
    seats: int
    meal: str | None = None


def shuffled(value: Json) -> Json:
    """The same value with the members of every object the other way round."""
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in reversed(list(value))}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


def test_a_digest_is_the_same_in_every_process() -> None:
    value: Json = {"b": [1, 1.5, True, None, "漢"], "a": {}}
    assert digest(value) == sha256('{"a":{},"b":[1,1.5,true,null,"漢"]}'.encode()).hexdigest()
    assert digest(Flight(2)) == digest({"@": "Flight", "seats": 2, "meal": None})


@ALL
@given(JSON)
def test_the_order_of_members_does_not_count(value: Json) -> None:
    assert digest(shuffled(value)) == digest(value)


@ALL
@given(JSON, JSON)
def test_two_values_have_one_digest_only_if_they_are_written_alike(one: Json, other: Json) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (digest(one) == digest(other)) is same


@ALL
@given(OBJECTS)
def test_a_value_that_went_through_json_keeps_its_digest(value: JsonObject) -> None:
    assert digest(json.loads(json.dumps(value))) == digest(value)


@ALL
@given(MESSAGES)
def test_every_field_of_a_message_counts(message: Message) -> None:
    changes: list[Message] = [
        message.model_copy(update={"message_id": message.message_id + "x"}),
        message.model_copy(update={"parts": (*message.parts, Part(text="x"))}),
        message.model_copy(update={"context_id": (message.context_id or "") + "x"}),
        message.model_copy(update={"task_id": (message.task_id or "") + "x"}),
        message.model_copy(update={"metadata": {"x": [message.metadata or {}]}}),
        message.model_copy(update={"extensions": (*message.extensions, "https://example.com/x")}),
        message.model_copy(update={"reference_task_ids": (*message.reference_task_ids, "x")}),
        message.model_copy(update={"role": Role.USER if message.role is Role.AGENT else Role.AGENT}),
    ]
    assert len({digest(value) for value in [message, *changes]}) == len(changes) + 1


def test_dataclasses_of_two_kinds_are_two_values() -> None:
    assert digest(Flight(2)) != digest(Train(2))


def test_true_is_not_one_and_a_text_is_not_a_number() -> None:
    assert len({digest(value) for value in (True, 1, 1.0, "1", [1], None, "null")}) == 7


def test_a_model_may_hold_dates() -> None:
    class Ticket(BaseModel):
        day: dt.date

    day = dt.date(2026, 1, 10)
    ticket = Ticket(day=day)
    assert digest(ticket) == digest(ticket.model_copy())
    other = Ticket(day=dt.date(2026, 1, 11))
    moments = [dt.datetime(2026, 1, 10, tzinfo=dt.UTC), dt.time(9), day, "2026-01-10"]
    assert len({digest(value) for value in [ticket, other, *moments]}) == 6


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object(), Flight, lambda: None])
def test_what_is_no_json_has_no_digest(value: object) -> None:
    with pytest.raises(TypeError, match="is neither a JSON value nor a dataclass nor an object of A2A"):
        digest({"deep": [value]})


def test_a_stored_file_keeps_the_digest_that_the_first_release_gave_it() -> None:
    file = StoredFile("task", "a" * 64, 3)
    assert digest(file) == digest({"@": "StoredFile", "place": "task", "sha256": "a" * 64, "size": 3})
