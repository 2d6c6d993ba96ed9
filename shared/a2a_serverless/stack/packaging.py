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
from collections.abc import Sequence
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
    _pack_agents(build, [*agent_paths(template), *local_agents], python=python, runs_here=runs_here)
    for folder in functions(build):
        compile_sources(folder, python=python, cache=compiled)
    with ThreadPoolExecutor() as pool:  # deflate runs outside the interpreter's lock
        list(pool.map(write_zip, functions(build)))
    _name_zips(template)
    (build / "template.yaml").write_text(json.dumps(template, indent=1))


def functions(build: Path) -> list[Path]:
    """Return the function folders of a `sam build` result."""
    return sorted(app.parent for app in build.glob("*/app.py"))


def interpreter(runtime: str) -> Path:
    """Return a Python of exactly this Lambda runtime's version. Raises `StackError` when the machine has none."""
    version = runtime.removeprefix("python")
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.executable)
    for candidate in (shutil.which(runtime), _found_by_uv(version)):
        if candidate and _version(candidate) == version:
            return Path(candidate)
    raise StackError(
        "build",
        f"no {runtime} to compile with, and without compiled files every cold start takes about twice as long",
        remedy=f"`uv python install {version}`, or build for another Runtime",
    )


def compile_sources(folder: Path, *, python: Path, cache: Path) -> None:
    """Compile every source to an unchecked-hash `.pyc`, using and filling the folder `cache`."""
    cache.mkdir(parents=True, exist_ok=True)
    pending = [(source, cache / _key(folder, source)) for source in sorted(folder.rglob("*.py"))]
    fresh = [source for source, kept in pending if not kept.exists()]
    if fresh:
        _compile(python, folder, fresh)
    tag = _cache_tag(python)
    for source, kept in pending:
        target = source.parent / "__pycache__" / f"{source.stem}.{tag}.pyc"
        if kept.exists():
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(kept, target)
        elif target.exists():
            shutil.copyfile(target, kept)


def write_zip(folder: Path) -> None:
    """Zip a folder to `<folder>.zip`. The same files give the same bytes: sorted names, no times, 644 or 755."""
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as out:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if os.access(path, os.X_OK) else 0o644) << 16
            out.writestr(entry, path.read_bytes())


def _pack_agents(build: Path, paths: list[str], *, python: Path, runs_here: bool) -> None:
    """Write the manifests, and remove the agents' code from functions that do not need it."""
    is_complete = write_manifests(build, paths, python=python, runs_here=runs_here)
    keep = RUN_AGENTS if is_complete else READ_AGENTS
    for folder in functions(build):
        if folder.name not in keep:
            trim_agents(folder, paths)


def _name_zips(template: dict[str, Any]) -> None:
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = f"{Path(resource['Properties']['CodeUri']).stem}.zip"


def _key(folder: Path, source: Path) -> str:
    name = source.relative_to(folder).as_posix().encode()
    return hashlib.sha256(name + b"\0" + source.read_bytes()).hexdigest() + ".pyc"


def _compile(python: Path, folder: Path, sources: list[Path]) -> None:
    command: list[str | Path] = [python, "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
    command += ["-s", folder, "-p", "/var/task", "-i", "-"]
    listed = "\n".join(str(source) for source in sources)
    # Some packages have files that this version cannot compile (templates, newer syntax); they are never imported.
    subprocess.run(command, input=listed, text=True, check=False, stdout=subprocess.DEVNULL)  # noqa: S603


def _cache_tag(python: Path) -> str:
    return _ask(python, "import sys; print(sys.implementation.cache_tag)")


def _version(python: str) -> str:
    return _ask(python, "import sys; print('%d.%d' % sys.version_info[:2])")


def _ask(python: str | Path, question: str) -> str:
    return subprocess.run([python, "-c", question], capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603


def _found_by_uv(version: str) -> str | None:
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    if not Path(uv).exists():
        return None
    command = [uv, "python", "find", "--no-python-downloads", version]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None  # noqa: S603
