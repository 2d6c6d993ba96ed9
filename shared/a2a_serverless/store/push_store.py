"""Webhooks: their configurations, cursors and attempts, and the challenges of hosts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.challenges import ChallengeState
from a2a_serverless.domain.cursors import Cursor, CursorState, close_cursor
from a2a_serverless.domain.model import check_readable
from a2a_serverless.domain.push_configs import Attempt, PushConfig
from a2a_serverless.store import items, keys
from a2a_serverless.store.table import Count, Delete, Put, PutNew, TableStore, Update

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.store.items import Item
    from a2a_serverless.store.table import Action

DAY_S: Final = 86_400


class PushStore(TableStore):
    """Webhook configurations, their cursors and the attempts."""

    def add_config(
        self, before: Head, after: Head, config: PushConfig, cursor: Cursor, replaced: Cursor | None = None
    ) -> bool:
        """Writes a configuration and its cursor and updates the head. False if head or ``replaced`` has changed."""
        check_readable(config.config_id)
        old, new = items.head_item(before), items.head_item(after)
        refusal = self._table.write(
            Update(items.make_place(keys.task(before.key), keys.HEAD), old, new, {"rev": old.get("rev")}),
            *config_actions(after, config, cursor, replaced),
        )
        if refusal is None:
            return True
        stored = self.get_config(before.key, config.config_id)
        return stored is not None and stored.incarnation == config.incarnation

    def close_config(self, key: TaskKey, before: Cursor) -> bool:
        """Deletes a cursor's configuration and closes the cursor. False when the cursor no longer equals ``before``."""
        after = close_cursor(before)
        refusal = self._table.write(
            Delete(
                items.make_place(keys.task(key), keys.push(before.config_id)),
                {"incarnation": {"S": before.incarnation}},
            ),
            _move_action(key, before, after),
        )
        return refusal is None or self.get_cursor(key, before.config_id) == after

    def get_config(self, key: TaskKey, config_id: str) -> PushConfig | None:
        """A configuration, or None."""
        item = self._table.get(keys.task(key), keys.push(config_id))
        return items.record_of(PushConfig, item) if item else None

    def list_configs(self, key: TaskKey) -> list[PushConfig]:
        """The readable configurations of a task, by id."""
        rows = self._table.query_prefix(keys.task(key), keys.PUSHES)
        configs = items.read_each(partial(items.record_of, PushConfig), rows)
        return sorted(configs, key=lambda config: config.config_id)

    def list_cursors(self, key: TaskKey) -> list[Cursor]:
        """The readable cursors of a task, by config id."""
        return self.scan_cursors(key)[0]

    def scan_cursors(self, key: TaskKey) -> tuple[list[Cursor], int]:
        """The readable cursors of a task, by config id, and how many others it has."""
        rows = list(self._table.query_prefix(keys.task(key), keys.CURSORS))
        cursors = list(items.read_each(partial(items.record_of, Cursor), rows))
        return sorted(cursors, key=lambda cursor: cursor.config_id), len(rows) - len(cursors)

    def get_cursor(self, key: TaskKey, config_id: str) -> Cursor | None:
        """One cursor, or None."""
        item = self._table.get(keys.task(key), keys.cursor(config_id))
        return items.record_of(Cursor, item) if item else None

    def move_cursor(self, key: TaskKey, before: Cursor, after: Cursor) -> bool:
        """Replaces the cursor if it equals ``before`` (or ``after`` already); False otherwise. Never recreates one."""
        refusal = self._table.write(_move_action(key, before, after))
        if refusal is None:
            return True
        item = refusal.items[0]
        return (items.record_of(Cursor, item) if item else self.get_cursor(key, before.config_id)) == after

    def remove_config(self, key: TaskKey, config_id: str, incarnation: str) -> None:
        """Deletes the configuration and the cursor of that incarnation. Nothing happens if they are absent."""
        expected = {"incarnation": {"S": incarnation}}
        places = [items.make_place(keys.task(key), sk) for sk in (keys.push(config_id), keys.cursor(config_id))]
        self._table.write(*(Delete(place, expected) for place in places))

    def record_attempt(self, key: TaskKey, attempt: Attempt, expires: int) -> None:
        """Stores an attempt and its result. Idempotent."""
        sk = keys.attempt(attempt.config_id, attempt.n, attempt.k, attempt.at)
        self._table.write(Put(items.make_item(keys.task(key), sk, expires, items.record_item(attempt))))

    def list_attempts(self, key: TaskKey) -> list[Attempt]:
        """The readable attempts of a task, oldest first within each config."""
        rows = self._table.query_prefix(keys.task(key), keys.ATTEMPTS)
        attempts = items.read_each(partial(items.record_of, Attempt), rows)
        return sorted(attempts, key=lambda attempt: (attempt.config_id, attempt.at, attempt.n, attempt.k))

    def count_webhook(self, key: TaskKey, day: int, limit: int) -> bool:
        """Counts a webhook of the task's owner on ``day`` (days since the epoch). False when ``limit`` is reached."""
        place = items.make_place(keys.owner(key), f"{keys.WEBHOOKS}{day}")
        return self._table.write(Count(place, "used", limit, (day + 2) * DAY_S)) is None

    def get_challenge_state(self, key: TaskKey, host: str) -> ChallengeState:
        """The state of the challenges that webhooks of the task's owner have sent to a host."""
        item = self._table.get(keys.owner(key), keys.challenges(host))
        return items.record_of(ChallengeState, item) if item else ChallengeState()

    def store_challenge_state(
        self, key: TaskKey, host: str, before: ChallengeState, after: ChallengeState, expires: int
    ) -> bool:
        """Replaces the state if it equals ``before`` (or ``after`` already), until ``expires`` (s); False otherwise."""
        old, new = items.record_item(before), items.record_item(after)
        item = items.make_item(keys.owner(key), keys.challenges(host), expires, new)
        expected = {name: old.get(name) for name in items.names_of(before)}
        ends = {"expires": item["expires"]}
        fresh = before == ChallengeState()
        action = PutNew(item) if fresh else Update(item, old, new | ends, expected)
        return self._table.write(action) is None or self.get_challenge_state(key, host) == after

    def list_exhausted(self, limit: int = 100, since: int = 0) -> list[tuple[TaskKey, str]]:
        """Webhooks (task, config id) given up at ``since`` (ms) or later, oldest first. Eventually consistent."""
        due_items = self._table.query_due(keys.EXHAUSTED, keys.NEWEST, limit, since=keys.moment(since))
        rows = [items.due_of(item) for item in due_items]
        return [(one.key, one.config_id) for one in rows if one.key and one.config_id is not None]


def cursor_item(shard: int, cursor: Cursor) -> Item:
    """The attributes of a cursor."""
    due_shard = keys.EXHAUSTED if cursor.state is CursorState.EXHAUSTED else str(shard)
    return items.record_item(cursor) | ({} if cursor.due_at is None else {"due_shard": {"S": due_shard}})


def config_actions(head: Head, config: PushConfig, cursor: Cursor, replaced: Cursor | None = None) -> list[Action]:
    """The actions that write a configuration and its cursor."""
    check_readable(config.config_id)
    pk, shard = keys.task(head.key), keys.shard(head.key)
    new = items.make_item(pk, keys.cursor(cursor.config_id), head.expires, cursor_item(shard, cursor))
    return [
        PutNew(
            items.make_item(pk, keys.push(config.config_id), head.expires, items.record_item(config)), "incarnation"
        ),
        _move_action(head.key, replaced, cursor) if replaced else PutNew(new),
    ]


def _move_action(key: TaskKey, before: Cursor, after: Cursor) -> Action:
    """An action: the cursor becomes ``after``, if every field is still as in ``before``."""
    place, shard = items.make_place(keys.task(key), keys.cursor(before.config_id)), keys.shard(key)
    old, new = cursor_item(shard, before), cursor_item(shard, after)
    return Update(place, old, new, {name: old.get(name) for name in items.names_of(before)})
