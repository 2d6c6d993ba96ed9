"""Makes zips from the folders of `sam build`: trimmed, compiled for a fast start, and reproducible.

Python compiles modules when they are imported, and in Lambda at every cold start, because a function's folder is
read-only. So each zip has `.pyc` files for the build's runtime, of the unchecked-hash kind (PEP 552): no source is read
and no time stamp is compared. Compiling is slow and several functions have the same files, so results are cached by
content. SAM uploads the zips unchanged, and only if the bucket does not have them yet.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from a2a_serverless.stack.errors import StackError
from a2a_serverless.stack.imports import READ_AGENTS, agent_paths, write_manifests
from a2a_serverless.stack.trimming import RUN_AGENTS, trim, trim_agents

EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(
    build: Path, *, python: Path, compiled: Path, local_agents: Sequence[str] = (), runs_here: bool = True
) -> None:
    """Turn each function's folder in a `sam build` result into a zip beside it; the built template then names the zips.

    `python` compiles; `compiled` is the folder of the compile cache. `local_agents` are import paths of agents that a
    local run may add to the template's. `runs_here` says that the build can run on this machine. Raises `StackError`
    when an agent cannot be imported.
    """
    for folder in functions(build):
        trim(folder)
    # The template is written as JSON: SAM reads it seven times with a parser that is fast only for JSON.
    template = yaml.load((build / "template.yaml").read_text(), Loader=yaml.CSafeLoader)
    agents = [*agent_paths(template), *local_agents]
    is_complete = write_manifests(build, agents, python=python, runs_here=runs_here)
    for folder in functions(build):
        if folder.name not in (RUN_AGENTS if is_complete else READ_AGENTS):
            trim_agents(folder, agents)
        compile_sources(folder, python=python, cache=compiled)
    with ThreadPoolExecutor() as pool:  # deflate runs outside the interpreter's lock
        list(pool.map(write_zip, functions(build)))
    for properties in functions_of(template).values():
        properties["CodeUri"] = f"{Path(properties['CodeUri']).stem}.zip"
    (build / "template.yaml").write_text(json.dumps(template, indent=1))


def functions_of(template: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the properties of a template's functions, by logical id."""
    resources = template["Resources"].items()
    return {name: one["Properties"] for name, one in resources if one["Type"] == "AWS::Serverless::Function"}


def functions(build: Path) -> list[Path]:
    """Return the function folders of a `sam build` result."""
    return sorted(app.parent for app in build.glob("*/app.py"))


def interpreter(runtime: str) -> Path:
    """Return a Python of exactly this Lambda runtime's version. Raises `StackError` when the machine has none."""
    version = runtime.removeprefix("python")
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.executable)
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    found = _output([uv, "python", "find", "--no-python-downloads", version]) if uv else ""
    if not found:
        why = f"no {runtime} to compile with, and without compiled files every cold start takes about twice as long"
        raise StackError("build", why, remedy=f"`uv python install {version}`, or build for another Runtime")
    return Path(found)


def compile_sources(folder: Path, *, python: Path, cache: Path) -> None:
    """Compile every source to an unchecked-hash `.pyc`, using and filling the folder `cache`."""
    cache.mkdir(parents=True, exist_ok=True)
    kept: dict[Path, Path] = {}
    for source in sorted(folder.rglob("*.py")):
        content = source.relative_to(folder).as_posix().encode() + b"\0" + source.read_bytes()
        kept[source] = cache / f"{hashlib.sha256(content).hexdigest()}.pyc"
    if fresh := [source for source in kept if not kept[source].exists()]:
        _compile(python, folder, fresh)
    tag = _output([python, "-c", "import sys; print(sys.implementation.cache_tag)"])
    for source, copy in kept.items():
        target = source.parent / "__pycache__" / f"{source.stem}.{tag}.pyc"
        if copy.exists():
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(copy, target)
        elif target.exists():
            shutil.copyfile(target, copy)


def write_zip(folder: Path) -> None:
    """Zip a folder to `<folder>.zip`. The same files give the same bytes: sorted names, no times, 644 or 755."""
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as out:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if os.access(path, os.X_OK) else 0o644) << 16
            out.writestr(entry, path.read_bytes())


def _compile(python: Path, folder: Path, sources: list[Path]) -> None:
    options = ["-q", "-j", "0", "--invalidation-mode", "unchecked-hash", "-p", "/var/task", "-i", "-", "-s"]
    command: list[str | Path] = [python, "-m", "compileall", *options, folder]
    listed = "\n".join(map(str, sources))
    # Some packages have files that this version cannot compile (templates, newer syntax); they are never imported.
    subprocess.run(command, input=listed, text=True, check=False, stdout=subprocess.DEVNULL)  # noqa: S603


def _output(command: Sequence[str | Path]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
