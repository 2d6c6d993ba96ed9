"""``ports.Contents`` over blobs. Every name begins with tenant and owner, and ends with the content's SHA-256."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters import keys
from a2a_serverless.domain.contents import ContentMissing, StoredFile

if TYPE_CHECKING:
    from a2a_serverless.domain.contents import Slot
    from a2a_serverless.domain.model import Part, Principal, TaskKey
    from a2a_serverless.ports import LinkedBlobs

LINK_S: Final = 3600
SLOT_S: Final = 900


class BlobContents:
    """Contents as blobs."""

    def __init__(self, blobs: LinkedBlobs) -> None:
        self._blobs = blobs

    def keep(self, key: TaskKey, content: bytes) -> StoredFile:
        kept = StoredFile(key.task, sha256(content).hexdigest(), len(content))
        self._blobs.put(keys.path(key.tenant, key.owner, key.task) + f"/{kept.sha256}", content)
        return kept

    def read(self, who: Principal, content: StoredFile) -> bytes:
        try:
            found = self._blobs.get(_name(who, content), content.size)
        except KeyError:
            raise ContentMissing(f"{content.address} is not there") from None
        if len(found) != content.size or sha256(found).hexdigest() != content.sha256:
            raise ContentMissing(f"{content.address} is not what was stored")
        return found

    def has(self, who: Principal, content: StoredFile) -> bool:
        return content.size > 0 and self._blobs.size(_name(who, content)) == content.size

    def link(self, who: Principal, content: StoredFile, part: Part) -> str:
        return self._blobs.link(_name(who, content), LINK_S, part.filename)

    def slot(self, who: Principal, content: StoredFile) -> Slot:
        return self._blobs.slot(_name(who, content), content.sha256, content.size, SLOT_S)


def _name(who: Principal, content: StoredFile) -> str:
    return keys.path(who.tenant, who.owner, content.place) + f"/{content.sha256}"
