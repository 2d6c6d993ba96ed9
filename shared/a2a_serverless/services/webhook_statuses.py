"""The delivery status of webhooks. An owner reads that of its own tasks only, because their keys contain the owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.push_configs import WebhookStatus
from a2a_serverless.services.task_changes import read_existing_head

if TYPE_CHECKING:
    from a2a_serverless.domain.head import CurrentHead
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.store.push_store import PushStore
    from a2a_serverless.store.task_log import TaskLog

ATTEMPTS_SHOWN: Final = 100


def list_deliveries(log: TaskLog, store: PushStore, key: TaskKey, agent: str) -> list[WebhookStatus]:
    """Returns the status of every configuration of the owner's task; raises TaskNotFound."""
    return list_statuses(store, read_existing_head(log, key, agent))


def list_statuses(store: PushStore, current: CurrentHead) -> list[WebhookStatus]:
    """Returns the status of every configuration of the task, by id."""
    key = current.head.key
    configs = {config.config_id: config for config in store.list_configs(key)}
    attempts = store.list_attempts(key)
    return [
        WebhookStatus(
            key,
            configs[cursor.config_id],
            cursor,
            current.last,
            tuple(attempt for attempt in attempts if attempt.config_id == cursor.config_id)[-ATTEMPTS_SHOWN:],
        )
        for cursor in store.list_cursors(key)
        if cursor.config_id in configs
    ]
