"""Expectations and replay memory in one SQLite file, for a laptop or a single server.

Every method is one transaction under one lock, so a crash leaves all of its changes or none.
"""

import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from a2a_webhook_receiver.errors import Replayed, StillWorking
from a2a_webhook_receiver.expectations import Expectation
from a2a_webhook_receiver.replay import CLAIM, REMEMBER, Admitted, Duplicate, Sighting

_SCHEMA = """
CREATE TABLE IF NOT EXISTS expectation (
    id TEXT PRIMARY KEY, expires INTEGER NOT NULL, task_id TEXT, token_digest TEXT, authorization_digest TEXT,
    agent_url TEXT
);
CREATE INDEX IF NOT EXISTS expectation_task ON expectation (task_id);
CREATE INDEX IF NOT EXISTS expectation_token ON expectation (token_digest);
CREATE TABLE IF NOT EXISTS attempt (jti TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, expires INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS notification (
    task_id TEXT, config_id TEXT, id TEXT, event_number INTEGER NOT NULL, claim INTEGER, expires INTEGER NOT NULL,
    PRIMARY KEY (task_id, config_id, id)
);
"""
_EXPECTATION = "id, expires, task_id, token_digest, authorization_digest, agent_url"
_NOTIFICATION = "task_id = :task_id AND config_id = :config_id AND id = :id"


class SqliteStore:
    """``Expectations`` and ``ReplayStore`` in one file. ``path`` may be ``:memory:``.

    It is closed when nobody has it any more.
    """

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.close = weakref.finalize(self, self._connection.close)
        self._connection.executescript("PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000;" + _SCHEMA)

    def add(self, expectation: Expectation) -> None:
        values = (
            expectation.id,
            expectation.expires,
            expectation.task_id,
            expectation.token_digest,
            expectation.authorization_digest,
            expectation.agent_url,
        )
        with self._transaction() as connection:
            connection.execute("INSERT INTO expectation VALUES (?, ?, ?, ?, ?, ?)", values)

    def find(self, task_id: str, token_digest: str | None, now: int) -> tuple[Expectation, ...]:
        query = f"SELECT {_EXPECTATION} FROM expectation WHERE (task_id = ? OR token_digest = ?) AND expires > ?"  # noqa: S608
        with self._transaction() as connection:
            rows = connection.execute(query, (task_id, token_digest, now)).fetchall()
        return tuple(Expectation(*row) for row in rows)

    def bind(self, expectation: Expectation, task_id: str) -> bool:
        statement = "UPDATE expectation SET task_id = ? WHERE id = ? AND (task_id IS NULL OR task_id = ?)"
        with self._transaction() as connection:
            return connection.execute(statement, (task_id, expectation.id, task_id)).rowcount == 1

    def any_open(self, now: int) -> bool:
        with self._transaction() as connection:
            row = connection.execute("SELECT 1 FROM expectation WHERE expires > ? LIMIT 1", (now,)).fetchone()
        return row is not None

    def list_open(self, now: int, limit: int) -> tuple[Expectation, ...]:
        query = f"SELECT {_EXPECTATION} FROM expectation WHERE expires > ? ORDER BY expires DESC, rowid DESC LIMIT ?"  # noqa: S608
        with self._transaction() as connection:
            return tuple(Expectation(*row) for row in connection.execute(query, (now, limit)).fetchall())

    def admit(self, sighting: Sighting, now: int) -> Admitted | Duplicate:
        with self._transaction() as connection:
            _forget_expired(connection, now)
            _check_jti(connection, sighting)
            row = connection.execute(
                f"SELECT claim FROM notification WHERE {_NOTIFICATION}",  # noqa: S608 - a constant of ours
                _names(sighting),
            ).fetchone()
            if row is not None and row[0] is None:
                return Duplicate()
            if row is not None and row[0] > now:
                raise StillWorking("an earlier attempt is being worked on", (row[0] - now) // 1000 + 1)
            return _claim(connection, sighting, now)

    def settle(self, sighting: Sighting, admitted: Admitted) -> None:
        statement = f"UPDATE notification SET claim = NULL WHERE {_NOTIFICATION} AND claim = :claim"  # noqa: S608
        with self._transaction() as connection:
            connection.execute(statement, _names(sighting) | {"claim": admitted.claim})

    def release(self, sighting: Sighting, admitted: Admitted) -> None:
        statement = f"UPDATE notification SET claim = 0 WHERE {_NOTIFICATION} AND claim = :claim"  # noqa: S608
        with self._transaction() as connection:
            connection.execute(statement, _names(sighting) | {"claim": admitted.claim})

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


def _names(sighting: Sighting) -> dict[str, str | int]:
    return {"task_id": sighting.task_id, "config_id": sighting.config_id, "id": sighting.notification_id}


def _forget_expired(connection: sqlite3.Connection, now: int) -> None:
    for table in ("expectation", "attempt", "notification"):
        connection.execute(f"DELETE FROM {table} WHERE expires <= ?", (now,))  # noqa: S608 - names of ours


def _check_jti(connection: sqlite3.Connection, sighting: Sighting) -> None:
    row = connection.execute("SELECT fingerprint FROM attempt WHERE jti = ?", (sighting.jti,)).fetchone()
    if row is not None and row[0] != sighting.fingerprint:
        raise Replayed("the token was used before with other content")
    values = (sighting.jti, sighting.fingerprint, sighting.jti_expires)
    connection.execute("INSERT OR IGNORE INTO attempt VALUES (?, ?, ?)", values)


def _claim(connection: sqlite3.Connection, sighting: Sighting, now: int) -> Admitted:
    last = connection.execute(
        "SELECT max(event_number) FROM notification WHERE task_id = ? AND config_id = ?",
        (sighting.task_id, sighting.config_id),
    ).fetchone()[0]
    claimed = _names(sighting) | {"n": sighting.event_number, "claim": now + CLAIM, "expires": now + REMEMBER}
    connection.execute(
        "INSERT OR REPLACE INTO notification VALUES (:task_id, :config_id, :id, :n, :claim, :expires)", claimed
    )
    return Admitted(late=last is not None and sighting.event_number < last, claim=now + CLAIM)
