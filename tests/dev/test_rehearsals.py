"""Copies of tasks are played against a project's code in a process that can be killed, and contents stay inside."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from a2a_serverless import TaskContext  # noqa: TC001 - agents have it in their annotations
from a2a_serverless.client import ClientRequest, ClientResponse
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless.testing.rehearsal import read_unfinished
from a2a_serverless_tools.cli.app import run
from a2a_serverless_tools.cli.options import CliContext
from a2a_serverless_tools.cli.terminal import Terminal
from a2a_serverless_tools.dev.rehearsals import ProjectNotLoaded, rehearse_tasks
from tests.dev.terminal import make_project
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_serverless.testing.rehearsal import StoredTask
    from a2a_serverless.testing.rehearsal_report import Rehearsal

CANARY = "canary of a client"
SAME = """
draft = await task.step("draft", str.upper, task.text())
await task.step(f"mail {task.text()[:40]}", str.lower, "x")
name = (await task.ask("Who signs?")).text()
return draft + name
"""


async def letter(task: TaskContext) -> str:
    draft = await task.step("draft", str.upper, task.text())
    await task.step(f"mail {task.text()[:40]}", str.lower, "x")
    name = (await task.ask("Who signs?")).text()
    return draft + name


def waiting_tasks(*texts: str) -> list[StoredTask]:
    """Copies of tasks with these messages that wait for an answer."""
    harness = AgentTestHarness(agent_of(letter, "letter"))
    for text in texts or (CANARY,):
        harness.send(text)
    return [*read_unfinished(harness.table, harness.table.items, harness.table.blobs.get)]


def rehearse(root: Path, work: str, *texts: str, shows: bool = False) -> list[Rehearsal]:
    """What the play of waiting tasks against an agent with this code shows."""
    return [*rehearse_tasks(make_project(root, letter=work).root, waiting_tasks(*texts), shows=shows)]


def test_a_rehearsal_of_unchanged_code_fits_the_task(tmp_path: Path) -> None:
    (rehearsal,) = rehearse(tmp_path, SAME)
    assert (rehearsal.verdict, rehearsal.acts, rehearsal.read) == ("fits", 2, 2)


def test_a_big_text_of_the_log_is_read_by_the_parent(tmp_path: Path) -> None:
    assert [one.verdict for one in rehearse(tmp_path, SAME, "a" * 400_000)] == ["fits"]


@pytest.mark.parametrize("option", ["", "shows"])
@pytest.mark.parametrize(
    ("work", "verdict"),
    [
        ('await task.step("draft", str.upper, "Dear " + task.text())', "fails"),
        ("print(task.text())\nraise ValueError(task.text())", "fails"),
        ('draft = await task.step("draft", str.upper, task.text())\nawait task.ask("Who signs?")', "dropped"),
        ('await task.step("draft", str.upper, task.text())\nawait task.step("other", str.lower, "x")', "again"),
    ],
)
def test_a_rehearsal_shows_texts_of_clients_only_with_the_option(
    tmp_path: Path, work: str, verdict: str, option: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (rehearsal,) = rehearse(tmp_path, f"{work}\nawait task.ask('Who signs?')", shows=bool(option))
    assert rehearsal.verdict == verdict
    texts = f"{rehearsal}{json.dumps(rehearsal.json_form())}{''.join(capfd.readouterr())}"
    assert (CANARY in texts) <= bool(option)
    assert "workshop/letter.py" in texts or verdict == "dropped"


def test_texts_of_packages_that_are_installed_in_the_folder_are_not_the_code_s(tmp_path: Path) -> None:
    package = tmp_path / ".venv" / "library.py"
    package.parent.mkdir()
    package.write_text(f"NAME = {f'mail {CANARY}'!r}")
    work = 'draft = await task.step("draft", str.upper, task.text())\nawait task.ask("Who signs?")'
    (rehearsal,) = rehearse(tmp_path, work)
    assert rehearsal.verdict == "dropped"
    assert CANARY not in str(rehearsal)


@pytest.mark.parametrize(
    "effect",
    [
        "socket.create_connection(('127.0.0.1', 9))",
        "subprocess.run(['true'])",
        "open('written.txt', 'w')",
        "pathlib.Path('written.txt').touch()",
        "os.kill(os.getppid(), 0)",
    ],
)
def test_an_effect_outside_of_steps_is_refused_and_said_although_the_code_catches_it(
    tmp_path: Path, effect: str
) -> None:
    imports = "import os, pathlib, socket, subprocess"
    work = f"{imports}\ntry:\n    {effect}\nexcept BaseException:\n    pass\n{SAME.strip()}"
    (rehearsal,) = rehearse(tmp_path, work)
    assert rehearsal.verdict == "unseen"
    assert "an effect, which was refused" in str(rehearsal)
    assert not (tmp_path / "written.txt").exists()


@pytest.mark.parametrize("bad", ["os._exit(3)", "while True:\n        pass"])
def test_code_that_ends_its_process_or_never_rests_is_told_for_its_task_and_others_are_played(
    tmp_path: Path, bad: str
) -> None:
    work = f"import os\nif task.text() == 'bad':\n    {bad}\n{SAME.strip()}"
    rehearsals = rehearse(tmp_path, work, "good", "bad", "better")
    assert sorted(str(one.verdict) for one in rehearsals) == ["fits", "fits", "unseen"]


def test_agents_that_cannot_be_imported_are_an_error_with_its_traceback(tmp_path: Path) -> None:
    project = make_project(tmp_path, letter=SAME)
    (project.root / "workshop" / "letter.py").write_text("raise ValueError('broken')")
    with pytest.raises(ProjectNotLoaded, match="ValueError: broken") as raised:
        [*rehearse_tasks(project.root, waiting_tasks())]
    assert "letter.py" in raised.value.text


def test_the_code_of_the_folder_gets_the_region_of_its_caller_and_no_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "set")
    names = "sorted(name for name in os.environ if name.startswith('AWS_'))"
    work = f"import os\nassert {names} == ['AWS_DEFAULT_REGION', 'AWS_REGION']\n{SAME.strip()}"
    assert [str(one.verdict) for one in rehearse(tmp_path, work)] == ["fits"]


def test_a_text_in_the_place_of_a_secret_is_no_difference(tmp_path: Path) -> None:
    async def work(task: TaskContext) -> str:
        await task.step("sign in", str.upper, await task.secret("key"))
        return (await task.ask("And now?")).text()

    harness = AgentTestHarness(agent_of(work, "letter"))
    harness.engine = replace(harness.engine, read_secret=lambda _: "hush")
    harness.send("hello")
    tasks = read_unfinished(harness.table, harness.table.items, harness.table.blobs.get)
    code = 'await task.step("sign in", str.upper, await task.secret("key"))\nawait task.ask("And now?")'
    assert [str(one.verdict) for one in rehearse_tasks(make_project(tmp_path, letter=code).root, tasks)] == ["fits"]


class _Commands:
    """The command line in a project's folder, over waiting tasks of a stack."""

    def __init__(self, tasks: list[StoredTask]) -> None:
        self._tasks = tasks

    def _unfinished(self, _: object) -> Iterator[StoredTask]:
        yield from self._tasks

    def type(self, *arguments: str) -> tuple[int, str, str]:
        out, err = (Console(file=io.StringIO(), width=200, color_system=None) for _ in range(2))
        cli = CliContext(Terminal(out, err), program="a2a-serverless", unfinished_tasks=self._unfinished)
        with pytest.raises(SystemExit) as ended:
            run(arguments, cli)
        assert isinstance(out.file, io.StringIO)
        assert isinstance(err.file, io.StringIO)
        return int(ended.value.code or 0), out.file.getvalue(), err.file.getvalue()


def test_the_exit_code_is_for_ci_and_says_whether_a_task_is_hurt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, commands = make_project(tmp_path, letter=SAME), _Commands(waiting_tasks("one", "two"))
    monkeypatch.chdir(tmp_path)
    code, out, err = commands.type("rehearse", "--stack", "my-agents")
    assert (code, out) == (0, "")
    assert "2 tasks were played: 2 fits" in err
    project.write("letter", SAME.replace('"draft"', '"note"'))
    code, out, err = commands.type("rehearse", "--stack", "my-agents")
    assert code == 1
    assert out.count("a step has another name") == 2
    code, out, err = commands.type("rehearse", "--stack", "my-agents", "--json", "--samples", "1")
    document = json.loads(out)
    assert (code, document["counts"], len(document["tasks"])) == (1, {"again": 1}, 1)
    assert document["tasks"][0]["findings"][0]["stored"] == [{"kind": "step", "path": "draft"}]


def test_dev_has_ten_minutes_to_play_its_tasks() -> None:
    calls: list[ClientRequest] = []

    @contextmanager
    def transport(call: ClientRequest) -> Iterator[ClientResponse]:
        calls.append(call)
        yield ClientResponse(200, {}, io.BytesIO(b"[]"))

    console = Console(file=io.StringIO())
    cli = CliContext(Terminal(console, console), transport=transport, local_url=lambda _: "http://127.0.0.1:8000")
    with pytest.raises(SystemExit) as ended:
        run(["rehearse", "--show", "--samples", "3"], cli)
    assert not ended.value.code
    (call,) = calls
    assert (call.url, call.seconds) == ("http://127.0.0.1:8000/rehearsals", 600)
    assert json.loads(call.body or b"") == {"samples": 3, "show": True}


def test_a_stack_without_waiting_tasks_and_a_folder_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path, letter=SAME)
    monkeypatch.chdir(tmp_path)
    code, _, err = _Commands([]).type("rehearse", "--stack", "my-agents")
    assert (code, "No task waits or runs." in err) == (0, True)
    (project.root / "workshop" / "letter.py").write_text("raise ValueError('broken')")
    code, _, err = _Commands(waiting_tasks()).type("rehearse", "--stack", "my-agents")
    assert (code, "ValueError: broken" in err) == (1, True)
