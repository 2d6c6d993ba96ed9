"""Partition and sort keys of everything in the table, and the functions that read a key back.

Every component is percent-encoded, so no tenant, owner, task or message id can reach another one's partition. A
client's id that is too long for a key is replaced by its SHA-256; ids of created things must be readable from the key.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote
from zlib import crc32

from a2a_serverless.domain.model import TaskKey
from a2a_serverless.ports.tasks import SHARDS

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Principal

LONGEST: Final = 300
PUBLIC: Final = "PUBLIC"
OPEN: Final = "STREAMS"  # the partition of the open streams of all owners
RECEIPT: Final = "RECEIPT"
CALL: Final = "CALL"
TRIP: Final = "TRIP"
TRY: Final = "TRY"
EXHAUSTED: Final = "exhausted"  # a shard of the due index that the sweeper does not read
HEAD: Final = "HEAD"
EVENTS: Final = "EVENT#"
STEPS: Final = "STEP#"
PUSHES: Final = "PUSH#"
WEBHOOKS: Final = "WEBHOOKS#"
UPLOADED: Final = "UPLOADED#"
SHARE: Final = "SHARE"
UNFINISHED: Final = "UNFINISHED"
ASKED: Final = "ASKED#"
STREAMS: Final = "STREAM#"
VALUES: Final = "VALUE#"
CONTEXTS: Final = "CONTEXT#"
CURSORS: Final = "CURSOR#"
ATTEMPTS: Final = "ATTEMPT#"
LAST: Final = 9_999_999_999
NEWEST: Final = "~"  # sorts after every digit

_TASK: Final = "TASK#"
_HASHED: Final = "sha256="


def task(key: TaskKey) -> str:
    """The partition of a task."""
    return _TASK + path(key.tenant, key.owner, key.task)


def task_key(pk: str) -> TaskKey:
    """The task whose partition ``pk`` is; raises ValueError for any other partition."""
    parts = pk.removeprefix(_TASK).split("/")
    if not pk.startswith(_TASK) or len(parts) != 3 or any(part.startswith(_HASHED) for part in parts):  # noqa: PLR2004
        raise ValueError(f"{pk[:80]!r} is not a task's partition")
    return TaskKey(*(_decoded(part) for part in parts))


def key_of_path(text: str) -> TaskKey:
    """The task for which ``path`` made the text; raises ValueError."""
    return task_key(_TASK + text)


def idempotency(key: TaskKey, agent: str, message_id: str) -> str:
    """The partition of a message's idempotency record. Only tenant and owner of ``key`` are used."""
    return "SENT#" + path(key.tenant, key.owner, agent, message_id)


def owner(key: TaskKey | Principal) -> str:
    """The partition of an owner's counters and limits."""
    return "OWNER#" + path(key.tenant, key.owner)


def stream(name: str) -> str:
    """The sort key of an open stream."""
    return STREAMS + part(name)


def webhooks(day: int) -> str:
    """The sort key of the number of webhooks that an owner registered on a day (days since the epoch)."""
    return f"{WEBHOOKS}{day}"


def uploads(day: int) -> str:
    """The sort key of the number of bytes for which an owner asked for upload slots on a day (days since the epoch)."""
    return f"{UPLOADED}{day}"


def asked(host: str) -> str:
    """The sort key of an owner's challenge state for a host."""
    return ASKED + part(host)


def event(n: int) -> str:
    """The sort key of event ``n``."""
    return f"{EVENTS}{n:010d}"


def event_number(sk: str) -> int:
    """The number of the event with that sort key."""
    return int(sk.removeprefix(EVENTS))


def callback(name: str) -> str:
    """The partition of a callback address, by its name."""
    return "CALLBACK#" + part(name)


def document(name: str) -> str:
    """The sort key of a public document."""
    return f"DOCUMENT#{part(name)}"


def step(name: str) -> str:
    """The sort key of a step's result."""
    return STEPS + part(name)


def context(context_id: str) -> str:
    """The beginning of the sort keys of a conversation's values, in the partition of its owner."""
    return f"{CONTEXTS}{part(context_id)}/"


def push(config_id: str) -> str:
    """The sort key of a webhook's configuration."""
    return PUSHES + part(config_id)


def cursor(config_id: str) -> str:
    """The sort key of a webhook's cursor."""
    return CURSORS + part(config_id)


def cursor_config(sk: str) -> str | None:
    """The id of the configuration whose cursor has that sort key; None for any other item."""
    return _decoded(sk.removeprefix(CURSORS)) if sk.startswith(CURSORS) else None


def attempt(config_id: str, n: int, k: int, at: int) -> str:
    """The sort key of one attempt. The time keeps it apart from an attempt with the same number before a redrive."""
    return f"{ATTEMPTS}{part(config_id)}#{n:010d}#{k:05d}#{moment(at)}"


def host(name: str) -> str:
    """The partition of a host's circuit breaker."""
    return "HOST#" + part(name)


def shard(key: TaskKey) -> int:
    """The task's shard of the due index."""
    return crc32(part(key.task).encode()) % SHARDS


def moment(at: int) -> str:
    """A time (ms) as a text that sorts in the order of the numbers."""
    return f"{at:015d}"


def path(*names: str) -> str:
    """Names joined so that different lists of names always give different texts."""
    return "/".join(map(part, names))


@lru_cache(maxsize=1024)  # one request encodes the same few names about eighteen times
def part(name: str) -> str:
    """One component of a key: percent-encoded, or its digest when that is longer than ``LONGEST``."""
    encoded = quote(name, safe="", errors="surrogatepass")
    return encoded if len(encoded) <= LONGEST else _HASHED + sha256(encoded.encode()).hexdigest()


def check_readable(*names: str) -> None:
    """Raises ValueError when a name is too long to be read back from a key."""
    for name in names:
        if part(name).startswith(_HASHED):
            raise ValueError(f"an id of {len(name)} characters is too long to be stored: {name[:40]!r}...")


def _decoded(component: str) -> str:
    return unquote(component, errors="surrogatepass")
