"""Partition and sort keys of everything in the table, and the functions that read a key back.

A key is a path (``domain.model``) with a prefix. Ids of created things must be readable from the key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

from a2a_serverless.domain.model import decode_name, encode_name, key_of_path, path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.model import Principal, TaskKey
    from a2a_serverless.domain.new_task import RequestKind

SHARDS: Final = 8
"""The shards of the due index."""
PUBLIC: Final = "PUBLIC"
OPEN: Final = "STREAMS"  # the partition of the open streams of all owners
PAUSES: Final = "PAUSES"  # the partition of the pauses of agents and owners
RECEIPT: Final = "RECEIPT"
CALL: Final = "CALL"
BREAKER: Final = "BREAKER"
TRY: Final = "TRY"
WEBHOOK: Final = "WEBHOOK"
EXHAUSTED: Final = "exhausted"  # a shard of the due index that the sweeper does not read
HOSTS: Final = "HOST#"
TASKS: Final = "TASK#"
HEAD: Final = "HEAD"
EVENTS: Final = "EVENT#"
STEPS: Final = "STEP#"
PUSHES: Final = "PUSH#"
WEBHOOKS: Final = "WEBHOOKS#"
UPLOADED: Final = "UPLOADED#"
SENDS: Final = "SENDS#"
SPENT: Final = "SPENT#"
CHALLENGES: Final = "CHALLENGES#"
STREAMS: Final = "STREAM#"
VALUES: Final = "VALUE#"
CONTEXTS: Final = "CONTEXT#"
CURSORS: Final = "CURSOR#"
ATTEMPTS: Final = "ATTEMPT#"
LAST: Final = 9_999_999_999
NEWEST: Final = "~"  # sorts after every digit

_IDEMPOTENCY: Final[Mapping[RequestKind, str]] = {"message": "SENT#", "retry": "RETRIED#", "tick": "TICKED#"}


def task(key: TaskKey) -> str:
    """The partition of a task."""
    return TASKS + path(*key)


def task_key(pk: str) -> TaskKey:
    """The task of the partition ``pk``; raises ValueError for any other partition."""
    if not pk.startswith(TASKS):
        raise ValueError(f"{pk[:80]!r} is not a task's partition")
    return key_of_path(pk.removeprefix(TASKS))


def idempotency(key: TaskKey, agent: str, message_id: str, kind: RequestKind = "message") -> str:
    """The partition of a request's idempotency record. Only tenant and owner of ``key`` are used."""
    return _IDEMPOTENCY[kind] + path(key.tenant, key.owner, agent, message_id)


def owner(key: TaskKey | Principal) -> str:
    """The partition of an owner's counters and limits."""
    return "OWNER#" + path(key.tenant, key.owner)


def stream(name: str) -> str:
    """The sort key of an open stream."""
    return STREAMS + encode_name(name)


def challenges(host: str) -> str:
    """The sort key of an owner's challenge state for a host."""
    return CHALLENGES + encode_name(host)


def tick(agent: str, schedule: str) -> str:
    """The sort key of the last tick of an owner's schedule that started a task."""
    return f"TICK#{encode_name(agent)}/{encode_name(schedule)}"


def event(n: int) -> str:
    """The sort key of event ``n``."""
    return f"{EVENTS}{n:010d}"


def event_number(sk: str) -> int:
    """The number of the event with that sort key."""
    return int(sk.removeprefix(EVENTS))


def callback(name: str) -> str:
    """The partition of a callback address, by its name."""
    return "CALLBACK#" + encode_name(name)


def minute(number: int) -> str:
    """The sort key of the count of requests to a callback address in a minute (since the epoch)."""
    return f"MINUTE#{number}"


def document(name: str) -> str:
    """The sort key of a public document."""
    return f"DOCUMENT#{encode_name(name)}"


def step(name: str) -> str:
    """The sort key of a step's result."""
    return STEPS + encode_name(name)


def context(context_id: str) -> str:
    """The beginning of the sort keys of a conversation's values, in the partition of its owner."""
    return f"{CONTEXTS}{encode_name(context_id)}/"


def push(config_id: str) -> str:
    """The sort key of a webhook's configuration."""
    return PUSHES + encode_name(config_id)


def cursor(config_id: str) -> str:
    """The sort key of a webhook's cursor."""
    return CURSORS + encode_name(config_id)


def cursor_config(sk: str) -> str | None:
    """The id of the configuration whose cursor has that sort key; None for any other item."""
    return decode_name(sk.removeprefix(CURSORS)) if sk.startswith(CURSORS) else None


def attempt(config_id: str, n: int, k: int, at: int) -> str:
    """The sort key of one attempt. The time keeps it apart from an attempt with the same number before a redrive."""
    return f"{ATTEMPTS}{encode_name(config_id)}#{n:010d}#{k:05d}#{moment(at)}"


def host(name: str) -> str:
    """The partition of a host's circuit breaker."""
    return HOSTS + encode_name(name)


def shard(key: TaskKey) -> int:
    """The task's shard of the due index."""
    return crc32(encode_name(key.task).encode()) % SHARDS


LAST_MOMENT: Final = 10**13 - 1  # ms: in the year 2286, after all that is due


def moment(at: int) -> str:
    """A time (ms) as a text that sorts in the order of the numbers."""
    return f"{at:015d}"
