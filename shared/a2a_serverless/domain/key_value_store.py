"""The values that an agent keeps, as its function reads and writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless.domain.model import Json


class VersionConflict(Exception):
    """A value was not written, because its stored version is not the expected version."""


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A stored value. ``version`` identifies the write that stored it."""

    key: str
    value: Json | bytes
    version: str


class KeyValueStore(Protocol):
    """Values by key, of at most 10 MiB: bytes or what has a JSON form, under keys of 1 to 512 characters (encoded).

    Reads return the present values, in every run. Each write costs one transaction, without ``version`` also a read,
    and needs the task's lease. Other keys and values raise ValueError or TypeError.
    """

    async def get(self, key: str) -> StoredValue | None:
        """The value, or None."""

    async def list(self, prefix: str = "", *, after: str = "", limit: int = 100) -> Sequence[StoredValue]:
        """The values whose keys begin with ``prefix``, in a fixed order: at most ``limit`` (1000), after ``after``."""

    async def put(self, key: str, value: Json | bytes, *, version: str | None = None) -> str:
        """Stores a value and returns its version.

        ``version`` is the version to replace, "" if no value may be stored. Raises ``VersionConflict`` if another
        version is stored. Without ``version`` any value is replaced.
        """

    async def delete(self, key: str, *, version: str | None = None) -> None:
        """Deletes a value, if there is one; ``version`` as in ``put``."""
