"""The operator's commands that erase a task, a context or an owner of a deployed stack."""

from typing import Annotated
from urllib.parse import unquote

import typer

from a2a_serverless.cli.options import StackContext
from a2a_serverless.domain.model import Principal
from a2a_serverless.services.erasure import ErasureRequest, ErasureScope, erase_all, parse_result

Task = Annotated[str, typer.Argument(help="TENANT/OWNER/TASK, percent-encoded.", metavar="TASK")]
Context = Annotated[str, typer.Argument(help="TENANT/OWNER/CONTEXT, percent-encoded.", metavar="CONTEXT")]
Owner = Annotated[str, typer.Argument(help="TENANT/OWNER, percent-encoded.", metavar="OWNER")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count what would be erased.")]


def erase_task(stack: StackContext, task: Task, *, dry_run: DryRun = False) -> None:
    """Erase a task with its big contents, webhooks and idempotency records. A running task is canceled first."""
    principal, task_id = _parse(task, "TENANT/OWNER/TASK")
    _erase(stack, ErasureScope(principal, task=task_id), dry_run=dry_run)


def erase_context(stack: StackContext, context: Context, *, dry_run: DryRun = False) -> None:
    """Erase all tasks of an owner's context."""
    principal, context_id = _parse(context, "TENANT/OWNER/CONTEXT")
    _erase(stack, ErasureScope(principal, context_id=context_id), dry_run=dry_run)


def erase_owner(stack: StackContext, owner: Owner, *, dry_run: DryRun = False) -> None:
    """Erase an owner: its tasks, its quota counters, and its API keys."""
    _erase(stack, ErasureScope(_parse(owner, "TENANT/OWNER")[0]), dry_run=dry_run)


def _parse(named: str, form: str) -> tuple[Principal, str]:
    """Parses a name such as TENANT/OWNER/TASK; returns the owner and the last part. Raises BadParameter."""
    parts = [unquote(part) for part in named.split("/")]
    if len(parts) != len(form.split("/")) or not all(parts):
        raise typer.BadParameter(f"expected {form}, got {named!r}")
    return Principal(tenant=parts[0], owner=parts[1]), parts[-1]


def _erase(stack: StackContext, scope: ErasureScope, *, dry_run: bool) -> None:
    order, eraser = ErasureRequest(scope, dry_run).to_json(), stack.operations.eraser
    done = parse_result(eraser(order)) if dry_run else erase_all(lambda: parse_result(eraser(order)), stack.cli.sleep)
    did = "Would erase" if dry_run else "Erased"
    told = f"{done.tasks} tasks, {done.items} items, {done.blobs} big contents, {done.api_keys} API keys"
    stack.terminal.result(done.to_json(), f"{did} {told}.\n")
