"""The wheels of this project, as files: a project of an author installs these, and asks no index for their names.

The names are free on public indexes, so whoever takes them there could be installed in place of the library.
"""

import base64
import hashlib
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, PackagePath, distribution
from pathlib import Path

from a2a_serverless_tools.stack.environments import find_uv
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.library import CHECKOUT, DISTRIBUTIONS, IS_WHEEL

SOURCES = {
    "a2a-serverless": CHECKOUT,
    "a2a-serverless-frameworks": CHECKOUT / "shared/a2a_serverless_frameworks",
    "a2a-serverless-tools": CHECKOUT / "shared/a2a_serverless_tools",
    "a2a-webhook-receiver": CHECKOUT / "webhook_receiver",
}
_OF_AN_INSTALLER = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_build.json", "uv_cache.json")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def make_wheels(folder: Path) -> dict[str, Path]:
    """Write the wheels of all distributions into a folder; return them by distribution. Raises `StackError`.

    A checkout is built; installed packages are packed again, from the files that their RECORD lists, with its digests.
    """
    if IS_WHEEL:
        return {name: _pack(distribution(name), folder) for name in DISTRIBUTIONS}
    return {name: _build(source, folder / name) for name, source in SOURCES.items()}


def _build(source: Path, folder: Path) -> Path:
    options = ["--quiet", "--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", str(folder)]
    process = subprocess.run([find_uv(), "build", *options, str(source)], capture_output=True, text=True, check=False)  # noqa: S603
    if process.returncode:
        raise StackError("wheel", (process.stderr.splitlines() or ["uv build failed"])[-1])
    (wheel,) = folder.glob("*.whl")
    return wheel


def _pack(installed: Distribution, folder: Path) -> Path:
    name = installed.name.replace("-", "_")
    info = f"{name}-{installed.version}.dist-info"
    files = [file for file in installed.files or () if file.parts[0] in {name, info} and _is_packed(file)]
    wheel = folder / f"{name}-{installed.version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            _add(archive, str(file), _verified(file))
        _add(archive, f"{info}/RECORD", _record(files, f"{info}/RECORD"))
    return wheel


def _is_packed(file: PackagePath) -> bool:
    return "__pycache__" not in file.parts and file.name not in _OF_AN_INSTALLER


def _verified(file: PackagePath) -> bytes:
    """What a file holds. Raises `StackError` if it is not what was installed."""
    content = file.read_binary()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    if file.hash is None or file.hash.value != digest:
        raise StackError("wheel", f"{file} was changed after its installation", remedy="install the wheel again")
    return content


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    about = zipfile.ZipInfo(name, _EPOCH)
    about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    archive.writestr(about, content)


def _record(files: list[PackagePath], record: str) -> bytes:
    lines = [f"{file},sha256={file.hash.value if file.hash else ''},{file.size}" for file in files]
    return "".join(f"{line}\n" for line in [*lines, f"{record},,"]).encode()
