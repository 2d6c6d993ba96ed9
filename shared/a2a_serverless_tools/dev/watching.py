"""Tells when the source of a project changes, by the operating system's notifications (``watchfiles``).

Python files are watched, and ``pyproject.toml``. Hidden folders, environments and ``node_modules`` are not.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from watchfiles import Change, awatch

from a2a_serverless_tools.project import FILE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless_tools.project import Project

GATHERED_MS: Final = 1000  # changes that follow each other closely are one, within this time
QUIET_MS: Final = 100  # an editor writes a file in several steps


async def watch_project(
    project: Project, on_change: Callable[[set[Path]], Awaitable[None]], ready: Callable[[], None]
) -> None:
    """Calls ``on_change`` with the changed files, forever, one call at a time. New folders are watched, too.

    A file that was told is told again only if its time or size has changed: an editor that sets its mode after it has
    saved it has not saved it twice. ``ready`` is called when no change can be missed any more.
    """
    top, turn = {project.root.resolve(), project.source.resolve()}, asyncio.Lock()
    states: dict[Path, tuple[int, int] | None] = {}
    is_ready = False

    async def tell(places: set[Path]) -> None:
        async with turn:
            now = {place: _state(place) for place in places if not place.is_dir()}
            files = {file for file, state in now.items() if file not in states or states[file] != state}
            states.update(now)
            if files:
                await on_change(files)
            if folders_of(project) != folders:
                over.set()

    while True:
        folders, over = folders_of(project), asyncio.Event()
        async with asyncio.TaskGroup() as both:
            both.create_task(_follow(folders, tell, over, recursive=True))
            both.create_task(_follow(top, tell, over, recursive=False))
            await asyncio.sleep(0)  # now both have begun
            if not is_ready:
                ready()
            is_ready = True


def folders_of(project: Project) -> set[Path]:
    """The folders in the project's source folder that are watched with all that is in them."""
    return {path for path in project.source.resolve().iterdir() if _is_watched(path)}


def _is_watched(path: Path) -> bool:
    is_hidden = path.name.startswith(".") or path.name in {"node_modules", "__pycache__"}
    return path.is_dir() and not is_hidden and not (path / "pyvenv.cfg").exists()


async def _follow(
    places: set[Path], tell: Callable[[set[Path]], Awaitable[None]], over: asyncio.Event, *, recursive: bool
) -> None:
    """Tells the changes in these folders until ``over`` is set. Watches from its first step on."""
    if not places:
        return
    batches = awatch(
        *places, watch_filter=_counts, debounce=GATHERED_MS, step=QUIET_MS, recursive=recursive, stop_event=over
    )
    async for changes in batches:
        await tell({Path(path) for _, path in changes})


def _state(file: Path) -> tuple[int, int] | None:
    """When a file was written, and its size; None when it is not there."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _counts(change: Change, path: str) -> bool:
    del change
    file = Path(path)
    return file.suffix == ".py" or file.name == FILE or file.is_dir()
