"""What the command line says, and to whom: results on stdout, everything about them on stderr, JSON for machines.

Colours, width and ``NO_COLOR`` are Rich's business. What agents wrote is shown as text: never as markup, and on a
terminal without control characters, which could rewrite what stands on the screen.
"""

import json
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

from a2a_serverless.domain.model import Json, TaskState

if TYPE_CHECKING:
    from a2a_serverless.cli.errors import Explained

Row: TypeAlias = tuple[str, str | Text]
STYLES = {
    TaskState.COMPLETED: "green",
    TaskState.FAILED: "red",
    TaskState.REJECTED: "red",
    TaskState.CANCELED: "yellow",
    TaskState.INPUT_REQUIRED: "yellow",
    TaskState.AUTH_REQUIRED: "yellow",
}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass
class Terminal:
    """Where a command writes. ``json`` is set by the option of that name."""

    out: Console = field(default_factory=lambda: Console(highlight=False))
    err: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))
    json: bool = False

    @property
    def progress(self) -> Console:
        """Where a command that only does things tells of them: stdout, unless JSON is due there."""
        return self.err if self.json else self.out

    def data(self, value: Json, *, one_line: bool = False) -> None:
        """A JSON value on stdout."""
        self.raw(json.dumps(value, ensure_ascii=False, indent=None if one_line else 2) + "\n")

    def raw(self, text: str) -> None:
        """A text on stdout: as it is for programs, without control characters for people."""
        self.out.file.write(plain(text) if self.out.is_terminal else text)
        self.out.file.flush()

    def rows(self, rows: Sequence[Row]) -> None:
        """Names and values: for people in two columns, for programs one line each."""
        width = max(len(name) for name, _ in rows)
        if not self.out.is_terminal:
            self.raw("".join(f"{name:{width}}  {value}\n" for name, value in rows))
            return
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        for name, value in rows:
            table.add_row(name, Text(value) if isinstance(value, str) else value)
        self.out.print(table)

    def fail(self, explained: "Explained") -> None:
        """An error: on stderr for people, on stdout for programs."""
        if self.json:
            self.data({"error": {"kind": explained.kind, "text": explained.text, "remedy": explained.remedy}})
            return
        self.err.print(explained.text, style="red", markup=False, soft_wrap=True)
        if explained.remedy:
            self.err.print(f"  what helps: {explained.remedy}", markup=False, soft_wrap=True)

    def note(self, text: str | Text) -> None:
        """A line on stderr, for people only."""
        if not self.json:
            self.err.print(text, markup=False, soft_wrap=True)


def plain(text: str) -> str:
    """The text without control characters but line ends and tabs."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def one_line(text: str, limit: int) -> str:
    """The beginning of a text, on one line of at most ``limit`` characters."""
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def program() -> str:
    """How a person calls this program: by its name when that is found, else by its path."""
    name = "a2a-serverless"
    here = Path(sys.argv[0]).with_name(name)
    if shutil.which(name) == str(here) or not here.is_file():
        return name
    return str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here)
