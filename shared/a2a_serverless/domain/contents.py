"""Content that lies beside the log: which part of a message or an artifact names some, and by which address.

The address is a ``url`` of ours, ``a2a-file:<place>/<sha256>/<size>``: the place is the task that made the content, or
``uploads``. It says nothing of whose it is. Whoever resolves it does so among the contents of the owner that asks, so
the address of another owner's content names nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Part

SCHEME: Final = "a2a-file:"
UPLOADS: Final = "uploads"
LARGEST: Final = 100 * 1024 * 1024
_ADDRESS: Final = re.compile(r"a2a-file:([A-Za-z0-9_-]{1,128})/([0-9a-f]{64})/(0|[1-9][0-9]{0,11})")


class ContentNotFound(Exception):
    """There is no such content, or it is not what its address says."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Where content lies and what it is: the SHA-256 in hex, the size in bytes."""

    place: str
    sha256: str
    size: int

    @property
    def address(self) -> str:
        """The value of a ``url`` part that names it."""
        return f"{SCHEME}{self.place}/{self.sha256}/{self.size}"


@dataclass(frozen=True, slots=True)
class UploadSlot:
    """Where to PUT an upload, and the headers that have to go along."""

    url: str
    headers: dict[str, str]


def file_of(part: Part) -> StoredFile | None:
    """The content that a part names; None when it names none of ours."""
    found = _ADDRESS.fullmatch(str(part.value)) if part.kind == "url" else None
    return StoredFile(found[1], found[2], int(found[3])) if found else None
