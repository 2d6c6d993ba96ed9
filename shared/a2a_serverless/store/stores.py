"""The stores beside the logs: public documents, lists of tasks, owners' counters, pauses, open breakers, files.

Public documents (the key set, the cards, the base URL) never expire.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.contents import ContentNotFound, StoredFile
from a2a_serverless.domain.model import encode_name, path
from a2a_serverless.store import items, keys
from a2a_serverless.store.stored_forms import dump_json
from a2a_serverless.store.table import Count, Put, PutNew, TableStore

if TYPE_CHECKING:
    from a2a_serverless.domain.circuit_breaker import OpenBreaker
    from a2a_serverless.domain.contents import UploadSlot
    from a2a_serverless.domain.model import Json, Principal, TaskKey
    from a2a_serverless.ports.system import BlobStore
    from a2a_serverless.protocol.v1 import Part
    from a2a_serverless.store.items import TaskEntry

LINK_S: Final = 3600
SLOT_S: Final = 900


class Publications(TableStore):
    """Public documents that the rotator function writes and the API serves: the key set, cards, the base URL.

    They never expire.
    """

    def publish(self, name: str, document: Json) -> None:
        """Stores a document."""
        body = {"body": {"S": dump_json(document)}}
        self._table.write(Put(items.make_item(keys.PUBLIC, keys.document(name), None, body)))

    def get_document(self, name: str) -> Json:
        """The document, or None."""
        item = self._table.get(keys.PUBLIC, keys.document(name))
        found: Json = json.loads(items.readable(item)["body"]["S"]) if item else None
        return found


class TaskIndex(TableStore):
    """A caller's tasks, newest status first; tasks of the same millisecond by id, descending.

    Read from the two list indexes, which are eventually consistent.
    """

    def list_page(
        self, principal: Principal, context_id: str | None, after: str | None, since: int, limit: int
    ) -> tuple[list[TaskEntry], str | None]:
        """At most ``limit`` entries after ``after``, with a status since ``since`` (ms), and the next position."""
        owner = path(principal.tenant, principal.owner)
        index, held = "by_owner", ("own", owner)
        if context_id is not None:
            index, held = "by_context", ("own_ctx", f"{owner}/{encode_name(context_id)}")
        # The entry at ``after`` comes along and is dropped; one entry more shows whether there is a next page.
        rows = self._table.query_newest(index, held, keys.moment(since), after or keys.NEWEST, limit + 2)
        later = [item for item in rows if item["st"]["S"] != after]
        entries = list(items.read_each(items.entry_of, later[:limit]))
        return entries, later[limit - 1]["st"]["S"] if len(later) > limit else None


class OwnerStore(TableStore):
    """How much of its quota each owner has used. It may be lost without harm."""

    def count(self, principal: Principal, kind: str, window: int, window_ms: int, amount: int, limit: int) -> bool:
        """Adds to the owner's count in a window (its number since the epoch), unless that would exceed ``limit``.

        ``kind`` begins the sort key (``keys.SENDS``). The count expires after the next window.
        """
        if amount > limit:
            return False
        place = items.make_place(keys.owner(principal), f"{kind}{window}")
        return self._table.write(Count(place, "used", limit, (window + 2) * window_ms // 1000, by=amount)) is None

    def lease_stream(self, principal: Principal, name: str, until: int) -> None:
        """Counts a stream of the owner as open until ``until`` (ms). A further call replaces that time."""
        for pk in (keys.owner(principal), keys.OPEN):
            self._table.write(Put(items.make_item(pk, keys.stream(name), -(-until // 1000), {})))

    def release_stream(self, principal: Principal, name: str) -> None:
        """Removes a stream. Nothing happens if it is absent."""
        self._table.erase(items.make_place(pk, keys.stream(name)) for pk in (keys.owner(principal), keys.OPEN))

    def count_streams(self, principal: Principal | None, limit: int) -> int:
        """The number of the owner's open streams, or of all for None; counting stops at ``limit``."""
        streams = self._table.query_prefix(keys.owner(principal) if principal else keys.OPEN, keys.STREAMS)
        return sum(1 for _, _ in zip(range(limit), streams, strict=False))


class PauseStore(TableStore):
    """The agents and owners whose work an operator has paused. They never expire."""

    def list_pauses(self) -> dict[str, int]:
        """When each pause began (ms), by its name (``agent_pause``, ``owner_pause``).

        One that cannot be read, of a newer release, has begun long ago.
        """
        rows = list(self._table.query_range(keys.PAUSES, "A", keys.NEWEST))
        since = items.read_each(lambda item: (item["sk"]["S"], int(items.readable(item)["at"]["N"])), rows)
        return {item["sk"]["S"]: 0 for item in rows} | dict(since)

    def add_pause(self, name: str, at: int) -> None:
        """Stores a pause, unless it is stored."""
        self._table.write(PutNew(items.make_item(keys.PAUSES, name, None, {"at": {"N": str(at)}})))

    def remove_pause(self, name: str) -> None:
        """Deletes a pause. Nothing happens if it is absent."""
        self._table.erase([items.make_place(keys.PAUSES, name)])


def agent_pause(agent: str) -> str:
    """The name of the pause of an agent."""
    return f"AGENT#{encode_name(agent)}"


def owner_pause(owner: TaskKey | Principal) -> str:
    """The name of the pause of an owner."""
    return f"OWNER#{path(owner.tenant, owner.owner)}"


class BreakerStore(TableStore):
    """Open circuit breakers, shared between instances. They may be lost without harm."""

    def get_open_breaker(self, host: str) -> OpenBreaker | None:
        """The host's open breaker that was stored last, until an hour after its time; None without one."""
        from a2a_serverless.domain.circuit_breaker import OpenBreaker

        item = self._table.get(keys.host(host), keys.BREAKER)
        return items.record_of(OpenBreaker, item) if item else None

    def store_open_breaker(self, host: str, open_breaker: OpenBreaker) -> None:
        """Stores an open breaker, or that the host has answered, for the other instances."""
        from a2a_serverless.domain.circuit_breaker import FORGET_MS

        expires = (open_breaker.until + FORGET_MS) // 1000
        self._table.write(Put(items.make_item(keys.host(host), keys.BREAKER, expires, items.record_item(open_breaker))))

    def claim_try(self, host: str, holder: str, until: int) -> bool:
        """Claims the one try at a host that has to wait, until ``until`` (ms). False if another one holds it."""
        claim = {"holder": {"S": holder}}
        item = items.make_item(keys.host(host), keys.TRY, -(-until // 1000), claim)
        if self._table.write(PutNew(item)) is None:
            return True
        holder_item = self._table.get(keys.host(host), keys.TRY)  # the answer to the write may have been lost
        return holder_item is not None and holder_item["holder"] == claim["holder"]


class ContentStore:
    """Content outside the log (``domain.contents``), in blobs. Owners can access only their own content.

    Each name begins with tenant and owner and ends with the content's SHA-256.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    def store(self, key: TaskKey, content: bytes) -> StoredFile:
        """Stores content that a task produced. Idempotent."""
        file = _file(key, content)
        self._blobs.put(_name(key, file), content)
        return file

    def find(self, key: TaskKey, content: bytes) -> StoredFile | None:
        """The file with this content, if the task has stored it. The file is not read."""
        file = _file(key, content)
        return file if self.exists(key, file) else None

    def read(self, principal: Principal, content: StoredFile) -> bytes:
        """The content, after a check of its SHA-256; raises ContentNotFound."""
        try:
            body = self._blobs.get(_name(principal, content), content.size)
        except KeyError:
            raise ContentNotFound(f"{content.address} is not there") from None
        if len(body) != content.size or sha256(body).hexdigest() != content.sha256:
            raise ContentNotFound(f"{content.address} is not what was stored")
        return body

    def exists(self, principal: Principal | TaskKey, content: StoredFile) -> bool:
        """Whether the content is stored with its full size."""
        return content.size > 0 and self._blobs.size(_name(principal, content)) == content.size

    def presign_get(self, principal: Principal, content: StoredFile, part: Part) -> str:
        """A URL that returns the content of ``part`` for ``LINK_S`` seconds, without credentials."""
        return self._blobs.presign_get(_name(principal, content), LINK_S, part.filename)

    def presign_put(self, principal: Principal, content: StoredFile) -> UploadSlot:
        """A request that uploads the content, valid for ``SLOT_S`` seconds."""
        return self._blobs.presign_put(_name(principal, content), content.sha256, content.size, SLOT_S)


def _file(key: TaskKey, content: bytes) -> StoredFile:
    return StoredFile(key.task, sha256(content).hexdigest(), len(content))


def _name(owner: Principal | TaskKey, content: StoredFile) -> str:
    return path(owner.tenant, owner.owner, content.place) + f"/{content.sha256}"
