"""Imports a project's agents, again after each change of their source.

All modules of the project are imported anew, so that none keeps an earlier version of another. If that fails, the
modules of before stay.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.adapters.tracebacks import format_traceback
from a2a_serverless.agent_loader import import_agents
from a2a_serverless.http.application import Application, ApplicationError, import_application
from a2a_serverless.testing.agent_check import check_agents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless_tools.project import Project

OURS: Final = frozenset(
    {"__main__", "a2a_serverless", "a2a_serverless_frameworks", "a2a_serverless_tools", "a2a_webhook_receiver"}
)
PACKAGES: Final = frozenset({"site-packages", "dist-packages"})


class AgentsNotLoaded(Exception):
    """The project's agents cannot be imported; the cause is the error, ``text`` its traceback."""

    def __init__(self, error: BaseException, source: Path) -> None:
        is_plain = isinstance(error, ApplicationError)
        super().__init__(f"{error}." if is_plain else f"The agents cannot be imported: {type(error).__name__}: {error}")
        self.text = format_error(error, source)


def load_project(project: Project) -> tuple[Agent, ...]:
    """Imports the project's agents, and anew the modules of it that were imported before. Raises AgentsNotLoaded."""
    return load_served(project.model_copy(update={"application": None})).agents


class Loaded(NamedTuple):
    """A project's agents, and the application in which they are mounted, if it has one."""

    agents: tuple[Agent, ...]
    application: Application | None


def load_served(project: Project) -> Loaded:
    """Imports the project's agents and its application, as ``load_project``. Raises AgentsNotLoaded."""
    source = project.source.resolve()
    if str(source) not in sys.path:
        sys.path.insert(0, str(source))
    for name, value in project.environment.items():
        os.environ.setdefault(name, value)
    before = _take_modules(source)
    importlib.invalidate_caches()
    try:
        agents = tuple(agent for path in project.agents for agent in import_agents(path))
        check_agents(agents)
        application = import_application(project.application) if project.application else None
    except (Exception, SystemExit) as error:
        _take_modules(source)
        sys.modules.update(before)
        raise AgentsNotLoaded(error, source) from error
    return Loaded(agents, application)


def forget_compiled(files: Iterable[Path]) -> None:
    """Deletes the compiled files of sources: one may be as old, by the second, and as long as its new source."""
    for file in files:
        with suppress(NotImplementedError, OSError, ValueError):
            Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)


def places_of_modules(source: Path) -> set[Path]:
    """The top folder or file of each imported module of the project."""
    paths = (Path(place).relative_to(source) for _, place in _modules(source))
    return {source / path.parts[0] for path in paths if path.parts}


def format_error(error: BaseException, source: Path) -> str:
    """The traceback of an error, from the first line of the project on; none, if it was raised elsewhere."""
    return format_traceback(error, lambda file: _is_in(file, source))


def is_raised_in(error: BaseException, source: Path) -> bool:
    """Whether a line of the project has raised the error, and no library that it uses."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and _is_in(frames[-1].f_code.co_filename, source)


def _take_modules(source: Path) -> dict[str, ModuleType]:
    """Removes the project's modules from the imported ones, and returns them."""
    return {name: sys.modules.pop(name) for name, _ in [*_modules(source)]}


def _modules(source: Path) -> Iterator[tuple[str, str]]:
    """The name of each imported module of the project, and its file or folder."""
    for name, module in [*sys.modules.items()]:
        place = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), "")
        if name.partition(".")[0] not in OURS and _is_in(place, source):
            yield name, place


def _is_in(place: str, source: Path) -> bool:
    path = Path(place)
    return bool(place) and path.is_relative_to(source) and PACKAGES.isdisjoint(path.parts)
