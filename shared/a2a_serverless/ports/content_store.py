"""Content outside the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_serverless.domain.contents import StoredFile, UploadSlot
    from a2a_serverless.domain.model import Principal, TaskKey
    from a2a_serverless.domain.outbound import Outcome
    from a2a_serverless.protocol.v1 import Part


class BlobStore(Protocol):
    """Large content, written once under a name that ends with its SHA-256, and shared by presigned URL."""

    def put(self, name: str, content: bytes) -> None:
        """Stores ``content``. Idempotent."""

    def get(self, name: str, size: int | None = None) -> bytes:
        """The content; raises KeyError when it is absent or does not have ``size`` bytes."""

    def list_names(self, prefix: str) -> Iterator[str]:
        """The names that begin with ``prefix``."""

    def delete(self, name: str) -> None:
        """Deletes a blob. Nothing happens if it is absent."""

    def presign_get(self, name: str, seconds: int, filename: str | None = None) -> str:
        """A URL that returns the content for ``seconds``, without credentials; ``filename`` is for saving it."""

    def presign_put(self, name: str, sha256: str, size: int, seconds: int) -> UploadSlot:
        """A request that uploads content with exactly that SHA-256 (hex) and size (bytes), valid for ``seconds``."""

    def size(self, name: str) -> int | None:
        """The size of the content in bytes; None when it is absent."""


class ContentStore(Protocol):
    """Content outside the log (``domain.contents``). Owners can access only their own content."""

    def store(self, key: TaskKey, content: bytes) -> StoredFile:
        """Stores content that a task produced. Idempotent."""

    def read(self, principal: Principal, content: StoredFile) -> bytes:
        """The content, after a check of its SHA-256; raises ContentNotFound."""

    def exists(self, principal: Principal, content: StoredFile) -> bool:
        """Whether the content is stored with its full size."""

    def presign_get(self, principal: Principal, content: StoredFile, part: Part) -> str:
        """A URL that returns the content of ``part`` for an hour, without credentials."""

    def presign_put(self, principal: Principal, content: StoredFile) -> UploadSlot:
        """A request that uploads the content, valid for a quarter of an hour."""


UrlFetcher: TypeAlias = "Callable[[str], Outcome]"
"""Fetches a file from a client's URL, by one GET from checked addresses, without redirects. Never raises.

The file has at most ``domain.contents.LARGEST`` bytes.
"""
