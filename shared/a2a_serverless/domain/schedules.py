"""Schedules: the times at which an agent starts by itself. EventBridge Scheduler evaluates them, and no function does.

A tick is one time of a schedule. A project's check evaluates the expressions (``testing/schedules.py``), and so do
``dev``, ``up`` and the harness.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from a2a_serverless.domain.model import TaskKey

LATEST_MS: Final = 3_600_000
"""A tick that is older starts no task."""
OWNER: Final = "schedules"
"""The owner of the tasks of schedules that name no other. No token of an issuer is admitted as this owner."""
SCHEDULE: Final = "a2a-serverless/schedule"
SCHEDULED_TIME: Final = "a2a-serverless/scheduled-time"
SCHEDULED_TIME_KEYWORD: Final = "<aws.scheduler.scheduled-time>"
"""EventBridge Scheduler writes a tick's time in its place."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True)
class Schedule:
    """When an agent starts by itself: at each time of ``cron`` it gets a task with the message ``text``.

    ``cron`` are the six fields of EventBridge Scheduler (minutes, hours, day of month, month, day of week, year), in
    the time zone ``zone`` (IANA). With ``overlap="skip"`` a tick starts no task while that of an earlier tick has not
    ended. The task belongs to ``owner`` in ``tenant``. Raises ValueError for a wrong name or ``overlap``.
    """

    name: str
    cron: str
    text: str
    zone: str = "UTC"
    overlap: Literal["skip", "allow"] = "skip"
    owner: str = OWNER
    tenant: str = "default"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"the schedule {self.name!r} needs a name of 1 to 40 letters, digits, hyphens, _")
        if self.overlap not in {"skip", "allow"}:
            raise ValueError(f'overlap of the schedule {self.name!r} must be "skip" or "allow", not {self.overlap!r}')

    def key(self, agent: str) -> TaskKey:
        """The key in the queue messages of this schedule of ``agent``."""
        return TaskKey(self.tenant, self.owner, f"{agent}/{self.name}")


def format_tick(at: int) -> str:
    """The time (ms) of a tick, as EventBridge Scheduler writes it: whole seconds in UTC."""
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_tick(text: str) -> int:
    """The time (ms) in a text of ``format_tick``. Raises ValueError for another text."""
    return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()) * 1000
