"""Checks that the agents can be imported from a function's folder, before it becomes a zip.

A function whose agent lacks a package fails when it starts, and the deployment waits minutes for it.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import resolve_name
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_serverless_tools.project import LIBRARY, Project, imported_modules
from a2a_serverless_tools.project_check import function_environment, run_import
from a2a_serverless_tools.stack.errors import StackError

if TYPE_CHECKING:
    from a2a_serverless_tools.stack.targets import Target

_IMPORT = """
import json, sys
from importlib import import_module
failed = []
for path in sys.argv[1:]:
    try:
        import_module(path.partition(":")[0])
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        failed.append([path, f"{type(error).__name__}: {error}", missing])
print()
print(json.dumps(failed))
"""


def check_folder(folder: Path, paths: Sequence[str], project: Project, target: "Target", python: Path) -> list[str]:
    """Return why agents or an application cannot be imported from a function's folder, and from nothing else.

    A build for another machine is not imported. There only the imports are followed that stand at the top level of the
    project's modules, and modules that are not there are found.
    """
    if not target.runs_here:
        return sorted(set(_absent(folder, paths, project)))
    environment = project.environment | function_environment() | {"PYTHONPATH": str(folder)}
    # -S: no site-packages, only the folder.
    command: list[str | Path] = [python, "-S", "-B", "-c", _IMPORT, *paths]
    return [_reason(folder, *failure) for failure in run_import(command, environment, partial(StackError, "build"))]


def _reason(folder: Path, path: str, error: str, missing: str | None) -> str:
    if missing and not _is_there(folder, missing):
        return f"{path} needs the module {missing!r}, which is not there"
    return f"{path} cannot be imported: {error}"


def _absent(folder: Path, paths: Sequence[str], project: Project) -> Iterator[str]:
    """Yield what the agents' import needs at the top level of the project's modules, and is not in the folder."""
    for file, tree in _reached(paths, project.source):
        for module in imported_modules(tree):
            if not _is_there(folder, module):
                yield f"{file.relative_to(project.source)} needs the module {module!r}, which is not there"


def _reached(paths: Sequence[str], source: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the project's files that are run when these agents are imported."""
    pending, modules = [path.partition(":")[0] for path in paths], {"", *LIBRARY}
    while pending:
        module = pending.pop()
        if module in modules or module.partition(".")[0] in LIBRARY:
            continue
        modules.add(module)
        pending.append(module.rpartition(".")[0])
        place = source / module.replace(".", "/")
        if file := next((one for one in (place / "__init__.py", Path(f"{place}.py")) if one.is_file()), None):
            tree = ast.parse(file.read_bytes())
            yield file, tree
            package = module if file.name == "__init__.py" else module.rpartition(".")[0]
            pending += [*imported_modules(tree), *_from(tree, package)]


def _from(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield the modules that ``from ... import name`` may mean in a module of a package: relative, or a submodule."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            yield from (module, *(f"{module}.{alias.name}" for alias in node.names))


def _is_there(folder: Path, module: str) -> bool:
    top = module.partition(".")[0]
    if top not in LIBRARY:
        return top in sys.stdlib_module_names or any(folder.glob(f"{top}/")) or any(folder.glob(f"{top}.*"))
    path = folder / module.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()
