"""The delivery status of a task's webhooks. An owner sees only its own tasks, because their keys contain the owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import TaskNotFound
from a2a_serverless.domain.push import WebhookStatus
from a2a_serverless.services.task_changes import read_existing_head

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.store.push_store import PushStore
    from a2a_serverless.store.task_log import TaskLog

ATTEMPTS_SHOWN: Final = 100


def list_deliveries(log: TaskLog, store: PushStore, key: TaskKey, agent: str) -> list[WebhookStatus]:
    """Returns the status of every configuration of the owner's task; raises TaskNotFound."""
    read_existing_head(log, key, agent)
    return list_statuses(log, store, key)


def list_statuses(log: TaskLog, store: PushStore, key: TaskKey) -> list[WebhookStatus]:
    """Returns the status of every configuration of the task, by id; raises TaskNotFound."""
    snapshot = log.read_head(key)
    if snapshot is None:
        raise TaskNotFound
    configs = {config.config_id: config for config in store.list_configs(key)}
    attempts = store.list_attempts(key)
    return [
        WebhookStatus(
            key,
            configs[cursor.config_id],
            cursor,
            snapshot.last,
            tuple(attempt for attempt in attempts if attempt.config_id == cursor.config_id)[-ATTEMPTS_SHOWN:],
        )
        for cursor in store.list_cursors(key)
        if cursor.config_id in configs
    ]
