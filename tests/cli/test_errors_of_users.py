"""What a person types wrong, or in short: the answer has that person's words and the command that helps."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import pytest

from a2a_serverless.domain.agent_errors import TaskRejected
from a2a_serverless_tools.cli.stack import FrameworkName
from tests.cli.shell import Shell
from tests.client.deployment import BASE, Deployment, answering
from tests.echo import Asker, Writer, agent_of

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_serverless.domain.task_context import TaskContext

LONG = "This sentence is longer than sixty characters, and its end is what matters: " + "word " * 20 + "THE END"


def shell() -> Shell:
    return Shell(Deployment(Writer().agent))


def started(at: Shell) -> str:
    return at.run("send", "echo", "hello", "--no-wait").out.strip()


# ---- texts are whole


def test_a_question_is_shown_whole_at_any_width() -> None:
    async def asking(task: TaskContext) -> None:
        await task.ask(LONG)

    for screen in (False, True):
        asked = Shell(Deployment(agent_of(asking)), screen=screen).run("send", "echo", "hi")
        assert (asked.code, "THE END" in asked.err) == (4, True)


def test_the_lines_of_a_question_stay_lines() -> None:
    async def asking(task: TaskContext) -> None:
        await task.ask("Which one?\n1. red\n2. blue")

    err = Shell(Deployment(agent_of(asking))).run("send", "echo", "hi").err
    assert "Which one?\n      1. red\n      2. blue\n" in err


def test_why_a_task_was_rejected_and_what_it_answers_are_shown_whole() -> None:
    async def rejecting(_: TaskContext) -> None:
        raise TaskRejected(LONG)

    async def answering_all(task: TaskContext) -> str:
        await task.emit("a.txt", "a", last=True)
        return LONG

    for work, code in ((rejecting, 3), (answering_all, 0)):
        at = Shell(Deployment(agent_of(work)))
        assert (at.run("send", "echo", "hi").code, "THE END" in at.run("watch", "echo", "--last").out) == (code, True)


# ---- addresses


@pytest.mark.parametrize(
    ("given", "helps"),
    [
        ("127.0.0.1:8000", "--url http://127.0.0.1:8000"),
        ("localhost:8000", "--url http://localhost:8000"),
        ("agents.example.com", "--url https://agents.example.com"),
    ],
)
def test_an_address_without_scheme_is_named_with_the_whole_one(given: str, helps: str) -> None:
    for command in (["send", "echo", "hi"], ["cards", "list"], ["tasks", "list"], ["get", "echo", "x"]):
        done = shell().run(*command, "--url", given)
        assert (done.code, done.err) == (
            2,
            f"{given} is not a URL: a URL begins with http:// or https://.\n  what helps: {helps}\n",
        )


@pytest.mark.parametrize("agent", ["Vetter Agent", "a/b", "智能体", "a?b"])
def test_an_agent_whose_name_is_no_path_segment_is_not_there(agent: str) -> None:
    done = shell().run("send", agent, "hi")
    assert (done.code, done.err.splitlines()[0]) == (1, f"There is no agent {agent!r} at {BASE}.")


@pytest.mark.parametrize("url", ["https://a.example.com/智", "http://127.0.0.1:99999/x", "http://[::1/x", "http://a b"])
def test_an_agent_at_what_is_no_url_is_explained(url: str) -> None:
    for words in (["send", url, "hi"], ["send", "echo", "hi", "--url", url], ["send", "echo", "hi", "--inbox", url]):
        done = shell().run(*words)
        assert (done.code, done.err.splitlines()[0]) == (2, f"{url} is not a URL.")


def test_a_media_type_that_the_card_does_not_list_names_the_option_of_the_agent(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n")
    done = shell().run("send", "echo", "--file", str(tmp_path / "a.png"))
    assert done.code == 1
    assert "message.parts[0].mediaType must be one of" in done.err
    assert "input_modes=(...)" in done.err


def test_an_address_in_the_environment_is_named_by_its_variable() -> None:
    at = shell()
    done = at.run("cards", "search", "x", "--url", "foo", "--json")
    assert json.loads(done.out)["error"]["kind"] == "WrongUsage"


@pytest.mark.parametrize(
    ("given", "helps"),
    [
        ("foo", "--inbox https://foo"),
        ("127.0.0.1:8010", "--inbox http://127.0.0.1:8010"),
        ("http://127.0.0.1:9", "`a2a-serverless dev` or `up` starts a receiver, and prints the URL of its inbox"),
        ("http://127.0.0.1:8010/webhook", "--inbox http://127.0.0.1:8010"),
        ("http://127.0.0.1:8000", "`a2a-serverless dev` or `up` starts a receiver, and prints the URL of its inbox"),
    ],
)
def test_an_inbox_that_is_none_is_called_so_and_nothing_is_sent(given: str, helps: str) -> None:
    at = shell()
    done = at.run("send", "echo", "hi", "--inbox", given)
    assert done.code in {1, 2}
    assert given in done.err
    assert "agent" not in done.err
    assert f"what helps: {helps}\n" in done.err
    assert at.run("tasks", "list").out == ""


def test_an_inbox_that_wants_a_password_is_told_apart_from_an_agent_that_does() -> None:
    transport, _ = answering((401, {}, b""))
    at = shell()
    at.transport = lambda call: transport(call) if "/expectations" in call.url else at.deployment.transport(call)
    done = at.run("send", "echo", "hi", "--inbox", "https://hooks.example.com")
    assert (
        "The receiver at https://hooks.example.com registers tokens only for its administrator (HTTP 401)." in done.err
    )
    assert "--webhook URL with its token in A2A_WEBHOOK_TOKEN" in done.err


@pytest.mark.parametrize(
    ("given", "helps"),
    [
        ("foo", "--webhook https://foo"),
        ("localhost:8010/hook", "--webhook http://localhost:8010/hook"),
        ("http://localhost", "on this machine --webhook http://127.0.0.1:PORT/PATH, not localhost"),
        ("http://localhost:8010/webhook", "on this machine --webhook http://127.0.0.1:8010/webhook, not localhost"),
        ("http://hooks.example.com/a", "--webhook https://hooks.example.com/a"),
    ],
)
def test_a_webhook_that_is_refused_is_named_with_one_that_is_not(given: str, helps: str) -> None:
    at = shell()
    done = at.run("send", "echo", "hi", "--webhook", given)
    assert done.code in {1, 2}
    assert given in done.err
    assert f"what helps: {helps}" in done.err
    assert at.run("tasks", "list").out == ""


# ---- a task that has ended


@pytest.mark.parametrize("wait", ["--wait", "--no-wait"])
@pytest.mark.parametrize("streaming", [True, False])
def test_a_message_to_a_task_that_has_ended_gets_the_command_that_goes_on(wait: str, *, streaming: bool) -> None:
    at = Shell(Deployment(replace(Writer().agent, streaming=streaming)))
    task = json.loads(at.run("send", "echo", "hello", "--json").out)["task"]
    done = at.run("send", "echo", "more", "--task", task["id"], wait)
    assert (done.code, done.err) == (
        1,
        (
            f"The task {task['id']} has ended: it is completed.\n"
            f'  what helps: a2a-serverless send echo --context {task["contextId"]} "..."\n'
        ),
    )


# ---- ids


@pytest.mark.parametrize("command", ["get", "watch", "deliveries", "trace", "cancel"])
def test_the_beginning_of_an_id_and_the_last_task_are_enough(command: str) -> None:
    at = Shell(Deployment(Asker().agent))
    first = started(at)
    second = started(at)
    whole = at.run(command, "echo", second)
    assert whole.code in {0, 4}
    other = at.run(command, "echo", first)
    assert other.code == whole.code
    third = started(at)
    last = at.run(command, "echo", "--last")
    assert (last.code, last.err.splitlines()[0]) == (whole.code, f"Task {third}")


def test_a_beginning_is_completed_if_one_task_has_it_and_else_the_tasks_are_listed() -> None:
    at = shell()
    ids = sorted(started(at) for _ in range(12))
    assert len({len(one) for one in ids}) == 1
    common = ids[0][:-1]
    alike = [one for one in ids if one.startswith(common)]
    assert len(alike) > 1
    done = at.run("get", "echo", common)
    assert done.code == 1
    assert f"{len(alike)} tasks of echo begin with {common}" in done.err
    assert all(one in done.err for one in alike)
    (other,) = [one for one in ids if one not in alike][:1]
    lone = next(other[:n] for n in range(1, len(other) + 1) if sum(one.startswith(other[:n]) for one in ids) == 1)
    assert other in at.run("get", "echo", lone).out


def test_a_message_goes_to_the_last_task_or_to_the_beginning_of_an_id() -> None:
    at = Shell(Deployment(Asker().agent))
    asked = json.loads(at.run("send", "echo", "a boat", "--json").out)["task"]["id"]
    answered = at.run("send", "echo", "--last", "red")
    assert (answered.out, answered.err.count(f"Task {asked}")) == ("a boat in red\n", 1)
    again = json.loads(at.run("send", "echo", "a kite", "--json").out)["task"]["id"]
    lone = next(again[:n] for n in range(1, len(again) + 1) if not asked.startswith(again[:n]))
    assert at.run("send", "echo", "--task", lone, "blue").out == "a kite in blue\n"
    referred = at.run("send", "echo", "more", "--no-wait", "--refer", lone)
    assert referred.code == 0
    sent = json.loads(at.deployment.calls[-1].body or b"")
    assert sent["params"]["message"]["referenceTaskIds"] == [again]


def test_a_command_without_exactly_one_task_is_a_usage_error() -> None:
    at = shell()
    for words in ([], [started(at), "--last"]):
        assert at.run("get", "echo", *words).code == 2
    assert at.run("send", "echo", "x", "--last", "--task", "t").code == 2


def test_without_a_task_there_is_no_last_one() -> None:
    done = shell().run("get", "echo", "--last")
    assert (done.code, done.err.splitlines()[0]) == (1, "echo has no tasks of yours.")


# ---- the operator's name of a task


def test_a_task_s_webhooks_are_printed_with_the_name_that_push_asks_for() -> None:
    at = shell()
    task_id = at.run("send", "echo", "hi", "--no-wait", "--webhook", "https://hooks.example.com/a2a").out.strip()
    (one,) = json.loads(at.run("deliveries", "echo", task_id, "--json").out)["deliveries"]
    assert one["task"].endswith(f"/{task_id}")
    assert one["task"].count("/") == 2
    assert one["task"] in at.run("deliveries", "echo", task_id).out


def test_push_says_where_the_owner_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert shell().run("push", "show", "some-task", "config").code == 2
    told = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "named TENANT/OWNER/TASK: `deliveries AGENT TASK` prints it" in told


# ---- frameworks


def test_a_framework_that_is_unknown_is_answered_with_those_that_are_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "500")  # so that the frame breaks no name
    assert shell().run("init", "my-shop", "--from", "crewai").code == 2
    shown = capsys.readouterr().err
    assert all(f"'{name}'" in shown for name in ("crewai", *get_args(FrameworkName)))
