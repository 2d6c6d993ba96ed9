"""``ports.ContentStore`` over blobs. Every name begins with tenant and owner, and ends with the content's SHA-256."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.dynamodb import keys
from a2a_serverless.domain.contents import ContentNotFound, StoredFile, UploadSlot

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Principal, TaskKey
    from a2a_serverless.ports.contents import PresignedBlobStore
    from a2a_serverless.protocol.v1 import Part

LINK_S: Final = 3600
SLOT_S: Final = 900


class BlobContentStore:
    """Contents, each stored as one blob."""

    def __init__(self, blobs: PresignedBlobStore) -> None:
        self._blobs = blobs

    def store(self, key: TaskKey, content: bytes) -> StoredFile:
        kept = StoredFile(key.task, sha256(content).hexdigest(), len(content))
        self._blobs.put(keys.path(key.tenant, key.owner, key.task) + f"/{kept.sha256}", content)
        return kept

    def read(self, principal: Principal, content: StoredFile) -> bytes:
        try:
            found = self._blobs.get(_name(principal, content), content.size)
        except KeyError:
            raise ContentNotFound(f"{content.address} is not there") from None
        if len(found) != content.size or sha256(found).hexdigest() != content.sha256:
            raise ContentNotFound(f"{content.address} is not what was stored")
        return found

    def exists(self, principal: Principal, content: StoredFile) -> bool:
        return content.size > 0 and self._blobs.size(_name(principal, content)) == content.size

    def presign_get(self, principal: Principal, content: StoredFile, part: Part) -> str:
        return self._blobs.presign_get(_name(principal, content), LINK_S, part.filename)

    def presign_put(self, principal: Principal, content: StoredFile) -> UploadSlot:
        return self._blobs.presign_put(_name(principal, content), content.sha256, content.size, SLOT_S)


def _name(principal: Principal, content: StoredFile) -> str:
    return keys.path(principal.tenant, principal.owner, content.place) + f"/{content.sha256}"
