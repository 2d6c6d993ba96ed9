"""Converts heads, cursors, configurations, attempts and other records to table items: one attribute per field.

Stored items outlive the release that wrote them. A field with its default value is not stored. So an item that is older
than a field reads the same, and compares the same in conditions, as a newer item. A change that needs more than
that raises ``VERSION``, which every item carries (``v``), and adds an upgrade to ``readable``. An item of a newer
version is refused.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from functools import cache, partial
from inspect import signature
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from a2a_serverless.domain.errors import IllegalTransition, safe_error_fields
from a2a_serverless.domain.head import Head
from a2a_serverless.domain.model import encode_name, path
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.store import keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from a2a_serverless.domain.challenges import ChallengeState
    from a2a_serverless.domain.circuit_breaker import OpenBreaker
    from a2a_serverless.domain.cursors import Cursor
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.new_task import IdempotencyRecord, LastTick
    from a2a_serverless.domain.push_configs import Attempt, PushConfig
    from a2a_serverless.domain.timeline import StepTime

    Record: TypeAlias = Cursor | PushConfig | Attempt | IdempotencyRecord | LastTick | OpenBreaker | ChallengeState

Item: TypeAlias = "dict[str, Any]"
R = TypeVar("R", bound="Record")
T = TypeVar("T")

logger = logging.getLogger(__name__)

VERSION: Final = 1
EVENT_VERSION: Final = 1
PUT_OFF_MS: Final = 60_000
PUT_OFF_LIMIT_MS: Final = 3_600_000


class WriteConflict(NamedTuple):
    """Nothing was written, because a condition did not hold. ``items`` has, for each action, the item that is stored.

    It is None if no item is stored, or if the table (an emulator's) did not return it.
    """

    items: tuple[Item | None, ...]


class DueItem(NamedTuple):
    """An item that is due: the head of ``key``, or with ``config_id`` that configuration's cursor.

    ``item_key`` is its key in the store. ``key`` is None when this release cannot interpret the item key.
    """

    item_key: tuple[str, str]
    key: TaskKey | None
    config_id: str | None = None


class TaskEntry(NamedTuple):
    """A task in the index, which is eventually consistent. ``position`` is the token of the page after it."""

    task: str
    agent: str
    state: TaskState
    position: str


def make_place(pk: str, sk: str) -> Item:
    """The key of an item."""
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def make_item(pk: str, sk: str, expires: int | None, attributes: Mapping[str, Any]) -> Item:
    """An item with its keys, expiry (seconds; None is never), format version and ``attributes``."""
    ends = {} if expires is None else {"expires": {"N": str(expires)}}
    return {"pk": {"S": pk}, "sk": {"S": sk}, **ends, "v": {"N": str(VERSION)}, **attributes}


def is_live(item: Mapping[str, Any] | None, now: int) -> bool:
    """Whether there is an item and it has not expired at ``now`` (ms): DynamoDB deletes expired items days later."""
    return item is not None and ("expires" not in item or int(item["expires"]["N"]) * 1000 > now)


class UnknownVersion(RuntimeError):
    """The item was written by a newer release than this one."""


UNREADABLE: Final = (IllegalTransition, LookupError, RuntimeError, TypeError, ValueError)
"""The errors of a read if the stored data is wrong, or of a newer release. A store that fails raises other errors."""


def read_or_skip(read: Callable[[], T], what: str, **ids: object) -> T | None:
    """What ``read`` returns. If that cannot be read: None, and a log line with ``what`` and ``ids``.

    For loops over many, so that one that cannot be read does not stop them.
    """
    try:
        return read()
    except UNREADABLE as error:
        logger.error("%s unreadable", what, extra=safe_error_fields(error) | ids)
        return None


def read_each(read: Callable[[Item], T], rows: Iterable[Item]) -> Iterator[T]:
    """What ``read`` makes of each item, without those that it cannot read; these are logged."""
    for item in rows:
        place = {"pk": item.get("pk", {}).get("S"), "sk": item.get("sk", {}).get("S")}
        if (one := read_or_skip(partial(read, item), "item", **place)) is not None:
            yield one


def readable(item: Mapping[str, Any], newest: int = VERSION) -> Mapping[str, Any]:
    """The item; raises UnknownVersion if it is newer than ``newest``: only a newer release can read it."""
    version = int(item["v"]["N"])
    if version > newest:
        raise UnknownVersion(f"{item['sk']['S']} is stored in form {version}; this release reads form {newest}")
    return item


def head_item(head: Head) -> Item:
    """The attributes of a head, and of its entries in indexes."""
    key = head.key
    own = path(key.tenant, key.owner)
    return record_item(head) | {
        "own": {"S": own},
        "own_ctx": {"S": f"{own}/{encode_name(head.context_id)}"},
        "st": {"S": f"{keys.moment(head.status_at)}#{encode_name(key.task)}"},
        **({} if head.due_at is None else {"due_shard": {"S": str(keys.shard(key))}}),
    }


def head_of(item: Mapping[str, Any]) -> Head:
    """The head in an item of ``head_item``."""
    values = _values(Head, item)
    return Head(key=keys.task_key(item["pk"]["S"]), **values | {"state": TaskState(values["state"])})


def entry_of(item: Mapping[str, Any]) -> TaskEntry:
    """The entry of a task list index."""
    task = keys.task_key(item["pk"]["S"]).task
    return TaskEntry(task, item["agent"]["S"], TaskState(item["state"]["S"]), item["st"]["S"])


def step_time_of(item: Mapping[str, Any]) -> StepTime:
    """The time at which a step ran."""
    from a2a_serverless.domain.timeline import StepTime

    began_at, ended_at = numbers_of(item, "began", "ended")
    return StepTime(item["name"]["S"], began_at, ended_at, item["error"]["S"] if "error" in item else "")


def numbers_of(item: Mapping[str, Any], *names: str) -> list[int]:
    """The numbers of these attributes, 0 for one that is absent."""
    return [int(item[name]["N"]) if name in item else 0 for name in names]


def due_of(item: Mapping[str, Any]) -> DueItem:
    """An entry of the due index."""
    place = item["pk"]["S"], item["sk"]["S"]
    try:
        key = keys.task_key(place[0])
    except ValueError:
        return DueItem(place, None)
    config_id = keys.cursor_config(place[1])
    return DueItem(place, key if config_id is not None or place[1] == keys.HEAD else None, config_id)


def postpone_item(item: Mapping[str, Any], now: int) -> Item:
    """The attributes that postpone a due item; ``put_off`` holds the new due time and the wait in ms, which doubles."""
    last_at, _, last_ms = item.get("put_off", {"S": ""})["S"].partition(" ")
    again = last_at == item["due_at"]["S"]
    wait_ms = min(2 * int(last_ms), PUT_OFF_LIMIT_MS) if again else PUT_OFF_MS
    due_at = keys.moment(now + wait_ms)
    return {"due_at": {"S": due_at}, "put_off": {"S": f"{due_at} {wait_ms}"}}


def names_of(record: Head | Cursor | ChallengeState) -> list[str]:
    """The attributes that a record can have."""
    kind: type = type(record)
    return list(_fields(kind))


def record_item(record: Head | Record) -> Item:
    """The attributes of a record."""
    kind: type = type(record)
    values = zip(_fields(kind).items(), _getter(kind)(record), strict=True)
    return {name: _value(name, value) for (name, default), value in values if value != default}


def record_of(kind: type[R], item: Mapping[str, Any]) -> R:
    """The record in an item of ``record_item``."""
    return kind(**_values(kind, item))


@cache
def _fields(kind: type) -> dict[str, object]:
    """The names and defaults of a record's fields, without ``key``: the item's own key contains it."""
    return {field.name: field.default for field in signature(kind).parameters.values() if field.name != "key"}


@cache
def _getter(kind: type) -> attrgetter[tuple[Any, ...]]:
    return attrgetter(*_fields(kind))


def _values(kind: type, item: Mapping[str, Any]) -> dict[str, Any]:
    attributes = readable(item)
    return {
        name: _read(name, attributes[name], default) for name, default in _fields(kind).items() if name in attributes
    }


def _value(name: str, value: str | int) -> dict[str, Any]:
    if isinstance(value, str):
        return {"S": value}
    if name == "due_at":
        return {"S": keys.moment(value)}
    return {"BOOL": value} if isinstance(value, bool) else {"N": str(value)}


def _read(name: str, value: dict[str, str], default: object) -> Any:  # noqa: ANN401 - any value of a field
    if name == "due_at":
        return int(value["S"])
    if isinstance(default, StrEnum):
        return type(default)(value["S"])
    return int(value["N"]) if "N" in value else value.get("S", value.get("BOOL"))
