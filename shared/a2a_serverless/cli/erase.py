"""The operator's commands that erase a task, a context or an owner of a deployed stack."""

from collections.abc import Callable
from typing import Annotated
from urllib.parse import unquote

import typer

from a2a_serverless.cli.options import StackContext
from a2a_serverless.protocol.additions import EraseRequest, EraseResponse
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.services.erasure import erase_all

Task = Annotated[str, typer.Argument(help="TENANT/OWNER/TASK, percent-encoded.", metavar="TASK")]
Context = Annotated[str, typer.Argument(help="TENANT/OWNER/CONTEXT, percent-encoded.", metavar="CONTEXT")]
Owner = Annotated[str, typer.Argument(help="TENANT/OWNER, percent-encoded.", metavar="OWNER")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Erase without asking, as in a script.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count what would be erased.")]


def erase_task(stack: StackContext, task: Task, *, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Erase a task with its big contents, webhooks and idempotency records. A running task is canceled first."""
    tenant, owner, task_id = _parse(task, "TENANT/OWNER/TASK")
    _erase(stack, EraseRequest(tenant=tenant, owner=owner, task=task_id, dry_run=dry_run), yes=yes)


def erase_context(stack: StackContext, context: Context, *, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Erase all tasks of an owner's context."""
    tenant, owner, context_id = _parse(context, "TENANT/OWNER/CONTEXT")
    _erase(stack, EraseRequest(tenant=tenant, owner=owner, context=context_id, dry_run=dry_run), yes=yes)


def erase_owner(stack: StackContext, owner: Owner, *, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Erase an owner: its tasks, its quota counters, and its API keys."""
    tenant, name = _parse(owner, "TENANT/OWNER")
    _erase(stack, EraseRequest(tenant=tenant, owner=name, dry_run=dry_run), yes=yes)


def _parse(named: str, form: str) -> list[str]:
    """The parts of a name such as TENANT/OWNER/TASK. Raises BadParameter."""
    parts = [unquote(part) for part in named.split("/")]
    if len(parts) != len(form.split("/")) or not all(parts):
        raise typer.BadParameter(f"expected {form}, got {named!r}")
    return parts


def _erase(stack: StackContext, wanted: EraseRequest, *, yes: bool) -> None:
    def ask(request: EraseRequest = wanted) -> EraseResponse:
        with stack.terminal.waiting("Counting" if request.dry_run else "Erasing"):
            return EraseResponse.model_validate(stack.operations.eraser(as_json(request)))

    if not (yes or wanted.dry_run):
        _confirm(stack, lambda: ask(wanted.model_copy(update={"dry_run": True})))
    done = ask() if wanted.dry_run else erase_all(ask, stack.cli.sleep)
    did = "Would erase" if wanted.dry_run else "Erased"
    stack.terminal.result(as_json(done), f"{did} {_words(done)}.\n")


def _confirm(stack: StackContext, count: Callable[[], EraseResponse]) -> None:
    """Asks on the terminal; ends the command if the answer is no. Raises BadParameter without a terminal."""
    if stack.cli.ask is None:
        raise typer.BadParameter("there is no terminal to ask on before erasing: add --yes, or --dry-run to count")
    if not stack.cli.ask(f"Erase {_words(count())} of the stack {stack.name.name}?"):
        stack.terminal.note("Nothing was erased.")
        raise typer.Exit(1)


def _words(done: EraseResponse) -> str:
    return f"{done.tasks} tasks, {done.items} items, {done.blobs} big contents, {done.api_keys} API keys"
