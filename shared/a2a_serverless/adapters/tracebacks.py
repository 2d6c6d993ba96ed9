"""Formats exceptions for the author of an agent: his own lines are whole, those of libraries are one line."""

from __future__ import annotations

import os
import sysconfig
import traceback
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

LIBRARY: Final = str(Path(__file__).parents[2] / "a2a_serverless")  # with its tools and adapters of frameworks
_FOREIGN: Final = (LIBRARY, *(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platlib")), "<")


def is_author_s(file: str) -> bool:
    """Whether code is in no library, as far as the path of its file shows."""
    return not file.startswith(_FOREIGN)


def format_traceback(error: BaseException, is_own: Callable[[str], bool] = is_author_s) -> str:
    """The traceback of an error and of its causes, from the first file on that ``is_own``.

    Frames of other files are one line, which names the innermost of them. If no file is its author's, only the error.
    """
    report = traceback.TracebackException.from_exception(error)
    for part in _parts(report, set()):
        frames = [*_join_frames(part.stack or (), is_own)]
        part.stack = _AuthorsStack(frames) if frames else None  # type: ignore[assignment] # as it is without a traceback
    return "".join(report.format())


class _LibraryFrames(traceback.FrameSummary):
    """Several frames, of which it is the innermost."""

    __slots__ = ("count",)

    def __init__(self, innermost: traceback.FrameSummary, count: int) -> None:
        super().__init__(innermost.filename, innermost.lineno, innermost.name, lookup_line=False, line="")
        self.count = count


class _AuthorsStack(traceback.StackSummary):
    def format_frame_summary(self, frame_summary: traceback.FrameSummary, **options: bool) -> str:
        frame = frame_summary
        if not isinstance(frame, _LibraryFrames):
            return super().format_frame_summary(frame, **options)  # Python 3.13 passes whether to use colours
        frames = "one line" if frame.count == 1 else f"{frame.count} lines"
        return f"  ... {frames} of libraries, to {frame.filename}:{frame.lineno}, in {frame.name}\n"


def _join_frames(
    stack: Iterable[traceback.FrameSummary], is_own: Callable[[str], bool]
) -> Iterator[traceback.FrameSummary]:
    is_first = True
    for own, frames in groupby(stack, lambda frame: is_own(frame.filename)):
        group = [*frames]
        if own:
            yield from group
        elif not is_first:
            yield _LibraryFrames(group[-1], len(group))
        is_first = False


def _parts(report: traceback.TracebackException, seen: set[int]) -> Iterator[traceback.TracebackException]:
    """The report of the error, and those of its causes and of the errors that it groups."""
    if id(report) in seen:
        return
    seen.add(id(report))
    yield report
    for other in (report.__cause__, report.__context__, *(report.exceptions or ())):
        if other:
            yield from _parts(other, seen)
