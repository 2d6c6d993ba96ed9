"""A file that keeps what a deployment in one process has: table, bucket, queue and signing keys.

The dictionaries of ``testing.memory`` answer every read. Each write is in the file before it is in a dictionary, so a
process that is killed at any moment has lost nothing that it has answered.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import defaultdict
from dataclasses import asdict
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING, Final
from weakref import finalize

from pydantic import TypeAdapter

from a2a_serverless.domain import queue_messages
from a2a_serverless.domain.key_ring import KeyRing
from a2a_serverless.domain.queue_messages import QueueMessage
from a2a_serverless.store import keys
from a2a_serverless.store.items import is_live
from a2a_serverless.testing.memory import (
    MemoryBlobStore,
    MemoryKeyRingStore,
    MemoryQueues,
    MemoryStores,
    MemoryTable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.store.items import Item
    from a2a_serverless.testing.memory import Change

ITEMS, BLOBS, MESSAGES, KEY_RING = "item", "blob", "message", "key ring"
_MODE: Final = 0o600  # it has webhook secrets and private keys
FORM: Final = 1
"""The number of the form of entries, which a file has in ``PRAGMA user_version``. It grows with each change of it."""
_SETTINGS: Final = """
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
BEGIN EXCLUSIVE; COMMIT; -- takes the lock also for reading
"""
_SCHEMA: Final = f"""
BEGIN;
CREATE TABLE entry (kind TEXT, name TEXT, content BLOB, PRIMARY KEY (kind, name)) WITHOUT ROWID;
PRAGMA user_version = {FORM};
COMMIT;
"""


class StateInUse(Exception):
    """Another process has the file."""


class StateUnreadable(Exception):
    """The file is no state, or has another form."""


class State:
    """Named contents by kind, in ``file``, or in memory without one. ``fresh`` forgets what the file has.

    One process has a file at a time. Raises StateInUse and StateUnreadable.
    """

    def __init__(self, file: Path | None = None, *, fresh: bool = False) -> None:
        self._lock = RLock()
        try:
            self._connection = _open(file, fresh=fresh)
        except StateUnreadable:
            if not fresh or file is None:
                raise
            for one in file.parent.glob(f"{file.name}*"):
                one.unlink()
            self._connection = _open(file)
        self.close = finalize(self, self._connection.close)

    def read(self, kind: str) -> list[tuple[str, bytes]]:
        """The names and contents of a kind."""
        with self._lock:
            return self._connection.execute("SELECT name, content FROM entry WHERE kind = ?", (kind,)).fetchall()

    def write(self, kind: str, changes: Iterable[tuple[str, bytes | None]]) -> None:
        """Makes all changes or none; the content None deletes a name."""
        with self._lock, self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            for name, content in changes:
                if content is None:
                    self._connection.execute("DELETE FROM entry WHERE kind = ? AND name = ?", (kind, name))
                else:
                    self._connection.execute("REPLACE INTO entry VALUES (?, ?, ?)", (kind, name, content))


def _open(file: Path | None, *, fresh: bool = False) -> sqlite3.Connection:
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, _MODE))
    connection = sqlite3.connect(file or ":memory:", timeout=0, check_same_thread=False, isolation_level=None)
    try:
        connection.executescript(_SETTINGS)
        _check_form(connection, file)
        if fresh:
            connection.execute("DELETE FROM entry")
    except sqlite3.DatabaseError as error:
        connection.close()
        if isinstance(error, sqlite3.OperationalError):
            raise StateInUse(f"Another process has {file}.") from error
        raise StateUnreadable(f"{file} has no tasks of `dev`: {error}.") from error
    except StateUnreadable:
        connection.close()
        raise
    return connection


def _check_form(connection: sqlite3.Connection, file: Path | None) -> None:
    """Makes the table in an empty file. Raises StateUnreadable for a file of another form."""
    if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,):
        connection.executescript(_SCHEMA)
    (form,) = connection.execute("PRAGMA user_version").fetchone()
    if form != FORM:
        other = "a newer" if form > FORM else "an older"
        raise StateUnreadable(f"{file} has the tasks of {other} `dev`: its form is {form}, and this one reads {FORM}.")


class StateStores(MemoryStores):
    """The stores of a deployment whose items and blobs are in a state."""

    def __init__(self, state: State, now: Callable[[], int], on_feed: Callable[[], object]) -> None:
        self._state = state
        super().__init__(now, on_feed)
        items: dict[str, Item] = {name: json.loads(content) for name, content in state.read(ITEMS)}
        expired = {name for name, item in items.items() if not is_live(item, now())}
        state.write(ITEMS, ((name, None) for name in expired))
        self.items.load(item for name, item in items.items() if name not in expired)

    def list_webhook_tasks(self) -> list[TaskKey]:
        """The tasks that have webhooks."""
        return [
            keys.task_key(pk)
            for pk, items in self.items.partitions.items()
            if any(sk.startswith(keys.CURSORS) for sk in items)
        ]

    def make_table(self, now: Callable[[], int], on_put: Callable[[Item], None]) -> MemoryTable:
        return MemoryTable(now, on_put, self._save)

    def make_blobs(self) -> MemoryBlobStore:
        return _StateBlobs(self._state)

    def _save(self, changes: Sequence[Change]) -> None:
        self._state.write(
            ITEMS, ((_name(*place), None if item is None else json.dumps(item).encode()) for place, item in changes)
        )


def _name(pk: str, sk: str) -> str:
    return json.dumps([pk, sk])


class _StateBlobs(MemoryBlobStore):
    def __init__(self, state: State) -> None:
        super().__init__()
        self._state = state
        self.content.update(state.read(BLOBS))

    def put(self, name: str, content: bytes) -> None:
        self._state.write(BLOBS, [(name, content)])
        super().put(name, content)

    def delete(self, name: str) -> None:
        self._state.write(BLOBS, [(name, None)])
        super().delete(name)


class StateQueues(MemoryQueues):
    """Queue messages in a state. A message that was taken stays in the file until its handling has ended."""

    def __init__(self, state: State, now: Callable[[], int], on_enqueue: Callable[[], object]) -> None:
        super().__init__(now, on_enqueue)
        self._state, self._taken = state, defaultdict[QueueMessage, list[int]](list)
        for name, content in state.read(MESSAGES):
            due, body = json.loads(content)
            self._heap.append((due, int(name), queue_messages.from_json(body)))
        self._heap.sort()
        self._order = count(max((number for _, number, _ in self._heap), default=0) + 1)

    def _push(self, due: int, message: QueueMessage) -> int:
        number = super()._push(due, message)
        self._state.write(MESSAGES, [(str(number), json.dumps([due, queue_messages.to_json(message)]).encode())])
        return number

    def _take(self, until: int) -> tuple[int, int, QueueMessage] | None:
        if row := super()._take(until):
            self._taken[row[2]].append(row[1])
        return row

    def finish(self, message: QueueMessage, *, is_handled: bool) -> None:
        super().finish(message, is_handled=is_handled)
        with self._lock:
            number = self._taken[message].pop()
            if not self._taken[message]:
                del self._taken[message]
        self._state.write(MESSAGES, [(str(number), None)])


class StateKeyRing(MemoryKeyRingStore):
    """``ports.KeyRingStore`` in a state."""

    def __init__(self, state: State) -> None:
        rings = state.read(KEY_RING)
        super().__init__(TypeAdapter(KeyRing).validate_json(rings[0][1]) if rings else None)
        self._state = state

    def save(self, ring: KeyRing, before: KeyRing | None) -> bool:
        with self._lock:
            if self.ring == before:
                self._state.write(KEY_RING, [("", json.dumps(asdict(ring)).encode())])
            return super().save(ring, before)
