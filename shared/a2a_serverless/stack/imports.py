"""Whether the agents can be imported from what the functions' zips will hold: known before anything is deployed.

A function whose agent lacks a package fails at its start, and a deployment then waits minutes for it.
"""

import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from a2a_serverless.stack.errors import StackError

REMEDY = 'docs/agents.md, "Packages that an agent needs"'
READ_AGENTS = ("ApiFunction", "RotatorFunction", "WorkerFunction")
AGENTS = "a2a_serverless/agents"
SECONDS = 60
# A variable of the environment that a function will have is no reason: it is not known here.
_IMPORT = """
import importlib, json, os, sys, traceback
failed = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(f"a2a_serverless.agents.{name}")
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        if not (isinstance(error, KeyError) and place.filename in {os.__file__, "<frozen os>"}):
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            failed.append([name, type(error).__name__, str(error), isinstance(error, ImportError), missing])
print()
print(json.dumps(failed))
"""


def check_agents(build: Path, *, python: Path, runs_here: bool) -> None:
    """Import every agent in each built function's folder that reads them, with nothing but what lies in there.

    Raises `StackError` that names agent, reason and functions. What is built for another machine cannot all be imported
    here: without `runs_here` only modules count that are not in the folder.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for folder in (build / name for name in READ_AGENTS):
        if (folder / AGENTS / "registry.py").exists():
            for reason in _reasons(folder, python, runs_here=runs_here):
                found[reason].append(folder.name.removesuffix("Function").lower())
    if found:
        whys = (f"{reason} (in the zip of {', '.join(functions)})" for reason, functions in found.items())
        raise StackError("build", "; ".join(whys), remedy=REMEDY)


def check_agents_here(root: Path) -> None:
    """The same with the environment of this checkout, in which the api is served on this machine."""
    shared = root / "shared"
    env = {**os.environ, "PYTHONPATH": str(shared)}
    failed = _failed([sys.executable, "-B"], env, _names(shared))
    if failed:
        whys = (
            f"agents/{name}.py cannot be imported in {sys.prefix}: {kind}: {text}" for name, kind, text, *_ in failed
        )
        raise StackError("api", "; ".join(whys), remedy=REMEDY)


def _reasons(folder: Path, python: Path, *, runs_here: bool) -> Iterator[str]:
    env = {"PYTHONPATH": str(folder), "PATH": os.environ.get("PATH", ""), "AWS_DEFAULT_REGION": "us-east-1"}
    # -S: no site-packages, and so nothing but the folder.
    for name, kind, text, of_an_import, missing in _failed([python, "-S", "-B"], env, _names(folder)):
        file = f"agents/{name}.py"
        if missing and not _is_there(folder, missing):
            yield f"{file} needs the module {missing!r}, which is not there"
        elif runs_here or not of_an_import:
            yield f"{file} cannot be imported: {kind}: {text}"
        else:
            yield from (
                f"{file} needs the module {module!r}, which is not there"
                for module in _imported(folder / AGENTS / f"{name}.py")
                if not _is_there(folder, module)
            )


def _failed(python: list[str | Path], env: Mapping[str, str], names: Iterable[str]) -> list[list[str]]:
    try:
        done = subprocess.run(  # noqa: S603 - the runtime's Python
            [*python, "-c", _IMPORT, *names], env=env, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise StackError("build", f"importing the agents takes longer than {SECONDS} s") from None
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        raise StackError(
            "build", f"importing the agents ended Python: {(done.stderr.splitlines() or ['it said nothing'])[-1]}"
        )
    return list(json.loads(lines[-1]))


def _names(folder: Path) -> list[str]:
    """The agents that the registry in the folder names, read and not run."""
    for node in ast.parse((folder / AGENTS / "registry.py").read_text()).body:
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and node.target.id == "NAMES"
            and node.value
        ):
            return [str(name) for name in ast.literal_eval(node.value)]
    raise StackError("build", "agents/registry.py has no NAMES in it")


def _imported(source: Path) -> Iterator[str]:
    """The modules that a source imports when it is imported itself, as far as a look at it tells."""
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _is_there(folder: Path, module: str) -> bool:
    top = module.partition(".")[0]
    if top != "a2a_serverless":
        return top in sys.stdlib_module_names or any(folder.glob(f"{top}/")) or any(folder.glob(f"{top}.*"))
    path = folder / module.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()
