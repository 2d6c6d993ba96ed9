"""Checks that the agents can be imported from the functions' zips, and writes the manifest that describes them.

A function whose agent lacks a package fails when it starts, and the deployment waits minutes for it. With the manifest,
only the functions that run an agent import it.
"""

import ast
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from a2a_serverless.agent_loader import MANIFEST, VERSION
from a2a_serverless.stack.errors import StackError

REMEDY = 'docs/agents.md, "Packages that an agent needs"'
RUN_QUEUED = "WorkerFunction"
RUN_INLINE = "ApiFunction"
READ_AGENTS = (RUN_INLINE, "RotatorFunction", RUN_QUEUED)
LIBRARY = "a2a_serverless"
SECONDS = 60
Described = dict[str, list[dict[str, Any]]]
# A missing environment variable is no failure: the function will have it, and it is not known here.
_DESCRIBE = """
import json, os, sys, traceback
from a2a_serverless.agent_loader import describe
described, failed = {}, []
for path in sys.argv[1:]:
    try:
        described[path] = describe(path)
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        if not (isinstance(error, KeyError) and place.filename in {os.__file__, "<frozen os>"}):
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            failed.append([path, type(error).__name__, str(error), isinstance(error, ImportError), missing])
print()
print(json.dumps([described, failed]))
"""


@dataclass(frozen=True)
class ImportFailure:
    """Why the agent at ``path`` cannot be imported; ``missing`` is the module that was not found, if any."""

    path: str
    kind: str
    text: str
    is_import: bool
    missing: str | None

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def agent_paths(template: Mapping[str, Any]) -> list[str]:
    """Return the import paths of a built template's agents."""
    shared = template.get("Globals", {}).get("Function", {}).get("Environment", {}).get("Variables", {})
    return [path.strip() for path in str(shared.get("AGENTS", "")).split(",") if path.strip()]


def local_agent_paths(root: Path) -> list[str]:
    """Return the import paths of the agents that only local runs may use, from ``pyproject.toml``."""
    tools = tomllib.loads((root / "pyproject.toml").read_text()).get("tool", {})
    return [str(path) for path in tools.get("a2a-serverless", {}).get("local-agents", [])]


def write_manifests(build: Path, paths: Sequence[str], *, python: Path, runs_here: bool) -> bool:
    """Write the manifest into the folder of each function that reads it. False when an agent is not described.

    Each agent is imported from the folder of the function that runs it, and from nothing else. Raises ``StackError``
    with agent, reason and functions. A build for another machine cannot always be imported here: without ``runs_here``
    only modules that are missing in the folder are errors, and agents are described with this machine's environment.
    """
    described, in_worker = _described(build / RUN_QUEUED, paths, python, runs_here=runs_here)
    unknown = [{"runs": "inline"}]
    inline = [path for path in paths if any(one["runs"] == "inline" for one in described.get(path, unknown))]
    in_api = _described(build / RUN_INLINE, inline, python, runs_here=runs_here)[1]
    whys = []
    for reason in dict.fromkeys(in_worker + in_api):
        names = [name for name, reasons in (("api", in_api), ("worker", in_worker)) if reason in reasons]
        whys.append(f"{reason} (in the zip of {', '.join(names)})")
    if whys:
        raise StackError("build", "; ".join(whys), remedy=REMEDY)
    for folder in (build / name for name in READ_AGENTS):
        if folder.is_dir():
            (folder / MANIFEST).write_text(json.dumps({"version": VERSION, "agents": described}, ensure_ascii=False))
    return len(described) == len(paths)


def check_agents_here(root: Path, paths: Sequence[str]) -> None:
    """Import the agents in the environment of this checkout, which serves the local api. Raises ``StackError``."""
    _, failed = _run([sys.executable, "-B"], {**os.environ, "PYTHONPATH": str(root / "shared")}, paths)
    if failed:
        whys = (f"{one.path} cannot be imported in {sys.prefix}: {one}" for one in failed)
        raise StackError("api", "; ".join(whys), remedy=REMEDY)


def _described(folder: Path, paths: Sequence[str], python: Path, *, runs_here: bool) -> tuple[Described, list[str]]:
    """Return the descriptions of the agents that can be imported from a folder, and the reasons for the others."""
    if not paths or not folder.is_dir():
        return {}, []
    env = {"PYTHONPATH": str(folder), "PATH": os.environ.get("PATH", ""), "AWS_DEFAULT_REGION": "us-east-1"}
    # -S: no site-packages, only the folder.
    described, failed = _run([python, "-S", "-B"], env, paths)
    reasons = [reason for one in failed for reason in _reasons(folder, one, runs_here=runs_here)]
    if not runs_here and not reasons and failed:
        described |= _run([sys.executable, "-B"], {**env, "PYTHONPATH": str(folder)}, [one.path for one in failed])[0]
    return described, reasons


def _reasons(folder: Path, failure: ImportFailure, *, runs_here: bool) -> Iterator[str]:
    path = failure.path
    if failure.missing and not _is_there(folder, failure.missing):
        yield f"{path} needs the module {failure.missing!r}, which is not there"
    elif runs_here or not failure.is_import:
        yield f"{path} cannot be imported: {failure}"
    else:
        yield from (
            f"{path} needs the module {module!r}, which is not there"
            for module in _imported(folder, path.partition(":")[0])
            if not _is_there(folder, module)
        )


def _run(
    python: Sequence[str | Path], env: Mapping[str, str], paths: Iterable[str]
) -> tuple[Described, list[ImportFailure]]:
    try:
        done = subprocess.run(  # noqa: S603 - the runtime's Python
            [*python, "-c", _DESCRIBE, *paths], env=env, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise StackError("build", f"importing the agents takes longer than {SECONDS} s") from None
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        said = (done.stderr.splitlines() or ["it said nothing"])[-1]
        raise StackError("build", f"importing the agents ended Python: {said}")
    described, failed = json.loads(lines[-1])
    return described, [ImportFailure(*one) for one in failed]


def _imported(folder: Path, module: str) -> Iterator[str]:
    """Yield the modules that a module's source imports at its top level."""
    place = folder / module.replace(".", "/")
    source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _is_there(folder: Path, module: str) -> bool:
    top = module.partition(".")[0]
    if top != LIBRARY:
        return top in sys.stdlib_module_names or any(folder.glob(f"{top}/")) or any(folder.glob(f"{top}.*"))
    path = folder / module.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()
