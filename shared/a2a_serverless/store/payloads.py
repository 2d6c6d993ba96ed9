"""Where the texts of the log are stored.

A text is stored in its item or, above the inline limit, as a blob to which the item points. The blob is written before
the item, and its name ends with its SHA-256, so a pointer always leads to complete content. The item of an event with
large content has an outline of the event as well (``domain/events.py``).
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from a2a_serverless.domain.model import path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports.system import BlobStore
    from a2a_serverless.store.items import Item

Admit: TypeAlias = "Callable[[int], bool]"
"""Is called with the bytes of each text before the text is read. False ends the reading there; it may raise, too."""
ITEM_TEXT_LIMIT: Final = 300 * 1024


class PayloadCorrupted(RuntimeError):
    """A blob is missing, or its content differs from the stored SHA-256."""


class PayloadStore:
    """Stores texts of any size. ``limit`` is the longest (in bytes of UTF-8) that stays in an item."""

    def __init__(self, blobs: BlobStore, limit: int = ITEM_TEXT_LIMIT) -> None:
        self._blobs = blobs
        self._limit = limit

    def store(self, key: TaskKey, text: str) -> Item:
        """Stores a text; returns the attributes that hold it or point to its blob."""
        content = text.encode()
        if len(content) <= self._limit:
            return {"body": {"S": text}}
        return self.put(key, content)

    def put(self, key: TaskKey, content: bytes) -> Item:
        """Stores content as a blob, whatever its size; returns the attributes that point to it."""
        digest = sha256(content).hexdigest()
        self._blobs.put(_name(key, digest), content)
        return pointer(key, digest, len(content))

    def fetch(self, item: Mapping[str, Any]) -> str:
        """The text for which ``store`` returned ``item``; raises PayloadCorrupted for a missing or changed blob."""
        if "body" in item:
            return str(item["body"]["S"])
        name, size = str(item["blob"]["S"]), int(item["size"]["N"])
        try:
            content = self._blobs.get(name, size)
        except KeyError:
            content = b""
        if len(content) != size or not name.endswith(sha256(content).hexdigest()):
            raise PayloadCorrupted(f"blob {name} is gone or is not what was stored")
        return content.decode()


def pointer(key: TaskKey, digest: str, size: int) -> Item:
    """The attributes that point to a blob of a task, by its SHA-256 (hex) and its size in bytes."""
    return {"blob": {"S": _name(key, digest)}, "size": {"N": str(size)}}


def _name(key: TaskKey, digest: str) -> str:
    return f"{path(*key)}/{digest}"
