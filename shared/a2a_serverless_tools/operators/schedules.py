"""The schedules of a deployed stack, for operators, who may pause and resume them, and play one now.

The group of the schedules has the stack's name, a schedule ``AGENT.NAME`` (``stack/settings.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from a2a_serverless.domain.schedules import SCHEDULED_TIME_KEYWORD, Schedule, format_tick
from a2a_serverless_tools.operators.deployed import NoSuchSchedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.ports.system import Clock

State = Literal["ENABLED", "DISABLED"]
# What UpdateSchedule takes of GetSchedule's answer. It sets to its default what it is not given.
_FIELDS: Final = (
    *("Name", "GroupName", "ScheduleExpression", "ScheduleExpressionTimezone", "FlexibleTimeWindow", "Target"),
    *("Description", "StartDate", "EndDate", "ActionAfterCompletion", "KmsKeyArn"),
)


@dataclass(frozen=True, slots=True)
class DeployedSchedule:
    """A schedule of ``agent``. ``body`` is that of its messages, with a keyword in the place of the time."""

    agent: str
    schedule: Schedule
    state: State
    body: str


@dataclass(frozen=True, slots=True)
class ScheduleAdmin:
    """The dependencies: AWS clients by service, the schedules' group, the URL of the work queue."""

    client: Callable[[str], Any]
    group: str
    clock: Clock
    queue_url: str


def list_schedules(admin: ScheduleAdmin) -> list[DeployedSchedule]:
    """The schedules, by agent and name."""
    client = admin.client("scheduler")
    try:
        pages = [*client.get_paginator("list_schedules").paginate(GroupName=admin.group)]
    except client.exceptions.ResourceNotFoundException:  # without schedules there is no group
        return []
    names = sorted(one["Name"] for page in pages for one in page["Schedules"])
    return [_deployed(client.get_schedule(GroupName=admin.group, Name=name)) for name in names]


def set_state(admin: ScheduleAdmin, agent: str, name: str, state: State) -> DeployedSchedule:
    """Pauses or resumes a schedule. Raises NoSuchSchedule."""
    item = _find(admin, agent, name)
    fields = {field: item[field] for field in _FIELDS if field in item}
    admin.client("scheduler").update_schedule(**fields, State=state)
    return _deployed(item | {"State": state})


def play_tick(admin: ScheduleAdmin, agent: str, name: str) -> str:
    """Enqueues that a schedule, also a paused one, is due now; returns the time. Raises NoSuchSchedule."""
    schedule, time = _deployed(_find(admin, agent, name)), format_tick(admin.clock.now())
    body = schedule.body.replace(SCHEDULED_TIME_KEYWORD, time)
    admin.client("sqs").send_message(QueueUrl=admin.queue_url, MessageBody=body)
    return time


def _find(admin: ScheduleAdmin, agent: str, name: str) -> dict[str, Any]:
    client = admin.client("scheduler")
    try:
        return dict(client.get_schedule(GroupName=admin.group, Name=f"{agent}.{name}"))
    except client.exceptions.ResourceNotFoundException:
        raise NoSuchSchedule(f"the agent {agent!r} has no schedule {name!r} in the stack {admin.group}") from None


def _deployed(item: dict[str, Any]) -> DeployedSchedule:
    agent, _, name = item["Name"].partition(".")
    cron = item["ScheduleExpression"].removeprefix("cron(").removesuffix(")")
    schedule = Schedule(name, cron, "", item.get("ScheduleExpressionTimezone", "UTC"))
    return DeployedSchedule(agent, schedule, item["State"], item["Target"]["Input"])
