"""Shows progress while the stack starts: one line per step, with its duration when it is done."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.console import Console


@contextmanager
def step(console: Console, title: str) -> Iterator[Callable[[str], None]]:
    """Show `title` while the block runs (a spinner on a terminal, else a line), then its result and duration.

    The block gets a function that adds a remark to the result.
    """
    began = time.monotonic()
    remarks: list[str] = []
    if not console.is_terminal:
        console.print(f"  {title} …")
    try:
        with spinner(console, title):
            yield remarks.append
    except BaseException:
        _done(console, "[red]✗[/red]", title, began, remarks)
        raise
    _done(console, "[green]✓[/green]", title, began, remarks)


def spinner(console: Console, title: str) -> AbstractContextManager[object]:
    """Show on a terminal that the block goes on; elsewhere nothing, and no thread runs for it."""
    return console.status(title) if console.is_interactive else nullcontext()


def _done(console: Console, mark: str, title: str, began: float, remarks: list[str]) -> None:
    notes = ", ".join([*filter(None, remarks), f"{time.monotonic() - began:.1f} s"])
    console.print(f"{mark} {title} [dim]({notes})[/dim]")
