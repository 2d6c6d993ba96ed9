"""The output of the command line: results on stdout, notes about them on stderr, JSON for programs.

Rich handles colours, width and ``NO_COLOR``. Text of agents and clients is never read as markup. It is shown without
control characters, which could rewrite the screen, and without characters that are not seen or that turn the direction
of others: a name could look like another one. What goes into a file or to another program is unchanged.
"""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from subprocess import list2cmdline
from typing import TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.markup import escape
from rich.segment import Segment
from rich.text import Text

from a2a_serverless.domain.model import Json
from a2a_serverless.protocol.v1 import TaskState

Row: TypeAlias = tuple[str, str | Text]
STYLES = {
    TaskState.COMPLETED: "green",
    TaskState.FAILED: "red",
    TaskState.REJECTED: "red",
    TaskState.CANCELED: "yellow",
    TaskState.INPUT_REQUIRED: "yellow",
    TaskState.AUTH_REQUIRED: "yellow",
}
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


@dataclass(frozen=True, slots=True)
class Explained:
    """An error: ``text`` and ``remedy`` for people, ``kind`` for programs."""

    kind: str
    text: str
    remedy: str = ""


class _Neutral(RenderHook):
    """Replaces in all that a console prints the characters that ``plain`` replaces."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Wraps what is about to be printed."""
        return [_NeutralRenderable(one) for one in renderables]


@dataclass(frozen=True, slots=True)
class _NeutralRenderable:
    inner: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self.inner, options):
            yield Segment(text if control else plain(text), style, control)


def neutral(console: Console) -> Console:
    """The console, which from now on prints as ``plain`` does."""
    console.push_render_hook(_Neutral())
    return console


@dataclass
class Terminal:
    """Where a command writes. ``json`` is set by the option of that name."""

    out: Console = field(default_factory=lambda: neutral(Console(highlight=False)))
    err: Console = field(default_factory=lambda: neutral(Console(stderr=True, highlight=False)))
    json: bool = False
    _is_waiting: bool = False

    @contextmanager
    def waiting(self, title: str) -> Iterator[Callable[[str], None]]:
        """Shows on a terminal that the block waits, and for what; the block gets a function that changes the title.

        Nothing but notes may be written in the block.
        """
        # With NO_COLOR somebody wants plain text: a spinner would move the cursor.
        if self._is_waiting or self.err.no_color or not self.err.is_interactive:
            yield lambda _: None
            return
        self._is_waiting = True
        try:
            with self.err.status(escape(title)) as status:
                yield lambda label: status.update(escape(label))
        finally:
            self._is_waiting = False

    @property
    def progress(self) -> Console:
        """Where a command without a result reports its steps: stdout, or stderr when stdout gets JSON."""
        return self.err if self.json else self.out

    def data(self, value: Json, *, one_line: bool = False) -> None:
        """Writes a JSON value to stdout."""
        self.raw(json.dumps(value, ensure_ascii=False, indent=None if one_line else 2) + "\n")

    def result(self, value: Json, view: Sequence[Row] | str) -> None:
        """Writes a result to stdout: a JSON value for programs, rows or a text for people."""
        if self.json:
            self.data(value)
        elif isinstance(view, str):
            self.raw(view)
        else:
            self.rows(view)

    def raw(self, text: str) -> None:
        """Writes a text to stdout: unchanged for programs, as ``plain`` on a terminal."""
        self.out.file.write(plain(text) if self.out.is_terminal else text)
        self.out.file.flush()

    def rows(self, rows: Sequence[Row]) -> None:
        """Writes names and values: in two columns on a terminal, one line each for programs."""
        if not self.out.is_terminal:
            self.raw("".join(aligned([(name, str(value)) for name, value in rows])))
            return
        width = max((cell_len(name) for name, _ in rows), default=0)
        for name, value in rows:
            # The terminal breaks a long line. A line end that we put into it would be pasted, too.
            self.out.print(Text.assemble((set_cell_size(name, width), "dim"), "  ", value), soft_wrap=True)

    def table(self, value: Json, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Writes a JSON value for programs, or aligned columns, on a terminal with ``head`` above them."""
        if self.json:
            self.data(value)
        else:
            self.raw("".join(aligned([head, *rows] if self.out.is_terminal and rows else rows)))

    def fail(self, explained: Explained) -> None:
        """Writes an error: to stderr for people, as JSON to stdout for programs."""
        if self.json:
            self.data({"error": asdict(explained)})
            return
        self.err.print(explained.text, style="red", markup=False, soft_wrap=True)
        if explained.remedy:
            self.err.print(f"  what helps: {explained.remedy}", markup=False, soft_wrap=True)

    def note(self, text: str | Text) -> None:
        """Writes a line to stderr; nothing with ``--json``."""
        if not self.json:
            self.err.print(text, markup=False, soft_wrap=True)


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields a line for each row, with its cells in columns. A Chinese character is as wide as two others."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(set_cell_size, row, widths)).rstrip() + "\n"


def plain(text: str) -> str:
    """Replaces control characters other than line ends and tabs, and characters that are not seen or turn others."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def one_line(text: str, limit: int) -> str:
    """Returns the beginning of a text as one line of at most ``limit`` characters."""
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def quote_words(*words: str) -> str:
    """The words of a command to copy, in quotes for a shell where they need them."""
    return list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def program() -> str:
    """Returns how a person calls this program: by ``uv run``, by its name if that is on the PATH, or by its path."""
    name = "a2a-serverless"
    here = Path(sys.argv[0]).with_name(name)
    if shutil.which(name) == str(here) or not here.is_file():
        return f"uv run {name}" if "UV_RUN_RECURSION_DEPTH" in os.environ else name
    return str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here)
