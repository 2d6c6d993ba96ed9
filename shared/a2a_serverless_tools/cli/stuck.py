"""The operator's commands that show why tasks do not end: those of all owners, one of them, and the queues."""

from typing import Annotated, Any

import typer

from a2a_serverless.domain.errors import TaskNotFound
from a2a_serverless.domain.head import CurrentHead, Head
from a2a_serverless.domain.model import JsonObject, path
from a2a_serverless.protocol.protojson import timestamp_text
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.services.webhook_statuses import list_statuses
from a2a_serverless_tools.cli.formatting import moment
from a2a_serverless_tools.cli.operator_commands import moment_of, task_key, webhook_cells, webhook_form
from a2a_serverless_tools.cli.options import AmbiguousTask, NoUnfinishedTask, StackContext
from a2a_serverless_tools.operators.unfinished import Reason, list_stuck, list_unfinished, reasons_of

HEAD = ("TASK", "AGENT", "STATE", "SINCE", "WHY")
QUEUE_HEAD = ("QUEUE", "WAITING", "RECEIVED", "DELAYED")

Since = Annotated[
    str,
    typer.Option("--since", help="Tasks that have not moved since then: 1h (ago), or a timestamp.", metavar="WHEN"),
]
Limit = Annotated[int, typer.Option(help="The largest number of tasks.", min=1, max=1000)]
AnyTask = Annotated[
    str,
    typer.Argument(help="TENANT/OWNER/TASK, or the beginning of the id of an unfinished task.", metavar="TASK"),
]


def list_stuck_tasks(stack: StackContext, *, since: Since = "1h", limit: Limit = 100) -> None:
    """Show the tasks of all owners that no worker runs, whose runs die, or that wait since an hour; and what helps.

    It reads the state of every unfinished task, and no content.
    """
    operations, now = stack.operations, stack.admin.clock.now()
    with stack.terminal.waiting("Reading the unfinished tasks"):
        tasks = list_stuck(stack.admin.log, operations.pauses.list_pauses(), now=now, since=moment_of(since, now))
    page = tasks[:limit]
    rows = [_cells(task.head, task.reasons[0]) for task in page]
    forms: list[Any] = [_form(task.head, task.reasons) for task in page]
    stack.terminal.table({"tasks": forms, "more": len(tasks) - len(page)}, HEAD, rows)
    for text, remedy in dict.fromkeys((one.reasons[0].kind, one.reasons[0].remedy) for one in page):
        if remedy:
            stack.terminal.note(f"  {text}: {remedy}")
    if not tasks:
        stack.terminal.note(f"No task is stuck since {since}.")
    elif len(tasks) > len(page):
        stack.terminal.note(f"There are {len(tasks) - len(page)} more: --limit {min(limit * 10, 1000)}.")


def show_stuck_task(stack: StackContext, task: AnyTask) -> None:
    """Show the state of a task of any owner: its runs, each of its waits, its webhooks, and what helps."""
    current = _find(stack, task)
    head = current.head
    now, pauses = stack.admin.clock.now(), stack.operations.pauses.list_pauses()
    reasons = () if head.is_terminal else reasons_of(head, pauses, now)
    webhooks = list_statuses(stack.admin.store, current)
    if stack.terminal.json:
        stack.terminal.data({**_form(head, reasons), "webhooks": [webhook_form(webhook) for webhook in webhooks]})
        return
    stack.terminal.rows(
        [
            ("Task", path(*head.key)),
            ("Agent", head.agent),
            ("Context", head.context_id),
            ("State", f"{head.state} since {moment(head.status_at)}"),
            ("Maximum life", f"until {moment(head.deadline)}"),
            ("Run", f"{head.fence}, its lease ends {moment(head.lease_until)}" if head.is_leased(now) else "none"),
            *(("Why", _words(reason)) for reason in reasons),
            *(("Webhook", "  ".join(webhook_cells(webhook)[1:])) for webhook in webhooks),
        ]
    )
    if head.state is TaskState.FAILED:
        stack.terminal.note(f"  what helps: `logs --task {head.key.task}` shows where its agent failed")
    for remedy in dict.fromkeys(reason.remedy for reason in reasons if reason.remedy):
        stack.terminal.note(f"  what helps: {remedy}")


def show_queues(stack: StackContext) -> None:
    """Show how many messages each queue has. SQS counts approximately."""
    depths = stack.operations.queues()
    forms: list[Any] = [depth._asdict() for depth in depths]
    rows = [[depth.name, str(depth.waiting), str(depth.received), str(depth.delayed)] for depth in depths]
    stack.terminal.table({"queues": forms}, QUEUE_HEAD, rows)
    for depth in depths:
        if depth.remedy:
            stack.terminal.note(f"  {depth.name}: {depth.remedy}")


def _find(stack: StackContext, task: str) -> CurrentHead:
    """The head of the task. Raises TaskNotFound, NoUnfinishedTask, AmbiguousTask, BadParameter."""
    if "/" in task:
        current = stack.admin.log.read_head(task_key(task))
        if current is None:
            raise TaskNotFound
        return current
    with stack.terminal.waiting("Looking among the unfinished tasks"):
        heads = [one for one in list_unfinished(stack.admin.log) if one.head.key.task.startswith(task)]
    if not heads:
        raise NoUnfinishedTask(
            f"No unfinished task has an id that begins with {task!r}.",
            "of an ended task name TENANT/OWNER/TASK; `logs --task` shows what its runs logged",
        )
    if len(heads) > 1:
        raise AmbiguousTask(f"{len(heads)} unfinished tasks have ids that begin with {task!r}.", "more of the id")
    return heads[0]


def _cells(head: Head, reason: Reason) -> list[str]:
    return [path(*head.key), head.agent, str(head.state), moment(reason.since), _until(reason)]


def _words(reason: Reason) -> str:
    return f"{_until(reason)}, since {moment(reason.since)}"


def _until(reason: Reason) -> str:
    return reason.text if reason.until is None else f"{reason.text}, until {moment(reason.until)}"


def _form(head: Head, reasons: tuple[Reason, ...]) -> JsonObject:
    return {
        "task": path(*head.key),
        "agent": head.agent,
        "contextId": head.context_id,
        "state": f"TASK_STATE_{head.state.name}",
        "since": timestamp_text(head.status_at),
        "reasons": [_reason_form(reason) for reason in reasons],
    }


def _reason_form(reason: Reason) -> JsonObject:
    times = {"since": timestamp_text(reason.since)} | ({"until": timestamp_text(reason.until)} if reason.until else {})
    return {"kind": str(reason.kind), "text": reason.text, **times, "remedy": reason.remedy}
