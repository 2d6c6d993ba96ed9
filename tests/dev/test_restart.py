"""``dev`` is killed or interrupted, and started again: its tasks go on."""

from __future__ import annotations

import signal
import stat
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from a2a_serverless.domain.errors import TaskNotFound
from a2a_serverless_tools.cli.inbox import InboxClient, InboxEntry
from tests.dev.terminal import DEADLINE_S, make_project, running, start
from tests.observed import observed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.dev.terminal import Dev, Project

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

WORKER = """
await task.step("one", print, "step 1")
await task.emit("one.txt", "1", last=True)
gate = Path(__file__).with_name("gate")
async def through():
    print("at the gate")
    while not gate.exists():
        await asyncio.sleep(0.01)
    return "open"
print("gate", await task.step("two", through))
return "done"
"""
WORKS = {
    "worker": "from pathlib import Path\n" + WORKER,
    "tailor": "colour = await task.ask('Which colour?')\nreturn f'a {colour.text()} coat'",
    "sleeper": "await task.sleep('nap', 2)\nreturn 'awake'",
}


def ports_of(dev: Dev) -> list[str]:
    return ["--port", str(urlsplit(dev.url).port), "--receiver-port", str(urlsplit(dev.inbox).port)]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "workshop", **WORKS)


def end(dev: Dev, how: str) -> None:
    if how == "killed":
        dev.process.kill()
    else:
        dev.process.send_signal(signal.SIGINT)
    dev.process.wait(DEADLINE_S)


@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_a_task_in_the_middle_of_a_step_goes_on_and_repeats_no_finished_step(project: Project, how: str) -> None:
    with running(project) as dev:
        task = dev.task("worker")
        dev.wait_for_line("at the gate")
        end(dev, how)
    (project.root / "workshop" / "gate").touch()
    with running(project, *ports_of(dev)) as again:
        assert again.wait_for("task", task=task.id, state="completed")["text"] == "done"
        assert [line for line in again.seen if "step 1" in str(line)] == []
        assert again.client("worker").get(task.id).artifacts[0].text() == "1"


def test_a_question_is_answered_and_a_timer_ends_after_a_kill(project: Project) -> None:
    with running(project) as dev:
        asked, asleep = dev.task("tailor"), dev.task("sleeper")
        dev.wait_for("task", task=asked.id, state="input-required")
        end(dev, "killed")
    with running(project, *ports_of(dev)) as again:
        again.wait_for("task", task=asleep.id, state="completed")
        again.send("tailor", "red", task_id=asked.id)
        assert again.wait_for("task", task=asked.id, state="completed")["text"] == "a red coat"


def test_a_webhook_gets_each_event_once_and_by_a_known_key_after_a_kill(project: Project) -> None:
    with running(project) as dev:
        webhook = InboxClient(dev.inbox, observed(dev.url)).expect()
        task = dev.task("worker", task_push_notification_config=webhook)
        dev.wait_for_line("at the gate")
        end(dev, "killed")
    (project.root / "workshop" / "gate").touch()
    with running(project, *ports_of(dev)) as again:
        again.wait_for("task", task=task.id, state="completed")
        entries: list[InboxEntry] = []
        for entry in InboxClient(again.inbox, observed(again.url)).entries():
            assert entry is not None, entries
            entries.append(entry)
            if entry.state == "completed":
                break
    numbers = [entry.event for entry in entries if entry.event is not None]
    assert {entry.outcome for entry in entries} <= {"accepted", "challenge"}
    assert numbers == sorted(set(numbers)), "each event once and in order"


def test_dev_with_the_option_fresh_forgets_the_tasks(project: Project) -> None:
    with running(project) as dev:
        task = dev.task("tailor")
        dev.wait_for("task", task=task.id, state="input-required")
        end(dev, "interrupted")
    with running(project, *ports_of(dev)) as again:
        assert again.client("tailor").get(task.id).id == task.id
        end(again, "interrupted")
    with running(project, *ports_of(dev), "--fresh") as fresh, pytest.raises(TaskNotFound):
        fresh.client("tailor").get(task.id)


def test_a_second_one_in_the_project_is_refused_with_a_remedy(project: Project) -> None:
    with running(project), start(project) as second:
        said, _ = second.communicate(timeout=DEADLINE_S)
        assert second.returncode == 1
    first, remedy = said.splitlines()
    assert first.startswith("Another process has ")
    assert "A2A_STATE" in remedy


@pytest.mark.parametrize("name", ["state.db", "receiver.db"])
def test_a_file_of_something_else_is_refused_and_forgotten_on_request(project: Project, name: str) -> None:
    file = project.root / ".a2a/dev" / name
    file.parent.mkdir(parents=True)
    file.write_text("no database, but long enough for its header\n" * 100)
    with start(project) as process:
        said, _ = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, "--fresh" in said.splitlines()[-1], "Traceback" in said) == (1, True, False), said
    with running(project, "--fresh") as dev:
        dev.task("tailor")
    with running(project):
        pass


def test_only_its_user_may_read_the_file_and_it_has_the_tasks(project: Project) -> None:
    with running(project) as dev:
        dev.task("tailor")
    modes = {stat.S_IMODE(file.stat().st_mode) & 0o077 for file in (project.root / ".a2a/dev").glob("state.db*")}
    assert modes == {0}
