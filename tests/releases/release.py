"""Builds, checks, installs and tries what a release publishes, from the files of the commit alone: ``make release``.

It leaves the archives in ``dist``, and records what the release stores. It uploads nothing: the workflow does, with
``--publish``, which makes an error of everything that a person must still do.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from rich.console import Console

from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.library import CHECKOUT
from a2a_serverless_tools.stack.processes import run_logged
from a2a_serverless_tools.stack.progress import step
from a2a_serverless_tools.stack.wheels import SOURCES
from tests.journeys.first_minute import play, way_from
from tests.releases.story import record
from tests.stack.wheels import JAVASCRIPT, RELEASE, build, pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

UNKNOWN: Final = "github.com/OWNER/"
RECORDS: Final = Path("tests/releases")
FOLDER: Final = CHECKOUT / ".a2a/release"
DIST: Final = CHECKOUT / "dist"
SBOM: Final = CHECKOUT / ".a2a/sbom.cdx.json"
TWINE: Final = CHECKOUT / ".a2a/venvs/audit/bin/twine"
SUITES: Final = {
    "Checking metadata and contents": ["tests/releases/test_distributions.py"],
    "Installing each distribution into an empty environment": ["tests/releases/test_installed.py"],
    "Playing the first tutorial from the wheels": ["tests/journeys/test_tutorials.py", "-k", "tutorial-agent.md"],
}


def release(console: Console) -> list[str]:
    """Leaves a release in ``DIST``; returns what a person must still do. Raises StackError if something is wrong."""
    version, commit = read_version(CHECKOUT), git("rev-parse", "HEAD")
    refuse_changes(version)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with step(console, f"Recording what {version} stores in {RECORDS / version}") as note:
        note("new" if record_forms(version) else "as recorded")
    with step(console, f"Building {commit[:12]} twice"):
        build_twice(commit)
    with step(console, "Checking how an index shows it"):
        run("twine", [TWINE, "--no-color", "check", "--strict", *archives(FOLDER / "dist")])
    for title, files in SUITES.items():
        with step(console, title):
            run(Path(files[0]).stem, [sys.executable, "-m", "pytest", "-n0", "-q", "--maxfail=1", *files])
    with step(console, "Playing the first minute from the wheels") as note:
        note(f"{play_first_minute():.0f} s")
    for file in [*deliver(), *deliver_npm(), SBOM]:
        console.print(f"{sha256(file)}  {file.relative_to(CHECKOUT)}", soft_wrap=True, highlight=False)
    return list(left_to_do(CHECKOUT, version))


def play_first_minute() -> float:
    """Returns the seconds from an empty folder to a task that has survived its process. Raises StackError."""
    with TemporaryDirectory() as folder:
        try:
            way = way_from(f"{shlex.quote(str(FOLDER / 'dist'))}/*.whl")
            return sum(line.seconds for line in play(way, Path(folder)))
        except RuntimeError as error:
            raise StackError("first minute", str(error)) from None


def read_version(checkout: Path) -> str:
    """The version of a checkout."""
    return str(tomllib.loads((checkout / "pyproject.toml").read_text())["project"]["version"])


def git(*words: str) -> str:
    """What git says about this checkout."""
    return subprocess.run(["git", *words], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603, S607


def refuse_changes(version: str) -> None:
    """Raises StackError if a file differs from the commit: then the tests would look at another program."""
    changed = git("status", "--porcelain", "--", ":/", f":!/{RECORDS / version}").splitlines()
    if changed:
        raise StackError("checkout", f"not committed: {changed[0].strip()}", remedy="commit it, or `git stash -u`")


def record_forms(version: str) -> bool:
    """Records what the release stores; returns whether it is new. Raises StackError if it was recorded otherwise."""
    try:
        return record(CHECKOUT / RECORDS / version)
    except ValueError as error:
        raise StackError(
            "recording",
            str(error),
            remedy=f"a version of its own in each pyproject.toml; if {version} was never published, remove its folder",
        ) from None


def build_twice(commit: str) -> None:
    """Leaves the archives in ``FOLDER``. Raises StackError if a second build has other bytes.

    The second one is in another folder, and makes the wheels of the files, not of the source archives.
    """
    epoch = git("show", "--no-patch", "--format=%ct", commit)
    os.environ["SOURCE_DATE_EPOCH"] = epoch
    for name in ("source", "again"):
        (FOLDER / name).mkdir()
        with subprocess.Popen(["git", "archive", commit], cwd=CHECKOUT, stdout=subprocess.PIPE) as files:  # noqa: S603, S607
            subprocess.run(["tar", "--extract", "--directory", FOLDER / name], stdin=files.stdout, check=True)  # noqa: S603, S607
    build(FOLDER / "source", FOLDER / "dist")
    pack(FOLDER / "source", FOLDER / "npm")
    for what in ("--sdist", "--wheel"):
        build(FOLDER / "again", FOLDER / "dist-again", what)
    pack(FOLDER / "again", FOLDER / "npm-again")
    if names := [name for kind in ("dist", "npm") for name in differences(FOLDER / kind, FOLDER / f"{kind}-again")]:
        raise StackError("build", f"two builds differ: {', '.join(names)}", remedy=f"compare them in {FOLDER}")


def differences(first: Path, second: Path) -> list[str]:
    """The names of the files that two folders do not have with the same bytes."""
    sums = [{(file.name, sha256(file)) for file in folder.glob("*")} for folder in (first, second)]
    return sorted({name for name, _ in sums[0] ^ sums[1]})


def deliver() -> list[Path]:
    """Leaves the archives in ``DIST``, in a folder for each distribution, because each has a publisher of its own."""
    shutil.rmtree(DIST, ignore_errors=True)
    delivered = []
    for file in archives(FOLDER / "dist"):
        place = DIST / file.name.partition("-")[0].replace("_", "-")
        place.mkdir(parents=True, exist_ok=True)
        delivered.append(Path(shutil.copy(file, place)))
    return delivered


def deliver_npm() -> list[Path]:
    """Leaves the npm package in a folder of its own, if it was packed."""
    place = DIST / "npm"
    place.mkdir()
    return [Path(shutil.copy(file, place)) for file in (FOLDER / "npm").glob("*.tgz")]


def archives(folder: Path) -> list[Path]:
    """The archives in a folder."""
    return sorted(folder.iterdir())


def sha256(file: Path) -> str:
    """The digest of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def run(part: str, command: Sequence[str | Path]) -> None:
    """Runs a command. Raises StackError if it fails."""
    log = FOLDER / f"{part}.log"
    if lines := run_logged(command, {**os.environ, RELEASE: str(FOLDER), "CI": "1"}, log, CHECKOUT):
        errors = [line for line in lines if line.startswith(("E ", "ERROR"))]
        raise StackError(part, (errors or lines)[0 if errors else -1], log=log.relative_to(CHECKOUT))


def left_to_do(checkout: Path, version: str) -> Iterator[str]:
    """What a person must do before this commit may be published."""
    projects = [folder.relative_to(CHECKOUT) / "pyproject.toml" for folder in SOURCES.values()]
    for file in [*projects, JAVASCRIPT / "package.json"]:
        if UNKNOWN in (checkout / file).read_text():
            yield f"{file}: write the owner of the repository into {UNKNOWN}"
    if not shutil.which("npm"):
        yield "npm: install it, or the JavaScript receiver is not packed"
    dated = re.compile(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", re.MULTILINE)
    if not dated.search((checkout / "CHANGELOG.md").read_text()):
        yield f"CHANGELOG.md: write the day of the release behind {version}"
    if git("status", "--porcelain", "--", str(RECORDS / version)):
        yield f"{RECORDS / version}: commit the recording"


def main(words: Sequence[str]) -> int:
    """Makes a release, and says what is missing."""
    console = Console(highlight=False)
    publish = "--publish" in words
    try:
        missing = release(console)
    except StackError as error:
        console.print(f"✗ {error}", markup=False, soft_wrap=True)
        return 1
    for line in missing:
        console.print(f"{'✗' if publish else '!'} before it is published: {line}", markup=False, soft_wrap=True)
    return 1 if publish and missing else 0


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1:]))
