"""The commands for the schedules of a deployed stack, for its operator."""

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from a2a_serverless.domain.schedules import format_tick
from a2a_serverless_tools.cli.options import StackContext
from a2a_serverless_tools.operators.schedules import (
    DeployedSchedule,
    ScheduleAdmin,
    list_schedules,
    play_tick,
    set_state,
)

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject

HEAD = ("AGENT", "SCHEDULE", "STATE", "CRON", "ZONE", "NEXT (UTC)")
NEXT = 3

AgentId = Annotated[str, typer.Argument(help="The agent's id.", metavar="AGENT", show_default=False)]
Name = Annotated[str, typer.Argument(help="The schedule's name.", metavar="SCHEDULE", show_default=False)]


def show_schedules(stack: StackContext) -> None:
    """List the schedules, their states and their next times (UTC)."""
    admin = _admin(stack)
    items = [_printed(one, admin.clock.now()) for one in list_schedules(admin)]
    stack.terminal.table({"schedules": [*items]}, HEAD, [_cells(one) for one in items])
    if not items:
        stack.terminal.note("There are no schedules. An agent has them in its code: @agent(schedules=[...]).")


def pause_schedule(stack: StackContext, agent: AgentId, schedule: Name) -> None:
    """Stop a schedule until it is resumed. A deployment that changes the schedule resumes it, too."""
    _show_change(stack, set_state(_admin(stack), agent, schedule, "DISABLED"))


def resume_schedule(stack: StackContext, agent: AgentId, schedule: Name) -> None:
    """Resume a paused schedule. The times that it has missed start no task."""
    _show_change(stack, set_state(_admin(stack), agent, schedule, "ENABLED"))


def run_schedule(stack: StackContext, agent: AgentId, schedule: Name) -> None:
    """Start the task of a schedule now, also of a paused one."""
    time = play_tick(_admin(stack), agent, schedule)
    stack.terminal.result({"agent": agent, "schedule": schedule, "scheduledTime": time}, "")
    stack.terminal.note(f"Enqueued. Without overlap, no task starts while an earlier one of {schedule} has not ended.")


def _admin(stack: StackContext) -> ScheduleAdmin:
    with stack.terminal.waiting(f"Looking for the stack {stack.name.name}"):
        return stack.cli.schedules(stack.name)


def _show_change(stack: StackContext, schedule: DeployedSchedule) -> None:
    printed = _printed(schedule, _admin(stack).clock.now())
    stack.terminal.table(printed, HEAD, [_cells(printed)])


def _printed(one: DeployedSchedule, now: int) -> "JsonObject":
    from a2a_serverless.testing.schedules import tick_times

    schedule = one.schedule
    times = islice(tick_times(schedule, now), NEXT) if one.state == "ENABLED" else ()
    return {
        "agent": one.agent,
        "schedule": schedule.name,
        "state": "enabled" if one.state == "ENABLED" else "paused",
        "cron": schedule.cron,
        "zone": schedule.zone,
        "next": [format_tick(at) for at in times],
    }


def _cells(printed: "JsonObject") -> list[str]:
    *words, times = printed.values()
    return [*map(str, words), str(times[0]) if isinstance(times, list) and times else ""]
