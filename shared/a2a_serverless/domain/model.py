"""JSON values, lengths of time, and the keys of tasks: tenant, owner and id.

The objects of A2A are in ``protocol/v1.py``. All times in the library whose names do not tell another unit are in ms.

A path joins names to one text, for keys of the table, of the bucket and of queues, and for operators. Every name is
percent-encoded, so no tenant, owner or id can reach a path of another. A path contains the SHA-256 of a name that is
too long, so that the name cannot be read back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote, unquote

MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"

OWN_NAMES: Final = "a2a-serverless/"
"""The beginning of the library's names in metadata. Of a client they are refused, but for the budget of a message."""
NAME_LIMIT: Final = 300
"""Characters of a percent-encoded name in a path."""
_HASHED: Final = "sha256="


class TaskKey(NamedTuple):
    """A task's tenant, owner and id. Callers cannot reach tasks of other owners: every key starts with both."""

    tenant: str
    owner: str
    task: str


@dataclass(frozen=True, slots=True)
class Principal:
    """The tenant and owner of a caller; every key that the caller can reach starts with them.

    A dataclass, because agents get it (``TaskContext.caller``) and may pass it to a step: see ``domain/digests.py``.
    """

    tenant: str
    owner: str

    def key(self, task: str) -> TaskKey:
        """The key of one of this principal's tasks."""
        return TaskKey(self.tenant, self.owner, task)


def path(*names: str) -> str:
    """Names joined so that different lists of names always give different texts."""
    return "/".join(map(encode_name, names))


def key_of_path(text: str) -> TaskKey:
    """The task of the path ``text`` (``path(*key)``); raises ValueError for any other text."""
    names = text.split("/")
    if len(names) != len(TaskKey._fields) or any(name.startswith(_HASHED) for name in names):
        raise ValueError(f"{text[:80]!r} is not a task's path")
    return TaskKey(*map(decode_name, names))


@lru_cache(maxsize=1024)  # one request encodes the same few names about eighteen times
def encode_name(name: str) -> str:
    """One name of a path: percent-encoded, or its digest when that is longer than ``NAME_LIMIT``."""
    encoded = quote(name, safe="", errors="surrogatepass")
    return encoded if len(encoded) <= NAME_LIMIT else _HASHED + sha256(encoded.encode()).hexdigest()


def decode_name(text: str) -> str:
    """The name of a percent-encoded text of ``encode_name``."""
    return unquote(text, errors="surrogatepass")


def is_utf8(text: str) -> bool:
    """Whether the text has no lone surrogate, which UTF-8 cannot encode: neither the table nor JSON could hold it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_readable(*names: str) -> None:
    """Raises ValueError when a name is too long to be read back from a path."""
    for name in names:
        if encode_name(name).startswith(_HASHED):
            raise ValueError(f"an id of {len(name)} characters is too long to be stored: {name[:40]!r}...")
