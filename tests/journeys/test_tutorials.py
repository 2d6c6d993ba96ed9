"""Each tutorial is played from its text, as a reader does it: files are written, commands typed, terminals read.

- A block below a line with a file's name and a colon is that file; a diff changes it.
- A command that shows Ctrl-C runs on in a terminal of its own, until the text says: End `dev` with Ctrl-C.
- A block of text is what these terminals show, in the end.
- A command that shows a question ends with 4, one that shows what helps with 1.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from a2a_serverless_tools.stack import processes
from a2a_serverless_tools.stack.environments import find_uv, package_index
from tests.docs.documents import ROOT, TUTORIALS, Block, check_shown, task_of
from tests.journeys.projects import install_program
from tests.journeys.shell import need_setup
from tests.stack.wheels import RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

SECONDS = 300
LOOKS = 90
ACT = re.compile(
    r"(?:`(?P<file>[^`\s]+)`[^`\n]*:\n\n)?(?:^<!-- needs (?P<needs>[\w ]+) -->\n)?"
    r"^```(?P<language>\w+)\n(?P<text>.*?)^```$|End `(?P<ended>\w+)`\s+with\s+Ctrl-C",
    re.MULTILINE | re.DOTALL,
)
RUNS_ON = re.compile("ctrl.c", re.IGNORECASE)
ENDINGS = {"Your turn: ": 4, "? input-required": 4, "what helps: ": 1}


class Terminal:
    """A terminal in which a command runs on."""

    def __init__(self, line: str, folder: Path, environment: dict[str, str], news: threading.Condition) -> None:
        self.line = line
        self.lines: list[str] = []  # that nobody has read yet
        self._news = news
        self._process = subprocess.Popen(  # noqa: S603 - the project's own documents
            ["bash", "-c", line],  # noqa: S607 - as above
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._follow)
        self._reader.start()

    def _follow(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as out:
            for line in out:
                with self._news:
                    self.lines.append(line)
                    self._news.notify_all()

    def shows(self, shown: list[str]) -> bool:
        """Whether these lines are among the new ones. Then those have been read."""
        try:
            check_shown(shown, self.lines)
        except AssertionError:
            return False
        self.lines.clear()
        return True

    def end(self) -> None:
        """Presses Ctrl-C."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait(SECONDS)
        self._reader.join(SECONDS)


class Reader:
    """Somebody at the checkout who does what a tutorial says. Folders beside the checkout are in ``home``.

    Instead of the checkout it may be a folder with nothing but the installed ``programs``.
    """

    def __init__(self, home: Path, checkout: Path = ROOT, programs: Path = Path(sys.executable).parent) -> None:
        self._home, self._checkout, self._folder = home, checkout, checkout
        self._terminals: list[Terminal] = []
        self._news = threading.Condition()
        ports = {part: str(processes.claim_port(part, 0)) for part in ("EMULATOR", "API", "RECEIVER", "APP")}
        here = {"8000": ports["API"], "8010": ports["RECEIVER"], "8066": ports["APP"]}
        self._moved = {f"127.0.0.1:{shown}": f"127.0.0.1:{port}" for shown, port in here.items()}
        self._moved |= {f"--port {shown}": f"--port {port}" for shown, port in here.items()}
        self._moved |= {".venv/bin/": f"{programs}/", "../": f"{home}/"}
        unset = ("A2A_", "AWS_", "VIRTUAL_ENV", "PYTHON", "PYTEST")
        ours = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
        python = {"UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never", "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
        self._environment = {**ours, **python, **package_index()}
        self._environment |= {f"A2A_{part}_PORT": port for part, port in ports.items() if part != "APP"}
        (home / "bin").mkdir()
        (home / "bin/uv").symlink_to(Path(find_uv()).absolute())
        self._environment["PATH"] = f"{home / 'bin'}:{ours['PATH']}"

    def play(self, tutorial: str) -> None:
        for act in ACT.finditer(tutorial):
            if act["ended"]:
                self._end(act["ended"])
            elif act["language"] == "text":
                self._look(act["text"].splitlines(), self._terminals)
            elif act["language"] != "console":
                self._write(self._folder / act["file"], act["language"], self._here(act["text"]))
            elif act["needs"] is None:
                for command in Block(ROOT, "console", act["text"], None).commands():
                    self._type(command.line, command.shown)

    def leave(self) -> None:
        """Ends what still runs."""
        for terminal in self._terminals:
            terminal.end()
        if self._folder != self._checkout:
            self._run("uv run --quiet a2a-serverless down || true", 0)

    def _here(self, text: str) -> str:
        for documented, here in self._moved.items():
            text = text.replace(documented, here)
        return text

    def _write(self, path: Path, language: str, text: str) -> None:
        assert path.parent.is_dir()
        if language == "diff":
            before, after = ("".join(f"{line[1:]}\n" for line in text.splitlines() if line[0] == sign) for sign in "-+")
            assert before in path.read_text()
            text = path.read_text().replace(before, after)
        path.write_text(text)

    def _look(self, shown: list[str], terminals: list[Terminal]) -> None:
        """One of the terminals shows this in the end."""
        with self._news:
            found = self._news.wait_for(lambda: any(one.shows(shown) for one in terminals), LOOKS)
        assert found, f"not said: {shown}, but {[one.lines for one in terminals]}"

    def _type(self, line: str, shown: list[str]) -> None:
        if any(map(RUNS_ON.search, shown)):
            made = Terminal(self._here(line), self._place(line), self._environment_of(line), self._news)
            self._terminals.append(made)
            return self._look(shown, [made])
        code = next((code for text, code in ENDINGS.items() if any(text in one for one in shown)), 0)
        said = self._run(line, code)
        check_shown(shown, said.splitlines())
        if (task := task_of(said)) and " send " in line:
            self._moved["TASK"] = task
        if found := re.search(r"&& cd \.\./(\S+)$", line):
            self._folder = self._home / found[1]
        if line.startswith("export "):
            self._environment |= dict(word.split("=", 1) for word in shlex.split(line)[1:])
        return None

    def _run(self, line: str, code: int) -> str:
        done = subprocess.run(  # noqa: S603 - the project's own documents
            ["bash", "-c", self._here(line)],  # noqa: S607 - as above
            cwd=self._place(line),
            env=self._environment_of(line),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == code, f"{line}\n{done.stdout}"
        return done.stdout

    def _end(self, program: str) -> None:
        (terminal,) = [one for one in self._terminals if f" {program}" in one.line]
        terminal.end()
        self._terminals.remove(terminal)

    def _place(self, line: str) -> Path:
        """The reader's folder: the checkout if the program is there."""
        return self._checkout if ".venv/bin/" in line else self._folder

    def _environment_of(self, line: str) -> dict[str, str]:
        """With a state of its own in the checkout."""
        state = {"A2A_STATE": str(self._home / "state")} if ".venv/bin/" in line else {}
        return {**self._environment, **state}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    need_setup()
    if release := os.environ.get(RELEASE):
        (tmp_path / "empty").mkdir()
        program = install_program(tmp_path / "empty", Path(release, "dist"))
        made = Reader(tmp_path, program.path, program.path / "tool/bin")
    else:
        made = Reader(tmp_path)
    yield made
    made.leave()


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: str(path.relative_to(ROOT / "docs")))
def test_a_reader_plays_a_tutorial_with_the_results_that_it_shows(tutorial: Path, reader: Reader) -> None:
    reader.play(tutorial.read_text())


def test_a_line_that_nothing_says_is_noticed(reader: Reader) -> None:
    reader.play("```console\n$ echo here\nhere\n$ echo 'TASK: Ctrl-C'; echo later\n...\n```")
    with pytest.raises(AssertionError, match="not said: there"):
        reader.play("```console\n$ echo here\nthere\n```")
