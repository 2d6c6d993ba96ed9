"""Makes zips from the folders of functions: compiled for a fast start, and reproducible.

Python compiles modules when they are imported, and in Lambda at every cold start, because a function's folder is
read-only. So each zip has `.pyc` files for the build's runtime, of the unchecked-hash kind (PEP 552): no source is read
and no time stamp is compared. Compiling is slow and several functions have the same files, so results are cached by
content. SAM uploads the zips unchanged, and only if the bucket does not have them yet.
"""

import hashlib
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

EPOCH = (1980, 1, 1, 0, 0, 0)


def functions_of(template: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the properties of a template's functions, by logical id."""
    resources = template["Resources"].items()
    return {name: one["Properties"] for name, one in resources if one["Type"] == "AWS::Serverless::Function"}


def compile_sources(folder: Path, places: Iterable[Path], *, python: Path, cache: Path) -> None:
    """Compile sources at places in a folder to unchecked-hash `.pyc`, using and filling the folder `cache`."""
    cache.mkdir(parents=True, exist_ok=True)
    copies: dict[Path, Path] = {}
    for source in sorted(path for place in places for path in (place.rglob("*.py") if place.is_dir() else [place])):
        if source.suffix != ".py" or not source.exists():
            continue
        content = source.relative_to(folder).as_posix().encode() + b"\0" + source.read_bytes()
        copies[source] = cache / f"{hashlib.sha256(content).hexdigest()}.pyc"
    if fresh := [source for source in copies if not copies[source].exists()]:
        _compile(python, folder, fresh)
    tag = _cache_tag(python)
    for source, copy in copies.items():
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


def keep_newest(folder: Path, count: int) -> None:
    """Remove all but the newest entries of a folder."""
    entries = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in entries[count:]:
        shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)


@cache
def _cache_tag(python: Path) -> str:
    command: list[str | Path] = [python, "-c", "import sys; print(sys.implementation.cache_tag)"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603


def _compile(python: Path, folder: Path, sources: list[Path]) -> None:
    options = ["-q", "-j", "0", "--invalidation-mode", "unchecked-hash", "-p", "/var/task", "-i", "-", "-s"]
    command: list[str | Path] = [python, "-m", "compileall", *options, folder]
    names = "\n".join(map(str, sources))
    # Some packages have files that this version cannot compile (templates, newer syntax); they are never imported.
    subprocess.run(command, input=names, text=True, check=False, stdout=subprocess.DEVNULL)  # noqa: S603
