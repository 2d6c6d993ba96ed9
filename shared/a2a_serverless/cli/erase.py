"""The operator's commands that erase a task, a context or an owner of a deployed stack."""

from typing import TYPE_CHECKING, Annotated

import typer

from a2a_serverless.cli.operator_commands import NAME, Local, Stack, stack_meant
from a2a_serverless.cli.options import Json, context_of

if TYPE_CHECKING:
    from a2a_serverless.services.erasure import ErasureScope

Task = Annotated[str, typer.Argument(help="TENANT/OWNER/TASK, percent-encoded.", metavar="TASK")]
Context = Annotated[str, typer.Argument(help="TENANT/OWNER/CONTEXT, percent-encoded.", metavar="CONTEXT")]
Owner = Annotated[str, typer.Argument(help="TENANT/OWNER, percent-encoded.", metavar="OWNER")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count what would be erased.")]


def erase_task(
    ctx: typer.Context,
    task: Task,
    *,
    dry_run: DryRun = False,
    stack: Stack = NAME,
    _local: Local = False,
    _json: Json = False,
) -> None:
    """Erase a task with its big contents, webhooks and idempotency records. A running task is canceled first."""
    _erase(ctx, stack, task, 3, dry_run=dry_run)


def erase_context(
    ctx: typer.Context,
    context: Context,
    *,
    dry_run: DryRun = False,
    stack: Stack = NAME,
    _local: Local = False,
    _json: Json = False,
) -> None:
    """Erase all tasks of an owner's context."""
    _erase(ctx, stack, context, 2, dry_run=dry_run)


def erase_owner(
    ctx: typer.Context,
    owner: Owner,
    *,
    dry_run: DryRun = False,
    stack: Stack = NAME,
    _local: Local = False,
    _json: Json = False,
) -> None:
    """Erase an owner: its tasks, its quota counters, and its API keys."""
    _erase(ctx, stack, owner, 1, dry_run=dry_run)


def _erase(ctx: typer.Context, stack: str, named: str, kind: int, *, dry_run: bool) -> None:
    from a2a_serverless.services.erasure import ErasureRequest, erase_all, parse_result

    order, cli = ErasureRequest(_scope(named, kind), dry_run).to_json(), context_of(ctx)
    eraser = cli.operations(stack_meant(ctx, stack)).eraser
    done = parse_result(eraser(order)) if dry_run else erase_all(lambda: parse_result(eraser(order)), cli.sleep)
    if cli.terminal.json:
        cli.terminal.data(done.to_json())
        return
    did = "Would erase" if dry_run else "Erased"
    told = f"{done.tasks} tasks, {done.items} items, {done.blobs} big contents, {done.api_keys} API keys"
    cli.terminal.raw(f"{did} {told}.\n")


def _scope(named: str, kind: int) -> "ErasureScope":
    """Parses TENANT/OWNER (kind 1), TENANT/OWNER/CONTEXT (2) or TENANT/OWNER/TASK (3). Raises BadParameter."""
    from urllib.parse import unquote

    from a2a_serverless.domain.model import Principal
    from a2a_serverless.services.erasure import ErasureScope

    parts = [unquote(part) for part in named.split("/")]
    if len(parts) != (2 if kind == 1 else 3) or not all(parts):
        raise typer.BadParameter(f"expected TENANT/OWNER{('', '/CONTEXT', '/TASK')[kind - 1]}, got {named!r}")
    principal = Principal(parts[0], parts[1])
    return (
        ErasureScope(principal),
        ErasureScope(principal, context_id=parts[-1]),
        ErasureScope(principal, task=parts[-1]),
    )[kind - 1]
