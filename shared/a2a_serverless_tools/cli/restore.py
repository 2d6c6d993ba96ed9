"""The operator's command that brings back what a deployed stack has lost, from a restored table."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer

from a2a_serverless_tools.cli.options import StackContext
from a2a_serverless_tools.operators.restoration import RestoredCounts

TableName = Annotated[
    str, typer.Option("--table", help="The table of tasks that DynamoDB restored.", metavar="NAME", show_default=False)
]
AccessTableName = Annotated[
    str,
    typer.Option("--access-table", help="The table of API keys that DynamoDB restored.", metavar="NAME"),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count what would be restored.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Restore without asking, as in a script.")]


def restore(
    stack: StackContext,
    *,
    table: TableName,
    access_table: AccessTableName = "",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Copy into a stack what it lacks of a table that DynamoDB restored from a backup or to a point in time.

    Tasks that the stack has stay as they are. Restored unfinished tasks go on at once: `pause` their agents before.
    Webhooks that were behind are restored as given up: `push list` shows them, `push redrive` sends again.
    What was erased since then is restored, too, and so are API keys that were removed: erase and remove them again.
    """
    if not (dry_run or yes):
        stack.check_terminal()
    restoration = stack.operations.restoration(table)
    if dry_run or not yes:
        with stack.terminal.waiting("Counting"):
            counts = restoration.count()
        if dry_run:
            stack.terminal.result(counts._asdict(), f"Would restore {_words(counts)}.\n")
            return
        stack.confirm(f"Restore {_words(counts)} into the stack {stack.name.name}?")
    with stack.terminal.waiting("Restoring") as show:
        restored = restoration.restore(partial(_report, show))
        api_keys = stack.operations.restore_access(access_table) if access_table else 0
    text = f"Restored {_words(restored)}, {restored.others} other items, {api_keys} API keys.\n"
    stack.terminal.result({**restored._asdict(), "apiKeys": api_keys}, text)
    if api_keys:
        stack.terminal.note("API keys that were removed since then work again: `callers list`, `callers remove`.")
    if restored.webhooks:
        stack.terminal.note("`push list` shows the webhooks that were behind, `push redrive` sends their events.")


def _report(show: Callable[[str], None], counts: RestoredCounts) -> None:
    show(f"Restoring: {counts.tasks} tasks so far")


def _words(counts: RestoredCounts) -> str:
    return f"{counts.tasks} tasks ({counts.unfinished} unfinished, {counts.webhooks} webhooks behind)"
