"""Checks that the agents can be imported from a function's folder, before it becomes a zip.

A function whose agent lacks a package fails when it starts, and the deployment waits minutes for it.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_serverless.project import Project, imported_modules, own_packages
from a2a_serverless.project_check import function_environment, run_import
from a2a_serverless.stack.errors import StackError
from a2a_serverless.stack.library import LIBRARY

if TYPE_CHECKING:
    from a2a_serverless.stack.targets import Target

# Modules of the library for people and tests are not in a function, so this imports the loader only.
_IMPORT = """
import json, sys
from a2a_serverless.agent_loader import import_agents
failed = []
for path in sys.argv[1:]:
    try:
        import_agents(path)
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        failed.append([path, f"{type(error).__name__}: {error}", missing])
print()
print(json.dumps(failed))
"""


def check_folder(folder: Path, paths: Sequence[str], project: Project, target: "Target", python: Path) -> list[str]:
    """Return why agents cannot be imported from a function's folder, and from nothing else.

    A build for another machine is not imported: only modules that its agents name and that are not there are found.
    """
    if not target.runs_here:
        return sorted(set(_absent(folder, project)))
    environment = project.environment | function_environment() | {"PYTHONPATH": str(folder)}
    # -S: no site-packages, only the folder.
    command: list[str | Path] = [python, "-S", "-B", "-c", _IMPORT, *paths]
    return [_reason(folder, *failed) for failed in run_import(command, environment, partial(StackError, "build"))]


def _reason(folder: Path, path: str, error: str, missing: str | None) -> str:
    if missing and not _is_there(folder, missing):
        return f"{path} needs the module {missing!r}, which is not there"
    return f"{path} cannot be imported: {error}"


def _absent(folder: Path, project: Project) -> Iterator[str]:
    """What the project's packages import at their top level, and is not in the folder."""
    for place in own_packages(project):
        for file in [place] if place.is_file() else place.rglob("*.py"):
            for module in imported_modules(ast.parse(file.read_bytes())):
                if not _is_there(folder, module):
                    yield f"{file.relative_to(project.source)} needs the module {module!r}, which is not there"


def _is_there(folder: Path, module: str) -> bool:
    top = module.partition(".")[0]
    if top != LIBRARY:
        return top in sys.stdlib_module_names or any(folder.glob(f"{top}/")) or any(folder.glob(f"{top}.*"))
    path = folder / module.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()
