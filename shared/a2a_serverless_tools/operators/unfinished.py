"""The unfinished tasks of a deployment, of all owners, and why each of them does not end."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.domain.head import LOST_LIMIT
from a2a_serverless.domain.waits import WaitKind
from a2a_serverless.services.sweep import OVERDUE_MS, task_late_ms
from a2a_serverless.store.items import read_or_skip
from a2a_serverless.store.stores import agent_pause, owner_pause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from a2a_serverless.domain.head import CurrentHead, Head
    from a2a_serverless.store.task_log import TaskLog

OVERDUE: Final = "overdue"
RUNS_DIE: Final = "runs die"
RUNNING: Final = "running"
_URGENCY: Final = (RUNS_DIE, OVERDUE, WaitKind.PAUSE)
_WAITS: Final = {
    WaitKind.QUESTION: ("an answer of the client to message {}", "ask the client, or cancel the task"),
    WaitKind.SLEEP: ("the end of its sleep {}", ""),
    WaitKind.TIMEOUT: ("the time limit {}", ""),
    WaitKind.REMINDER: ("the reminder {}", ""),
    WaitKind.EVENT: ("the callback {}", "ask the system that the agent gave the callback's address"),
    WaitKind.CALL: ("the called task {}", "`tasks show` that task, or ask the owner of the called agent"),
    WaitKind.BUDGET: ("budget", "send the task a message with more budget, or cancel it"),
    WaitKind.PAUSE: ("its next look at a pause that is over", ""),
    WaitKind.RETRY: ("the next try of step {}", "`logs --task` of the task shows why the step fails"),
}


class Reason(NamedTuple):
    """A reason why a task does not end: its ``kind`` (a constant of here, or a WaitKind), and since when (ms).

    ``remedy`` is empty if nobody has to do anything. ``until`` (ms) is the end that the wait has of its own.
    """

    kind: str
    text: str
    since: int
    remedy: str = ""
    until: int | None = None


class UnfinishedTask(NamedTuple):
    """The head of an unfinished task, and why it does not end: at least one reason, the most urgent first."""

    head: Head
    reasons: tuple[Reason, ...]

    @property
    def is_urgent(self) -> bool:
        """Whether the deployment's operator has to do something."""
        return self.reasons[0].kind in _URGENCY


def list_unfinished(log: TaskLog) -> Iterator[CurrentHead]:
    """The heads of all unfinished tasks; skips those that cannot be read."""
    for key in log.list_unfinished():
        current = read_or_skip(partial(log.read_head, key), "task", task=key.task)
        if current and not current.head.is_terminal:
            yield current


def list_stuck(log: TaskLog, pauses: Mapping[str, int], *, now: int, since: int) -> list[UnfinishedTask]:
    """The tasks that an operator has to do something about, and those that have not moved after ``since`` (ms).

    The most urgent kind is first, and of a kind the task that is stuck for longest.
    """
    tasks = [UnfinishedTask(one.head, reasons_of(one.head, pauses, now)) for one in list_unfinished(log)]
    stuck = [task for task in tasks if task.is_urgent or task.reasons[0].since <= since]
    return sorted(stuck, key=lambda task: (_urgency(task.reasons[0]), task.reasons[0].since))


def reasons_of(head: Head, pauses: Mapping[str, int], now: int) -> tuple[Reason, ...]:
    """Why the unfinished task does not end, the most urgent reason first. ``pauses`` are those of ``PauseStore``."""
    reasons = [*_faults(head, now), *_waits(head, pauses)]
    if not reasons:
        reasons = [Reason(RUNNING, "it runs, or is about to", head.status_at)]
    return tuple(sorted(reasons, key=lambda reason: (_urgency(reason), reason.since)))


def _faults(head: Head, now: int) -> Iterator[Reason]:
    if head.lost:
        text = f"{head.lost} runs in a row died and stored no step; after {LOST_LIMIT} the task fails"
        yield Reason(RUNS_DIE, text, head.status_at, "`logs --errors`, and `logs --task` of the task")
    if head.is_runnable(now) and not head.is_leased(now):
        late_ms = max(task_late_ms(head, now), now - (head.due_at or now))
        if late_ms >= OVERDUE_MS:
            remedy = "`logs --errors`, `queues`, then the runbook of OldestDueTaskAlarm"
            yield Reason(OVERDUE, "no worker runs it", now - late_ms, remedy)


def _waits(head: Head, pauses: Mapping[str, int]) -> Iterator[Reason]:
    paused = [(name, since) for name in (agent_pause(head.agent), owner_pause(head.key)) if (since := pauses.get(name))]
    for pause, since in paused:
        kind, _, name = pause.partition("#")
        command = f"resume {name}" if kind == "AGENT" else f"resume --owner {name}"
        yield Reason(WaitKind.PAUSE, f"waits for the end of a pause of its {kind.lower()}", since, f"`{command}`")
    for wait in head.open_waits.waits:
        if wait.kind != WaitKind.PAUSE or not paused:
            # A newer release may have stored another kind.
            text, remedy = _WAITS.get(wait.kind, (f"{wait.kind} {{}}", ""))  # type: ignore[call-overload]
            yield Reason(wait.kind, f"waits for {text.format(wait.name)}", wait.since, remedy, wait.until)


def _urgency(reason: Reason) -> int:
    return _URGENCY.index(reason.kind) if reason.kind in _URGENCY else len(_URGENCY)
