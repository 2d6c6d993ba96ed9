"""The official clients: what runs each, and what each cannot do by itself.

``python -m tests.conformance.official`` makes what has to be made (CI does, while packages are to be had).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT: Final = Path(__file__).parents[2]
HERE: Final = Path(__file__).parent / "clients"
RUST: Final = Path(__file__).parent / "rust"
MADE: Final = ROOT / ".a2a" / "clients"
GO: Final = "/usr/local/go/bin/go"  # where Go's own packages put it
TIMEOUT_S: Final = 600
# The clients run for a few seconds: less than optimizing them takes.
UNOPTIMIZED_GO: Final = "-gcflags=all=-N -l"
UNOPTIMIZED_JAVA: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class NotToBeHad(Exception):
    """A toolchain or a package is missing on this machine; says which."""


@dataclass(frozen=True)
class Official:
    """An SDK at a version. ``cannot``: what it cannot do by itself, and why."""

    command: Callable[[], list[str]]
    versions: tuple[str, ...] = ("1.0",)
    cannot: dict[str, str] = field(default_factory=dict)


def _python(environment: str, program: str) -> list[str]:
    python = ROOT / ".a2a/venvs" / environment / "bin/python"
    if not python.exists():
        raise NotToBeHad("it needs `make setup`")
    return [str(python), str(HERE / program)]


def _javascript(program: str) -> list[str]:
    if not (HERE / "js/node_modules").exists():
        raise NotToBeHad("it needs `npm ci --prefix tests/conformance/clients/js`")
    return [_tool("node"), str(HERE / "js" / program)]


def _go(version: str) -> list[str]:
    go = shutil.which("go") or shutil.which(GO)
    if go is None:
        raise NotToBeHad("it needs Go 1.25 or newer")

    def make(folder: Path) -> None:
        _run([go, "build", UNOPTIMIZED_GO, "-o", str(folder / "client"), "."], HERE / "go")

    sources = [HERE / "go" / one for one in ("client.go", "go.mod", "go.sum")]
    return [str(_made("go", sources, make) / "client"), version]


def rust_program(name: str) -> Path:
    """A program of ``tests/conformance/rust``. Cargo keeps what it compiles in the user's cache, for all checkouts."""
    cargo = _tool("cargo")

    def make(folder: Path) -> None:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "a2a-serverless/rust"
        _run([cargo, "build", "--quiet", "--locked", "--bin", name, "--target-dir", str(cache)], RUST)
        shutil.copy2(cache / "debug" / name, folder)

    return (
        _made(f"rust-{name}", [RUST / one for one in ("Cargo.toml", "Cargo.lock", f"src/bin/{name}.rs")], make) / name
    )


def _java(folder: str) -> list[str]:
    maven, compiler, java = _tool("mvn"), _tool("javac"), _tool("java")

    def make(into: Path) -> None:
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={into / 'lib'}"]
        _run([maven, "--quiet", "--batch-mode", *goal], HERE / folder)
        _run([compiler, "-cp", f"{into / 'lib'}/*", "-d", str(into), "Client.java"], HERE / folder)

    made = _made(folder, [HERE / folder / one for one in ("Client.java", "pom.xml")], make)
    return [java, *UNOPTIMIZED_JAVA, "-cp", f"{made}{os.pathsep}{made / 'lib'}/*", "Client"]


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotToBeHad(f"it needs {name}")
    return found


def _made(name: str, sources: Sequence[Path], make: Callable[[Path], None]) -> Path:
    """The folder with what was made of these very sources. Made aside, so that nobody sees half of it."""
    digest = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    folder = MADE / f"{name}-{digest}"
    if not folder.exists():
        MADE.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=MADE))
        make(aside)
        try:
            aside.rename(folder)
        except OSError:  # somebody else was first
            shutil.rmtree(aside)
    return folder


def _run(command: list[str], folder: Path) -> None:
    try:
        ran = subprocess.run(  # noqa: S603 - the toolchains that were found
            command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotToBeHad(f"`{Path(command[0]).name}` took longer than {TIMEOUT_S} s") from None
    if ran.returncode != 0:
        said = (ran.stdout + ran.stderr).strip().splitlines() or ["no word of why"]
        raise NotToBeHad(f"`{Path(command[0]).name}` says: {said[0][:200]}")


NO_VERIFIER: Final = "it has no verifier of cards"
NOT_OF_1_0: Final = "it sends and reads configurations in a shape from before 1.0"

OFFICIAL: Final = {
    "Python 1.3.0": Official(lambda: _python("sdk-1", "sdk_1.py")),
    "Python 0.3.26": Official(
        lambda: _python("sdk-0.3", "sdk_0_3.py"),
        ("0.3",),
        cannot={"HTTP+JSON types": "over REST it has one class of errors, which shows the status and the text"},
    ),
    "JavaScript 1.3.0": Official(
        lambda: _javascript("client.mjs"),
        cannot={
            "JSONRPC refused stream": "a refused stream raises an Error without a class; its `cause` has the class"
        },
    ),
    "JavaScript 0.3.14": Official(lambda: _javascript("client_0_3.mjs"), ("0.3",)),
    "Go 2.4.0": Official(lambda: _go("1.0"), cannot={"signature": NO_VERIFIER}),
    "Go 2.4.0 for 0.3": Official(
        lambda: _go("0.3"), ("0.3",), cannot={"final": "it does not tell which event is the final one"}
    ),
    "Rust 0.15.0": Official(lambda: [str(rust_program("client"))]),
    "Java 0.3.3.Final": Official(
        lambda: _java("java_0_3"),
        ("0.3",),
        cannot={
            "HTTP+JSON types": "over REST it recognizes an error only by the name of one of its own classes; otherwise "
            "it shows the text"
        },
    ),
    "Java 1.0.0.Alpha3": Official(
        lambda: _java("java"),
        cannot={
            "card": "it cannot read a card with members that it does not know, such as those of 0.3",
            "signature": NO_VERIFIER,
            "webhooks": NOT_OF_1_0,
            "at once": "it asks for an immediate answer by a member from before 1.0, which is ignored",
            "HTTP+JSON refusals": "it reads errors over REST in a shape from before 1.0 only",
        },
    ),
}


@cache
def program_of(name: str) -> list[str] | str:
    """The command of a client; or why it is not to be had, which is found out once."""
    try:
        return OFFICIAL[name].command()
    except NotToBeHad as why:
        return f"OFFICIAL CLIENT NOT RUN: {name}: {why}"


if __name__ == "__main__":
    for found in map(program_of, OFFICIAL):
        if isinstance(found, str):
            sys.stderr.write(f"{found}\n")
