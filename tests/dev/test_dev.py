"""``a2a-serverless dev``: the whole chain in one process, new code after each save, and what the terminal shows."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from a2a_serverless.client import Client, text_message
from a2a_serverless.protocol.v1 import Message, SendMessageRequest, Task
from a2a_serverless_tools.cli.inbox import InboxClient
from tests.dev.terminal import DEADLINE_S, PROGRAM, Dev, Project, Terminal, make_project, running, start
from tests.observed import asked, observed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

TAILOR = """
print("tailor was asked for", task.text())
colour = await task.ask("Which colour?")
await task.emit("coat.txt", f"a {colour.text()} coat", last=True)
return "It is ready."
"""
ECHO = """
await task.emit("echo.txt", task.text(), last=True)
return "first"
"""
LOGGER = """
def work():
    import logging
    print("printed in a step")
    logging.getLogger("a.library").warning("logged in a step")
    return 1

await task.step("cut", work)
print("printed")
raise ValueError('torn')
"""
AGENTS = {
    "echo": ECHO,
    "tailor": TAILOR,
    "counter": "return 5",
    "broken": "raise ValueError('the needle is blunt')",
    "logger": LOGGER,
    "unstorable": "def work():\n    return {1, 2}\n\nawait task.step('cut', work)",
    "blocker": "time.sleep(2.5)\nreturn 'awake'",
    "hanger": "await asyncio.get_running_loop().create_future()",
    "worker": "print('step', await task.step('one', str, 1))\nawait asyncio.sleep(3600)\nreturn 'never'",
    "asker": "await task.step('one', str, 1)\nawait task.ask('And now?')\nreturn 'first'",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("project"), **AGENTS, greeter="")
    project.write("greeter", 'return "Hello"', "inline")
    return project


@pytest.fixture(scope="module")
def dev(project: Project) -> Iterator[Dev]:
    with running(project) as dev:
        yield dev


def test_dev_lists_its_agents_and_a_command_to_copy(dev: Dev) -> None:
    listed = [agent["id"] for agent in dev.start["agents"]]
    assert listed == [*AGENTS, "greeter"]
    assert listed == [agent["id"] for agent in asked(dev.url, "agents")["agents"]]
    assert f"send echo Hello --inbox {dev.inbox.rstrip('/')} --url {dev.url}" in dev.start["send"]


def test_send_follows_a_task_to_its_end_and_the_inbox_shows_each_webhook_as_verified(dev: Dev) -> None:
    command = [PROGRAM, "send", "echo", "good day", "--url", dev.url, "--inbox", dev.inbox.rstrip("/")]
    sent = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)  # noqa: S603
    assert (sent.returncode, sent.stdout) == (0, "good day\n\nfirst\n"), sent.stderr
    entries = InboxClient(dev.inbox, observed(dev.url)).list_entries()
    states = [entry.state for entry in entries if entry.state]
    assert (states[0], states[-1]) == ("submitted", "completed")
    assert [entry.outcome for entry in entries if not entry.verified] == ["challenge"], entries
    assert entries[0].kid in {key["kid"] for key in asked(dev.url, ".well-known/jwks.json")["keys"]}


def test_a_stream_has_each_event_and_an_inline_agent_answers_with_a_message(dev: Dev) -> None:
    events = [*dev.client("echo").stream(SendMessageRequest(message=text_message("hi")))]
    assert [str(event.state) for event in events if event.state][-1] == "completed"
    assert isinstance(dev.send("greeter"), Message)


def test_dev_shows_prints_of_an_agent_and_the_states_of_its_task(dev: Dev) -> None:
    task = dev.task("tailor", "a coat")
    assert dev.wait_for_line("tailor was asked") == "tailor was asked for a coat"
    assert dev.wait_for("task", task=task.id, state="input-required")["text"] == "Which colour?"
    dev.client("tailor").cancel(task.id)
    assert dev.wait_for("task", task=task.id, state="canceled")["agent"] == "tailor"


def test_dev_shows_the_traceback_of_an_agent_and_the_client_gets_a_reference(dev: Dev) -> None:
    task = dev.task("broken")
    error = dev.wait_for("error", task=task.id)
    shown = error["traceback"].splitlines()
    assert shown[0] == "Traceback (most recent call last):"
    assert "workshop/broken.py" in shown[1].replace("\\", "/")
    assert shown[-1] == "ValueError: the needle is blunt"
    said = dev.wait_for("task", task=task.id, state="failed")["text"]
    assert said == f"The agent stopped with an error (reference {error['reference']})."


def test_the_lines_of_a_task_are_found_by_its_id_with_what_it_printed_and_raised(dev: Dev, project: Project) -> None:
    task = dev.task("logger")
    dev.wait_for("task", task=task.id, state="failed")
    command = [PROGRAM, "logs", "--task", task.id[:12], "--json"]
    done = subprocess.run(  # noqa: S603 - our own program
        command, cwd=project.root, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    lines = {line["message"]: line for line in map(json.loads, done.stdout.splitlines())}
    ids = {"agent": "logger", "task": task.id, "context": task.context_id, "run": 1}
    steps = {"printed in a step": "cut", "logged in a step": "cut", "printed": None, "agent failed": None}
    for message, step in steps.items():
        assert {name: lines[message].get(name) for name in ids} == ids, message
        assert lines[message].get("step") == step, message
    assert "raise ValueError('torn')" in lines["agent failed"]["traceback"]
    shown = asked(dev.url, f"-/log?agent=logger&task={task.id}")["lines"]
    assert {line["message"]: line for line in shown} == lines, "the console has the same lines"


def test_an_error_that_dev_shows_in_the_terminal_is_logged_once(tmp_path: Path) -> None:
    project = make_project(tmp_path, broken=AGENTS["broken"])
    with start(project) as process:
        assert process.stdout
        address = next(word for line in process.stdout for word in line.split() if word.endswith("/broken"))
        client = Client(address, observed(address.removesuffix("/broken")))
        task = client.send(SendMessageRequest(message=text_message("hello")))
        assert isinstance(task, Task)
        command = [PROGRAM, "logs", "--task", task.id, "--json"]
        done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=DEADLINE_S, check=True)  # noqa: S603 - our own program
        process.kill()
    assert [line["logger"] for line in map(json.loads, done.stdout.splitlines())] == ["a2a_serverless.engine.run"]


def test_a_result_that_cannot_be_stored_is_shown_with_the_line_of_its_step(dev: Dev) -> None:
    task = dev.task("unstorable")
    shown = dev.wait_for("error", task=task.id)["traceback"]
    assert "await task.step('cut', work)" in shown
    assert "gave a set, which is not a JSON value" in shown


def test_an_answer_that_is_no_message_is_shown_with_agent_file_line_and_what_helps(dev: Dev) -> None:
    task = dev.task("counter")
    (shown,) = dev.wait_for("error", task=task.id)["traceback"].splitlines()
    place = str(Path("workshop") / "counter.py")
    assert "InvalidAnswer: The agent 'counter' (" in shown
    assert f"{place}:7) returned no message: " in shown
    assert shown.endswith(
        "not int. Return a text, a dict, model or dataclass (data), a list of parts, a Message or None."
    )


def test_a_function_that_is_not_async_is_shown_with_agent_file_and_line_when_it_is_saved(
    dev: Dev, project: Project
) -> None:
    module = project.root / "workshop" / "counter.py"
    module.write_text(module.read_text().replace("async def", "def"))
    shown = dev.wait_for("notLoaded")["traceback"]
    assert shown.endswith("is a plain function: write `async def counter(task)`.\n")
    assert f"TypeError: The agent 'counter' ({module}:7)" in shown
    project.write("counter", AGENTS["counter"])
    dev.wait_for("reloaded")


def test_an_agent_that_blocks_its_event_loop_is_named_with_the_line(dev: Dev) -> None:
    dev.task("blocker")
    blocked = dev.wait_for("blocked", agent="blocker")
    assert (blocked["code"], Path(blocked["place"].rpartition(":")[0]).name) == ("time.sleep(2.5)", "blocker.py")
    dev.wait_for("task", agent="blocker", state="completed")


def test_an_agent_that_waits_for_what_nobody_brings_is_named_with_its_task_and_the_line(dev: Dev) -> None:
    task = dev.task("hanger")
    waiting = dev.wait_for("waiting", agent="hanger")
    assert (waiting["task"], waiting["steps"]) == (task.id, [])
    assert [Path(place.rpartition(":")[0]).name for place in waiting["places"]] == ["hanger.py"]
    dev.client("hanger").cancel(task.id)


def test_a_saved_agent_answers_with_its_new_code_also_within_the_same_second(dev: Dev, project: Project) -> None:
    assert dev.ended("echo")["text"] == "first"
    for text in ("other", "third"):  # as long as before: a compiled file would pass for the new one
        project.write("echo", ECHO.replace("first", text))
        dev.wait_for("reloaded")
        assert dev.ended("echo")["text"] == text


def test_with_an_error_in_the_source_it_is_shown_and_the_agents_of_before_go_on(dev: Dev, project: Project) -> None:
    project.write("echo", "return (")
    assert "SyntaxError" in dev.wait_for("notLoaded")["traceback"]
    assert dev.ended("tailor")["state"] == "input-required"
    project.write("echo", "import nothing_of_this_name\nreturn 'first'")
    dev.wait_for("reloaded")  # an error at run time only
    assert dev.ended("echo")["state"] == "failed"
    (project.root / "workshop" / "echo.py").write_text("import nothing_of_this_name\n")
    shown = dev.wait_for("notLoaded")["traceback"]
    assert shown.endswith("ModuleNotFoundError: No module named 'nothing_of_this_name'\n")
    assert "echo.py" in shown
    project.write("echo", ECHO)
    dev.wait_for("reloaded")
    assert dev.ended("echo")["text"] == "first"


def test_a_task_under_way_is_continued_by_the_new_code_and_repeats_no_step(dev: Dev, project: Project) -> None:
    dev.task("worker")
    dev.wait_for_line("step 1")
    project.write("worker", "print('again', await task.step('one', str, 1))\nreturn 'by new code'")
    assert dev.wait_for_reload_and("by new code") == "by new code"


def test_saving_while_a_step_runs_is_no_time_limit_of_it(dev: Dev, project: Project) -> None:
    def work(times: int) -> str:
        seconds = 3600 if times < 5 else 0
        step = f"async def long():\n    print('long, version {times}')\n    await asyncio.sleep({seconds})"
        return f"{step}\nawait task.step('long', long)\nreturn 'done'"

    project.write("worker", work(0))
    dev.wait_for("reloaded")
    dev.task("worker")
    dev.wait_for_line("long, version 0")
    for times in range(1, 6):
        project.write("worker", work(times))
        dev.wait_for_reload_and(f"long, version {times}" if times < 5 else "done")


def test_a_task_that_waits_survives_a_reload(dev: Dev, project: Project) -> None:
    task = dev.task("tailor")
    dev.wait_for("task", task=task.id, state="input-required")
    project.write("tailor", TAILOR.replace("a {", "one {"))
    dev.wait_for("reloaded")
    dev.send("tailor", "red", task_id=task.id)
    dev.wait_for("task", task=task.id, state="completed")
    assert dev.client("tailor").get(task.id).artifacts[0].text() == "one red coat"


def test_a_step_that_the_new_code_calls_with_other_arguments_is_shown_as_a_conflict(dev: Dev, project: Project) -> None:
    task = dev.task("asker")
    dev.wait_for("task", task=task.id, state="input-required")
    project.write("asker", AGENTS["asker"].replace("str, 1", "str, 2"))
    dev.wait_for("reloaded")
    dev.send("asker", "go on", task_id=task.id)
    assert "RunDiffers: The step" in dev.wait_for("error", task=task.id)["traceback"]
    dev.wait_for("task", task=task.id, state="failed")


def test_agents_are_added_and_removed_in_the_list(dev: Dev, project: Project) -> None:
    project.write("newcomer", 'return "I am new"')
    project.list("newcomer", *AGENTS)
    assert dev.wait_for("reloaded")["agents"] == ["newcomer", *AGENTS]
    assert dev.ended("newcomer")["text"] == "I am new"
    assert "greeter" not in [agent["id"] for agent in asked(dev.url, "agents")["agents"]]
    project.list(*AGENTS, "greeter")
    dev.wait_for("reloaded")


def test_fifty_reloads_leave_no_thread_and_no_open_file(dev: Dev, project: Project) -> None:
    def reload(number: int) -> None:
        project.write("echo", f"{ECHO}\n# {number}")
        dev.wait_for("reloaded")

    process = Path(f"/proc/{dev.process.pid}")
    if not process.exists():
        pytest.skip("counts threads and open files in /proc")
    for number in range(5):
        reload(number)
    dev.ended("echo")
    before = [len([*(process / name).iterdir()]) for name in ("task", "fd")]
    for number in range(50):
        reload(number)
    dev.ended("echo")
    after = [len([*(process / name).iterdir()]) for name in ("task", "fd")]
    assert all(now <= then + 5 for now, then in zip(after, before, strict=True)), (before, after)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "rebound.example.com"}, 400),
        ({"Origin": "https://page.example.com"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({}, 200),
    ],
)
def test_no_page_of_another_origin_can_call_dev(dev: Dev, headers: dict[str, str], status: int) -> None:
    connection = http.client.HTTPConnection(urlsplit(dev.url).netloc, timeout=DEADLINE_S)
    connection.request("GET", "/agents", headers=headers)
    assert connection.getresponse().status == status
    connection.close()


def test_a_port_in_use_is_one_sentence_with_a_remedy(dev: Dev, project: Project) -> None:
    port = str(urlsplit(dev.url).port)
    with start(project, "--port", port) as second:
        said, _ = second.communicate(timeout=DEADLINE_S)
    assert second.returncode == 1
    assert said.startswith(f"Port {port} on 127.0.0.1 cannot be used:")
    assert "--port" in said.splitlines()[1]
    assert len(said.splitlines()) == 2


def test_without_json_each_change_is_one_readable_line(dev: Dev, tmp_path: Path) -> None:
    project = make_project(tmp_path / "second", echo=ECHO, broken=AGENTS["broken"])
    with start(project) as process:
        second = Terminal(process)
        url = second.wait_for_line("http://").split()[1].removesuffix("/echo")
        assert url != dev.url, "two projects side by side"
        second.wait_for_line("Ctrl-C")
        command = [PROGRAM, "send", "echo", "--url", url, "two\twords"]
        subprocess.run(command, check=True, timeout=DEADLINE_S, capture_output=True)  # noqa: S603
        _, agent, task, said = second.wait_for_line("completed").split("  ")
        assert (agent, len(task), said) == ("echo", 36, "completed: first")
        command[2] = "broken"
        subprocess.run(command, check=False, timeout=DEADLINE_S, capture_output=True)  # noqa: S603
        heading = second.wait_for_line("stopped with an error (reference ")
        assert second.wait_for_line("") == "Traceback (most recent call last):"
        reference = heading.partition("stopped with an error")[2].removesuffix(":")
        assert second.wait_for_line("failed").endswith(f"failed: The agent stopped with an error{reference}.")
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0
        assert str(second.seen).count("Traceback") == 1


def test_an_interrupt_ends_it_while_an_agent_blocks_and_its_ports_are_free_at_once(tmp_path: Path) -> None:
    project = make_project(tmp_path / "blocking", sleeper="print('asleep')\ntime.sleep(3600)\nreturn ''")
    with running(project) as dev:
        dev.task("sleeper")
        dev.wait_for_line("asleep")
        dev.process.send_signal(signal.SIGINT)
        assert dev.process.wait(DEADLINE_S) == 0
    ports = [str(urlsplit(url).port) for url in (dev.url, dev.inbox)]
    with running(project, "--port", ports[0], "--receiver-port", ports[1]) as second:
        assert second.url == dev.url
        second.process.kill()
        second.process.wait(DEADLINE_S)
    with running(project, "--port", ports[0], "--receiver-port", ports[1]) as third:
        assert asked(third.url, "agents")["agents"][0]["id"] == "sleeper"


def test_agents_that_cannot_be_imported_end_it_at_the_start_with_the_traceback(tmp_path: Path) -> None:
    project = make_project(tmp_path / "wrong", echo=ECHO)
    (project.root / "workshop" / "echo.py").write_text("import nothing_of_this_name\n")
    with start(project) as process:
        said, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert "echo.py" in said
    assert said.splitlines()[-1].startswith("The agents cannot be imported: ModuleNotFoundError")


def test_after_each_save_it_says_which_waiting_tasks_the_new_code_hurts_and_so_does_the_command(
    tmp_path: Path,
) -> None:
    project = make_project(tmp_path, asker=AGENTS["asker"])
    with running(project) as dev:
        dev.task("asker")
        dev.wait_for("task", state="input-required")
        project.write("asker", AGENTS["asker"].replace("'one'", "'first'"))
        (task,) = dev.wait_for("rehearsed")["tasks"]
        assert (task["verdict"], task["findings"][0]["came"]) == ("again", [{"kind": "step", "path": "first"}])
        done = rehearsed(project, dev)
        assert (done.returncode, done.stderr) == (1, "")
        assert json.loads(done.stdout)["counts"] == {"again": 1}


CALLER = """
from a2a_serverless import AgentCallFailed
try:
    await task.get_card("far")
except AgentCallFailed as failed:
    print(failed)
    return "called"
"""


def test_the_agents_elsewhere_are_those_of_the_project_or_of_the_terminal(tmp_path: Path) -> None:
    project = make_project(tmp_path, caller=CALLER)
    with (project.root / "pyproject.toml").open("a") as file:
        file.write('\n[tool.a2a-serverless.constants]\nAGENT_URLS = "far=http://127.0.0.1:9"\n')
    with running(project) as dev:
        dev.task("caller")
        assert "far" in dev.wait_for_line("could not be reached")


def test_the_command_rehearses_with_its_options_and_shows_why_the_code_cannot_be_imported(tmp_path: Path) -> None:
    project = make_project(tmp_path, asker=AGENTS["asker"])
    with running(project) as dev:
        for _ in range(2):
            dev.task("asker")
            dev.wait_for("task", state="input-required")
        assert json.loads(rehearsed(project, dev).stdout)["counts"] == {"fits": 2}
        assert json.loads(rehearsed(project, dev, "--samples", "1").stdout)["counts"] == {"fits": 1}
        project.write("asker", "raise LookupError(task.text())")
        dev.wait_for("rehearsed")
        assert ["hello" in rehearsed(project, dev, *show).stdout for show in ([], ["--show"])] == [False, True]
        (project.root / "workshop" / "asker.py").write_text("import nothing_of_this_name\n")
        dev.wait_for("notLoaded")
        done = rehearsed(project, dev)
        assert done.returncode == 1
        assert "The agents cannot be imported: ModuleNotFoundError" in done.stdout
        assert "asker.py" in done.stdout
        connection = http.client.HTTPConnection(urlsplit(dev.url).netloc, timeout=DEADLINE_S)
        connection.request("POST", "/rehearsals", '{"samples": "many"}')
        assert connection.getresponse().status == http.HTTPStatus.BAD_REQUEST
        connection.close()


def rehearsed(project: Project, dev: Dev, *options: str) -> subprocess.CompletedProcess[str]:
    """``rehearse`` for a running ``dev``, as a person types it."""
    return subprocess.run(  # noqa: S603 - our own program
        [PROGRAM, "rehearse", "--json", *options],
        cwd=project.root,
        env={**os.environ, "A2A_API_PORT": str(urlsplit(dev.url).port)},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
