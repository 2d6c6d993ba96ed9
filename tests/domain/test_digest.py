"""Digests tell one value from another, in this process and in the next."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given, settings
from pydantic import AnyUrl, BaseModel, ConfigDict, RootModel, SecretStr

from a2a_serverless.domain.contents import StoredFile
from a2a_serverless.domain.digests import digest
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


class Color(Enum):
    RED = "red"


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    seats: int = 1

    @cached_property
    def rows(self) -> int:
        return self.seats // 2


class Sealed(BaseModel):
    key: SecretStr
    when: dt.timedelta = dt.timedelta(0)


VALUES: list[object] = [
    *(
        UUID(int=1),
        UUID(int=2),
        Decimal("1.0"),
        Decimal("1.00"),
        Color.RED,
        "red",
        b"\xff",
        b"\xfe",
        dt.timedelta(days=1),
    ),
    *(
        Path("a"),
        PurePosixPath("b"),
        {1, 2},
        {1, 3},
        frozenset({1, 2}),
        deque([1]),
        [1],
        1 + 2j,
        AnyUrl("https://a.example"),
    ),
    *({dt.date(2030, 1, 2): 1}, {dt.date(2030, 1, 3): 1}, {1: "a", "b": 2}, float("nan"), float("inf")),
    *(Open(seats=2), Open.model_validate({"seats": 2, "x": 1}), Open.model_validate({"seats": 2, "x": 2})),
    *(Sealed(key=SecretStr("a")), Sealed(key=SecretStr("a"), when=dt.timedelta(1)), RootModel[set[str]]({"a", "b"})),
]


def test_each_value_that_pydantic_can_write_has_its_own_digest() -> None:
    assert len({digest({"deep": [value]}) for value in VALUES}) == len(VALUES)


def test_a_digest_ignores_the_order_of_sets_cached_properties_and_secret_texts() -> None:
    names = [str(number) for number in range(100)]
    assert digest(set(names)) == digest({*names[50:], *names[:50]})
    table = Open(seats=4)
    before = digest(table)
    assert (table.rows, digest(table)) == (2, before)
    assert digest(Sealed(key=SecretStr("a"))) == digest(Sealed(key=SecretStr("b")))


def test_a_digest_of_any_value_is_the_same_in_another_process() -> None:
    code = "import sys; from tests.domain.test_digest import *; print(*map(digest, VALUES))"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)  # noqa: S603
    assert shown.stdout.split() == [*map(digest, VALUES)]


def circle() -> list[object]:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize("value", [object(), Flight, lambda: None, iter([1]), ValueError("x")])
def test_a_value_that_pydantic_cannot_write_has_no_digest(value: object) -> None:
    with pytest.raises(TypeError, match=f"a {type(value).__name__} is neither a JSON value nor a model"):
        digest({"deep": [value]})


@pytest.mark.parametrize("value", [circle(), 10**5000], ids=["itself", "number"])
def test_a_value_that_contains_itself_or_a_number_that_is_too_long_has_no_digest(value: object) -> None:
    with pytest.raises(TypeError, match="contains itself, or a number that is too long"):
        digest(value)


def test_a_stored_file_keeps_the_digest_that_the_first_release_gave_it() -> None:
    file = StoredFile("task", "a" * 64, 3)
    assert digest(file) == digest({"@": "StoredFile", "place": "task", "sha256": "a" * 64, "size": 3})
