"""The operator's commands that erase a task, a context or an owner of a deployed stack."""

from collections.abc import Callable
from functools import partial
from typing import Annotated
from urllib.parse import unquote

import typer

from a2a_serverless.domain.model import JsonObject, Principal
from a2a_serverless_tools.cli.formatting import moment
from a2a_serverless_tools.cli.options import StackContext
from a2a_serverless_tools.cli.terminal import Terminal
from a2a_serverless_tools.operators.erasure import Counts, ErasureScope, Progress, count, erase

Task = Annotated[str, typer.Argument(help="TENANT/OWNER/TASK, percent-encoded.", metavar="TASK")]
Context = Annotated[str, typer.Argument(help="TENANT/OWNER/CONTEXT, percent-encoded.", metavar="CONTEXT")]
Owner = Annotated[str, typer.Argument(help="TENANT/OWNER, percent-encoded.", metavar="OWNER")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Erase without asking, as in a script.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count what would be erased.")]


def erase_task(stack: StackContext, task: Task, *, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Erase a task with its big contents, webhooks and idempotency records. A running task is canceled first."""
    tenant, owner, task_id = _parse(task, "TENANT/OWNER/TASK")
    _erase(stack, ErasureScope(Principal(tenant, owner), task=task_id), dry_run=dry_run, yes=yes)


def erase_context(stack: StackContext, context: Context, *, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Erase all tasks of an owner's context."""
    tenant, owner, context_id = _parse(context, "TENANT/OWNER/CONTEXT")
    _erase(stack, ErasureScope(Principal(tenant, owner), context=context_id), dry_run=dry_run, yes=yes)


def erase_owner(stack: StackContext, owner: Owner, *, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Erase an owner: its tasks, its quota counters, and its API keys."""
    tenant, name = parse_owner(owner)
    _erase(stack, ErasureScope(Principal(tenant, name)), dry_run=dry_run, yes=yes)


def parse_owner(text: str) -> list[str]:
    """Tenant and owner of TENANT/OWNER. Raises BadParameter."""
    return _parse(text, "TENANT/OWNER")


def _parse(text: str, form: str) -> list[str]:
    """The parts of a name such as TENANT/OWNER/TASK. Raises BadParameter."""
    parts = [unquote(part) for part in text.split("/")]
    if len(parts) != len(form.split("/")) or not all(parts):
        raise typer.BadParameter(f"expected {form}, got {text!r}")
    return parts


def _erase(stack: StackContext, scope: ErasureScope, *, dry_run: bool, yes: bool) -> None:
    if not (dry_run or yes):
        stack.check_terminal()
    if dry_run or not yes:
        with stack.terminal.waiting("Counting"):
            counts = count(stack.operations.erasure, scope)
        if dry_run:
            stack.terminal.result(_printed(counts), f"Would erase {_words(counts)}.\n")
            return
        stack.confirm(f"Erase {_words(counts)} of the stack {stack.name.name}?")
    with stack.terminal.waiting("Erasing") as show:
        erased = erase(stack.operations.erasure, scope, partial(_report, stack.terminal, show))
    stack.terminal.result(_printed(erased), f"Erased {_words(erased)}.\n")


def _report(terminal: Terminal, show: Callable[[str], None], progress: Progress) -> None:
    """Shows how many tasks are erased; a line says when it waits, which may take two minutes."""
    text = f"Erasing: {progress.erased.tasks} tasks so far"
    if progress.left:
        text += f", {progress.left} are left until {moment(progress.until)}"
        terminal.note(f"Tasks left: {progress.left}. Until {moment(progress.until)} their runs may still write.")
    show(text)


def _words(counts: Counts) -> str:
    return f"{counts.tasks} tasks, {counts.items} items, {counts.blobs} big contents, {counts.api_keys} API keys"


def _printed(counts: Counts) -> JsonObject:
    return {"tasks": counts.tasks, "items": counts.items, "blobs": counts.blobs, "apiKeys": counts.api_keys}
