import asyncio
import base64
import io
import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.client import ClientRequest, ClientResponse, Transport
from a2a_serverless.domain.agent_errors import TaskFailed, TaskRejected
from a2a_serverless.domain.circuit_breaker import FAILURE_THRESHOLD
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.domain.task_context import TaskContext
from a2a_serverless_tools.cli.formatting import bytes_words, file_size
from tests.cli.shell import Shell
from tests.client.deployment import BASE, Deployment, Locked, answering, documents, rpc
from tests.echo import Asker, Writer, agent_of

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json

TEXT = "one: hello. two: hello. three: hello. "


def shell(*, screen: bool = False) -> Shell:
    return Shell(Deployment(Writer().agent), screen=screen)


def task_in(out: str) -> str:
    task_id: str = json.loads(out)["task"]["id"]
    return task_id


def handed_in(at: Shell) -> str:
    return at.run("send", "echo", "hello", "--no-wait").out.strip()


def talker(*, streaming: bool) -> Transport:
    """An agent elsewhere that answers "hi" to everything."""
    interface = {"url": "https://a.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    card = {"name": "talker", "version": "1", "capabilities": {"streaming": streaming}}
    message = {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}
    transport, _ = answering((200, {}, json.dumps(card | {"supportedInterfaces": [interface]}).encode()), rpc(message))  # type: ignore[arg-type]
    return transport


@pytest.mark.parametrize(
    ("url", "stack"),
    [(BASE, ""), ("https://agents.example.com", " --stack STACK")],
)
def test_send_says_where_the_error_of_a_failed_task_is_shown(url: str, stack: str) -> None:
    async def breaks(_: TaskContext) -> None:
        raise ValueError("the needle is blunt")

    done = Shell(Deployment(agent_of(breaks), base=url)).run("send", "echo", "a coat", "--url", url)
    *_, timeline, why = done.err.splitlines()
    assert timeline.startswith("Timeline: ")
    task_id = done.err.split()[1]
    assert why == f"Why: a2a-serverless logs --task {task_id}{stack}"


def test_send_prints_the_artifact_to_stdout_and_the_progress_to_stderr() -> None:
    at = shell()
    done = at.run("send", "echo", "hello")
    ((task_id,),) = [line.split()[:1] for line in at.run("tasks", "list").out.splitlines()]
    assert (done.code, done.out) == (0, f"{TEXT}\n")
    assert done.err.splitlines() == [
        f"Task {task_id}",
        "  1 ● submitted",
        "  2 ● working",
        "  3 ● three sections",
        "  4 + document.md  12 characters",
        "  5 + document.md  12 characters",
        "  6 + document.md  14 characters",
        "  7 ✓ completed",
        f"Timeline: a2a-serverless trace echo {task_id}",
    ]


def test_json_is_the_finished_task_and_nothing_else() -> None:
    done = shell().run("send", "echo", "hello", "--json")
    task = json.loads(done.out)["task"]
    assert (done.code, done.err, task["status"]["state"]) == (0, "", "TASK_STATE_COMPLETED")


def test_a_task_that_is_handed_in_leaves_its_id() -> None:
    at = shell()
    done = at.run("send", "echo", "hello", "--no-wait")
    task_id = done.out.strip()
    assert at.deployment.world.table.read_log is not None
    assert f"watch echo {task_id}" in done.err
    assert task_in(at.run("send", "echo", "more", "--task", task_id, "--no-wait", "--json").out) == task_id


def test_a_file_is_sent_as_what_its_name_says(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("\ufeffhello")
    for modes, kept in ((("text/plain", "text/markdown"), {"mediaType": "text/markdown"}), (("text/plain",), {})):
        at = Shell(Deployment(replace(Writer().agent, input_modes=modes)))
        assert at.run("send", "echo", "--file", str(path)).code == 0
        (part,) = sent_message(at)["parts"]
        assert part == {"text": "hello", "filename": "notes.md", **kept}


def sent_message(at: Shell) -> Any:
    return json.loads(at.deployment.calls[1].body or b"")["params"]["message"]


def test_a_text_files_and_data_are_sent_in_one_message(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.png").write_bytes(b"\x89PNG\r\n")
    at = Shell(Deployment(replace(Writer().agent, input_modes=("text/plain", "image/png", "application/json"))))
    files = ["--file", str(tmp_path / "a.txt"), "-f", str(tmp_path / "b.png")]
    done = at.run("send", "echo", "Compare these", *files, "--data", '{"a": [1]}', "--data", "null")
    assert done.code == 0
    assert sent_message(at)["parts"] == [
        {"text": "Compare these"},
        {"text": "one", "mediaType": "text/plain", "filename": "a.txt"},
        {"raw": "iVBORw0K", "mediaType": "image/png", "filename": "b.png"},
        {"data": {"a": [1]}},
        {"data": None},
    ]


def test_metadata_and_a_budget_are_the_messages() -> None:
    at = shell()
    at.run("send", "echo", "hi", "--metadata", '{"priority": 2}', "--budget", "usd=0.5", "--budget", "steps=10")
    assert sent_message(at)["metadata"] == {"priority": 2, "a2a-serverless/budget": {"usd": 0.5, "steps": 10}}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--data", "{"), "--data is not valid JSON: Expecting"),
        (("--metadata", "[1]"), "--metadata needs a JSON object"),
        (("--budget", "eur=1"), "--budget eur=1: write one of usd=AMOUNT, tokens=AMOUNT, steps=AMOUNT"),
        (("--budget", "steps=0.5"), "--budget steps=0.5"),
        (("--budget", "usd"), "--budget usd: write"),
    ],
)
def test_a_value_that_cannot_be_sent_is_refused_before_anything_is_asked(
    arguments: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at = shell()
    assert at.run("send", "echo", "hi", *arguments).code == 2
    assert text in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert at.deployment.calls == []


def test_the_result_is_the_artifacts_and_the_message_with_which_the_task_completed(tmp_path: Path) -> None:
    async def answering_all(task: TaskContext) -> str:
        await task.emit("a.txt", "a coat", last=True)
        return "It is ready."

    at = Shell(Deployment(agent_of(answering_all)))
    done = at.run("send", "echo", "hi")
    assert (done.out, "It is ready." in done.err) == ("a coat\n\nIt is ready.\n", False)
    assert at.run("get", "echo", "--last", "--text").out == done.out
    assert at.run("send", "echo", "hi", "--out", str(tmp_path)).out == "It is ready.\n"


def test_the_reason_of_a_failure_is_no_result() -> None:
    async def failing(_: TaskContext) -> None:
        raise TaskFailed("out of cloth")

    done = Shell(Deployment(agent_of(failing))).run("send", "echo", "hi")
    assert (done.code, done.out, "out of cloth" in done.err) == (3, "", True)


def test_send_with_a_dash_reads_the_message_from_stdin() -> None:
    at = shell()
    at.stdin = b"hello"
    assert at.run("send", "echo", "-").out == f"{TEXT}\n"


def test_a_line_that_breaks_is_taken_up_again_behind_the_last_event() -> None:
    at = shell()
    at.deployment.breaks_after = 3
    done = at.run("send", "echo", "hello")
    assert (done.code, done.out) == (0, f"{TEXT}\n")
    numbers = [int(line.split()[0]) for line in done.err.splitlines()[1:-1]]
    assert numbers == list(range(1, 8))
    assert [call.headers.get("Last-Event-ID") for call in at.deployment.calls] == [None, None, "3", None]


def test_a_line_that_breaks_before_anything_was_heard_is_told(tmp_path: Path) -> None:
    at = shell()
    at.deployment.breaks_after = 0
    done = at.run("send", "echo", "hello", "--out", str(tmp_path))
    assert done.code == 1
    assert done.err.startswith("There is no answer from http://127.0.0.1:8000/echo: Connection reset by peer.")


def test_an_agent_that_does_not_stream_is_asked_again_and_again() -> None:
    quiet = replace(Writer().agent, streaming=False)
    done = Shell(Deployment(quiet)).run("send", "echo", "hello")
    assert (done.code, done.out) == (0, f"{TEXT}\n")
    assert done.err.splitlines()[-1] == "    ✓ completed"


def test_a_task_of_an_agent_that_does_not_stream_is_watched_too() -> None:
    at = Shell(Deployment(replace(Writer().agent, streaming=False)))
    lines = at.run("watch", "echo", handed_in(at)).out.splitlines()
    assert (lines[0], lines[-1]) == ("    ● submitted", "    ✓ completed")


def test_a_question_is_shown_with_the_way_to_answer_it() -> None:
    at = Shell(Deployment(Asker().agent))
    asked = at.run("send", "echo", "a boat")
    assert asked.code == 4
    last = asked.err.splitlines()[-1]
    assert last.startswith("Your turn: a2a-serverless send echo --task ")
    task_id = last.split("--task ")[1].split()[0]
    answered = at.run("send", "echo", "--task", task_id, "red")
    assert (answered.code, answered.out) == (0, "a boat in red\n")


def test_watching_goes_past_a_question_that_was_answered() -> None:
    at = Shell(Deployment(Asker().agent))
    asked = json.loads(at.run("send", "echo", "a boat", "--json").out)["task"]["id"]
    at.run("send", "echo", "--task", asked, "red")
    done = at.run("watch", "echo", asked)
    assert done.code == 0
    assert [line.split()[2] for line in done.out.splitlines()].count("input-required") == 1


def test_a_task_that_ends_badly_has_an_exit_code_of_its_own() -> None:
    async def refuse(_: TaskContext) -> None:
        raise TaskRejected("Not my job.")

    done = Shell(Deployment(agent_of(refuse))).run("send", "echo", "hello")
    assert (done.code, done.err.splitlines()[-2]) == (3, "  3 ✗ rejected  Not my job.")


def test_an_agent_that_answers_with_a_message_is_read_out() -> None:
    done = Shell(Deployment(), transport=talker(streaming=True)).run("send", "https://a.example", "hello")
    assert (done.code, done.out, done.err) == (0, "hi\n", "")


@pytest.mark.parametrize("wait", ["--wait", "--no-wait"])
def test_a_message_as_json_is_what_the_agent_answered(wait: str) -> None:
    done = Shell(Deployment(), transport=talker(streaming=False)).run("send", "https://a.example", "hi", "--json", wait)
    assert json.loads(done.out)["message"]["parts"] == [{"text": "hi"}]


def test_a_task_is_shown_as_names_and_values() -> None:
    at = shell()
    task_id = task_in(at.run("send", "echo", "hello", "--json").out)
    done = at.run("get", "echo", task_id)
    rows = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert rows["Task"] == task_id
    assert (rows["State"], rows["Artifact"]) == ("completed", "document.md  38 characters")


async def paint_boat(task: TaskContext) -> None:
    await task.emit("boat.png", bytes(293_884), media_type="image/png", last=True)


def test_a_picture_is_shown_with_its_name_and_size() -> None:
    done = Shell(Deployment(agent_of(paint_boat))).run("send", "echo", "hello")
    assert done.out == "[boat.png, image/png, 287 KB: save it with --out]\n"
    assert "+ boat.png  287 KB" in done.err


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 bytes"), (1023, "1023 bytes"), (293_884, "287 KB"), (5 * 1024 * 1024, "5.0 MB")]
)
def test_sizes_of_files_are_printed_in_words(size: int, words: str) -> None:
    assert bytes_words(file_size(base64.b64encode(bytes(size)).decode())) == words


def test_a_conversation_that_is_not_the_tasks_is_one_sentence() -> None:
    at = Shell(Deployment(Asker().agent))
    task_id = task_in(at.run("send", "echo", "a boat", "--json").out)
    done = at.run("send", "echo", "red", "--task", task_id, "--context", "another")
    assert (done.code, done.err.splitlines()) == (
        1,
        [
            "message.contextId is not the context of the task.",
            "  what helps: leave out --context: --task alone continues the task in its own conversation",
        ],
    )


def test_get_shows_a_task_in_columns_on_a_terminal() -> None:
    at = shell(screen=True)
    task_id = at.deployment.world.send().id
    assert task_id
    done = at.run("get", "echo", handed_in(at))
    assert "State" in done.out
    assert "submitted" in done.out


def test_the_text_of_a_task_is_fit_for_a_pipe() -> None:
    at = shell()
    task_id = task_in(at.run("send", "echo", "hello", "--json").out)
    assert at.run("get", "echo", task_id, "--text").out == f"{TEXT}\n"


def test_send_with_out_saves_the_artifacts_of_the_task(tmp_path: Path) -> None:
    done = shell().run("send", "echo", "hello", "--out", str(tmp_path / "out"))
    assert (done.out, (tmp_path / "out" / "document.md").read_text()) == ("", TEXT)
    assert done.err.splitlines()[-2] == f"Saved {tmp_path / 'out' / 'document.md'}"


def test_a_task_is_watched_from_its_first_event_on() -> None:
    at = shell()
    done = at.run("watch", "echo", handed_in(at))
    assert [line.split()[0] for line in done.out.splitlines()] == [str(n) for n in range(1, 8)]


def test_progress_in_percent_is_shown_where_a_task_is_followed_and_until_its_end_where_it_is_traced() -> None:
    async def reads(task: TaskContext) -> None:
        for percent in (0, 40, 66.6):
            await task.report_progress("reading", percent=percent)
            await asyncio.sleep(1)
        await task.ask("Another book?")

    at = Shell(Deployment(agent_of(reads)))
    sent = at.run("send", "echo", "a book")
    lines = ["  3 ● 0 % reading", "  4 ● 40 % reading", "  5 ● 66.6 % reading"]
    assert [line for line in sent.err.splitlines() if "%" in line] == lines
    task = at.run("tasks", "list").out.split()[0]
    assert [line for line in at.run("watch", "echo", task).out.splitlines() if "%" in line] == lines
    assert [line for line in at.run("trace", "echo", task).out.splitlines() if "%" in line] == ["progress: 66.6 %"]
    events = json.loads(at.run("trace", "echo", task, "--json").out)["events"]
    assert [event["percent"] for event in events if "percent" in event] == [0, 40, 66.6]
    at.run("send", "echo", "no", "--task", task)
    assert "%" not in at.run("trace", "echo", task).out


def test_watching_as_json_gives_one_line_for_each_event() -> None:
    at = shell()
    lines = [json.loads(line) for line in at.run("watch", "echo", handed_in(at), "--json").out.splitlines()]
    assert [line["eventNumber"] for line in lines] == list(range(1, 8))
    assert lines[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_canceled_task_is_shown_as_canceled() -> None:
    at = shell()
    assert "canceled" in at.run("cancel", "echo", handed_in(at)).out
    assert at.run("watch", "echo", handed_in(at), "--json").code == 0


def test_cancel_as_json_is_the_task() -> None:
    at = shell()
    assert json.loads(at.run("cancel", "echo", handed_in(at), "--json").out)["status"]["state"] == "TASK_STATE_CANCELED"


def test_a_webhook_and_its_token_go_along() -> None:
    at = shell()
    at.environment = {"A2A_WEBHOOK_TOKEN": "t0"}
    at.run("send", "echo", "hello", "--no-wait", "--webhook", "https://hooks.example.com/a2a")
    at.deployment.world.settle()
    assert at.deployment.world.receiver.posts[-1].headers["X-A2A-Notification-Token"] == "t0"


@pytest.mark.parametrize(("events", "end"), [("states", "statusUpdate"), ("results", "task")])
def test_a_webhook_of_states_or_results_gets_no_chunk(events: str, end: str) -> None:
    at = shell()
    done = at.run(
        "send", "echo", "hello", "--no-wait", "--webhook", "https://hooks.example.com/a2a", "--webhook-events", events
    )
    assert done.code == 0, done.err
    at.deployment.world.settle()
    kinds = [next(iter(got.body)) for got in at.deployment.world.receiver.posts]
    assert (kinds[-1], "artifactUpdate" in kinds) == (end, False)


def test_the_events_of_a_webhook_need_a_webhook_and_an_agent_that_offers_them() -> None:
    assert shell().run("send", "echo", "hi", "--webhook-events", "states").code == 2
    at = Shell(Deployment(), transport=talker(streaming=False))
    url = "https://hooks.example.com/a2a"
    refused = at.run("send", "https://a.example", "hi", "--webhook", url, "--webhook-events", "states")
    assert (refused.code, "does not offer urn:a2a-serverless:webhook-states:1" in refused.err) == (2, True)


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("wait", ["--wait", "--no-wait"])
def test_an_answer_without_a_task_says_that_no_webhook_follows(wait: str, *, streaming: bool) -> None:
    at = Shell(Deployment(), transport=talker(streaming=streaming))
    done = at.run("send", "https://a.example", "hi", wait, "--webhook", "https://hooks.example.com/a2a")
    assert (done.code, done.out) == (0, "hi\n")
    assert "answered without a task, so no webhook is sent" in done.err


def test_the_owner_of_a_task_sees_each_attempt() -> None:
    at = shell()
    task_id = at.run("send", "echo", "hi", "--no-wait", "--webhook", "https://hooks.example.com/a2a").out.strip()
    at.deployment.world.settle()
    shown = at.run("deliveries", "echo", task_id).out
    rows = {name: value for name, _, value in (line.partition("  ") for line in shown.splitlines())}
    assert rows["State"].strip() == "active"
    assert rows["Delivered up to"].strip() == "7"
    assert ": 200 in " in shown
    (one,) = json.loads(at.run("deliveries", "echo", task_id, "--json").out)["deliveries"]
    assert one["deliveredUpTo"] == 7


@pytest.mark.parametrize(
    ("outcome", "result", "remedy"),
    [
        (
            Outcome(status=401, connected=True, request_sent=True),
            "401",
            "audience (the URL), issuer, keys and clock",
        ),
        (Outcome(status=500, connected=True, request_sent=True), "500", "its inbox, or its log"),
        (Outcome(error=OutboundError.TIMEOUT), "timeout", "check that the receiver runs"),
    ],
)
def test_a_webhook_that_fails_is_said_with_the_way_to_the_reason(outcome: Outcome, result: str, remedy: str) -> None:
    at = Shell(Deployment(Asker().agent))
    at.deployment.world.receiver.answers = lambda _: outcome
    sent = at.run("send", "echo", "a boat", "--json", "--webhook", "https://hooks.example.com/a2a")
    task_id = task_in(sent.out)
    at.deployment.world.wait(1)
    again = at.run("send", "echo", "red", "--task", task_id, "--webhook", "https://hooks.example.com/a2a")
    assert f"Webhook: the last attempt got {result}. Why: a2a-serverless deliveries echo {task_id}" in again.err
    assert remedy in at.run("deliveries", "echo", task_id).err


def held(at: Shell) -> str:
    """A task whose webhook waits for its host, which has not answered others; its id."""
    world = at.deployment.world
    world.receiver.echoes = lambda _: Outcome(error=OutboundError.CONNECT)
    for _ in range(FAILURE_THRESHOLD):
        at.run("send", "echo", "a boat", "--webhook", "https://hooks.example.com/a2a")
    world.wait(1)
    task_id = task_in(at.run("send", "echo", "a boat", "--json", "--webhook", "https://hooks.example.com/a2a").out)
    world.wait(1)
    return task_id


def test_a_webhook_that_its_host_holds_is_said_with_the_time_and_the_reason() -> None:
    at = Shell(Deployment(Asker().agent))
    task_id = held(at)
    (told,) = json.loads(at.run("deliveries", "echo", task_id, "--json").out)["deliveries"]
    until = told["hostPaused"]["until"][:19].replace("T", " ")
    paused = f"host paused until {until} UTC after 3 unanswered"
    again = at.run("send", "echo", "red", "--task", task_id, "--webhook", "https://hooks.example.com/a2a")
    assert paused in again.err
    assert f". Why: a2a-serverless deliveries echo {task_id}" in again.err
    shown = at.run("deliveries", "echo", task_id)
    assert paused in shown.out
    assert "what helps: start the receiver; `push redrive`" in shown.err
    assert paused in at.run("trace", "echo", task_id).out


def test_a_webhook_that_is_accepted_needs_no_help() -> None:
    at = shell()
    done = at.run("send", "echo", "hi", "--webhook", "https://hooks.example.com/a2a")
    at.deployment.world.settle()
    assert "Webhook:" not in done.err
    (task_id,) = [line.split()[0] for line in at.run("tasks", "list").out.splitlines()]
    assert at.run("deliveries", "echo", task_id).err == ""


def test_deliveries_of_a_task_without_webhooks_says_that_it_has_none() -> None:
    at = shell()
    assert at.run("deliveries", "echo", handed_in(at)).err == "The task has no webhooks.\n"
    assert at.run("deliveries", "echo", "no-such-task").code == 1


def test_a_receiver_is_told_what_to_expect_before_the_task_is_sent() -> None:
    at = shell()
    told = {"pushNotificationConfig": {"url": "https://hooks.example.com/a2a", "token": "secret"}}
    inbox, asked = answering((201, {}, json.dumps(told).encode()))
    inner = at.transport
    at.transport = lambda call: (inbox if "8010" in call.url else inner)(call)
    at.run("send", "echo", "hello", "--no-wait", "--inbox", "http://127.0.0.1:8010/")
    assert asked[0].url == "http://127.0.0.1:8010/expectations?agent=echo"
    push = json.loads(at.deployment.calls[-1].body or b"")["params"]["configuration"]["taskPushNotificationConfig"]
    assert push == {"url": "https://hooks.example.com/a2a", "token": "secret"}


def test_credentials_come_from_the_environment() -> None:
    at = shell()
    at.environment = {"A2A_AUTHORIZATION": "Bearer secret"}
    at.run("send", "echo", "hello")
    assert {call.headers["Authorization"] for call in at.deployment.calls} == {"Bearer secret"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("get", "echo", "no-such-task"), "The task was not found."),
        (("get", "nobody", "t"), "There is no agent 'nobody' at http://127.0.0.1:8000."),
        (("cards", "list", "--url", "http://127.0.0.1:9"), "There is no answer from http://127.0.0.1:9/agents"),
        (("cards", "list", "--url", "https://far.example.com"), "check the address"),
    ],
)
def test_an_error_for_a_user_comes_with_a_remedy(arguments: tuple[str, ...], said: str) -> None:
    done = shell().run(*arguments)
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert "  what helps: " in done.err


def test_an_error_as_json_is_for_programs() -> None:
    done = shell().run("get", "echo", "no-such-task", "--json")
    error = json.loads(done.out)["error"]
    assert (done.code, done.err, error["kind"]) == (1, "", "TaskNotFoundError")


def test_a_refused_parameter_is_named() -> None:
    done = shell().run("send", "echo", "hello", "--webhook", "http://hooks.example.com/", "--no-wait")
    assert "The agent refuses the webhook http://hooks.example.com/: only https is allowed" in done.err


def test_a_user_without_valid_credentials_is_told_how_to_get_them() -> None:
    at = Shell(Deployment(Writer().agent, authenticator=Locked()))
    assert "set A2A_AUTHORIZATION" in at.run("get", "echo", "t").err
    at.environment = {"A2A_AUTHORIZATION": "Bearer old"}
    assert "get a new token" in at.run("get", "echo", "t").err


def test_an_agent_elsewhere_that_is_not_there_is_named_by_its_url() -> None:
    at = Shell(Deployment(Writer().agent), transport=documents({}))
    assert "There is no agent at https://a.example." in at.run("get", "https://a.example", "t").err


def test_a_refusal_that_is_not_the_agents_is_told() -> None:
    transport, _ = answering((500, {}, b""))
    at = Shell(Deployment(Writer().agent), transport=transport)
    assert at.run("get", "echo", "t").err.startswith("The request was refused: HTTP 500")


@pytest.mark.parametrize(
    ("status", "said", "remedy"),
    [
        (413, "Request Too Long", "--file"),
        (429, "Too Many Requests", "in a moment"),
        (504, "Endpoint request timed out", "api function's log"),
    ],
)
def test_a_refusal_of_api_gateway_is_shown_with_a_remedy(status: int, said: str, remedy: str) -> None:
    transport, _ = answering((status, {}, json.dumps({"message": said}).encode()))
    done = Shell(Deployment(Writer().agent), transport=transport).run("get", "echo", "t")
    assert done.code == 1
    assert f"HTTP {status}: " in done.err
    assert said in done.err
    assert remedy in done.err


@pytest.mark.parametrize("content", [b"", b"  \n", b"\xff\xfe", None])
def test_a_file_that_cannot_be_sent_is_refused_before_anything_is_asked(tmp_path: Path, content: bytes | None) -> None:
    at, path = shell(), tmp_path / "file.txt"
    if content is not None:
        path.write_bytes(content)
    assert at.run("send", "echo", "--file", str(path)).code == 2
    assert at.deployment.calls == []


@pytest.mark.parametrize("arguments", [(), ("hello", "--file", "x"), ("hello", "--webhook", "u", "--inbox", "v")])
def test_a_command_line_that_says_too_little_or_too_much_is_refused(arguments: tuple[str, ...]) -> None:
    assert shell().run("send", "echo", *arguments).code == 2


def test_control_characters_of_an_agent_do_not_reach_the_screen() -> None:
    async def paint(task: TaskContext) -> None:
        await task.emit("x\x1b]0;owned\x07", "a\x1b[2Jb\r\nc")

    deployment = Deployment(agent_of(paint))
    assert Shell(deployment, screen=True).run("send", "echo", "hi").out == "a�[2Jb\nc\n"
    assert "\x1b" not in Shell(deployment, screen=True).run("send", "echo", "hi").err
    assert Shell(deployment).run("send", "echo", "hi").out == "a\x1b[2Jb\r\nc\n"


def test_the_terminal_prints_markup_of_an_agent_as_plain_text() -> None:
    async def shout(task: TaskContext) -> None:
        await task.report_progress("[bold]loud[/bold] [/nothing]")

    done = Shell(Deployment(agent_of(shout)), screen=True).run("send", "echo", "hi")
    assert "[bold]loud[/bold] [/nothing]" in done.err


class Beside:
    """A bucket beside a deployment: what is PUT there can be fetched there."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment

    @contextmanager
    def transport(self, call: ClientRequest) -> Iterator[ClientResponse]:
        name = call.url.removeprefix("https://blobs.example/").partition("?")[0]
        blobs = self.deployment.world.blobs
        if name == call.url:
            with self.deployment.transport(call) as answer:
                yield answer
        elif call.body is not None:
            blobs.put(name, call.body)
            yield ClientResponse(200, {}, io.BytesIO())
        else:
            yield ClientResponse(200, {}, io.BytesIO(blobs.get(name)))


@pytest.mark.parametrize("size", [4 * 1024 * 1024, 20 * 1024 * 1024])
def test_a_file_of_any_size_goes_to_the_agent_and_what_it_makes_of_it_is_saved(size: int, tmp_path: Path) -> None:
    async def turn(task: TaskContext) -> None:
        *_, file = task.message.parts
        await task.emit("turned.bin", (await task.read_file(file))[::-1], last=True)

    path, content = tmp_path / "big.bin", bytes(range(256)) * (size // 256)
    path.write_bytes(content)
    deployment = Deployment(agent_of(turn))
    at = Shell(deployment, transport=Beside(deployment).transport)
    done = at.run("send", "echo", "turn it round", "--file", str(path), "--out", str(tmp_path / "made"))
    assert (done.code, done.err.splitlines()[-2]) == (0, f"Saved {tmp_path}/made/turned.bin")
    assert (tmp_path / "made" / "turned.bin").read_bytes() == content[::-1]


def test_an_upload_that_the_agent_does_not_offer_is_told(tmp_path: Path) -> None:
    path = tmp_path / "big.bin"
    path.write_bytes(bytes(5 * 1024 * 1024))
    deployment = Deployment(Writer().agent)
    deployment.world.service = deployment.world.service._replace(contents=None)
    deployment.edge = replace(deployment.edge, service=deployment.world.service)
    done = Shell(deployment).run("send", "echo", "--file", str(path))
    assert done.code == 1
    assert "The agent accepts no uploads" in done.err


@pytest.mark.parametrize(("binding", "path"), [("JSONRPC", "/echo"), ("HTTP+JSON", "/echo/message:stream")])
def test_a_command_talks_over_the_binding_that_it_is_told(binding: str, path: str) -> None:
    at = shell()
    done = at.run("send", "echo", "hello", "--binding", binding)
    assert done.code == 0
    assert TEXT in done.out
    assert f"{BASE}{path}" in [call.url for call in at.deployment.calls]


def test_the_binding_may_stand_in_the_environment_and_a_missing_one_is_said() -> None:
    at = Shell(Deployment(Writer().agent), transport=talker(streaming=False))
    at.environment = {"A2A_BINDING": "HTTP+JSON"}
    done = at.run("send", "https://a.example", "hello", "--binding", "HTTP+JSON")
    assert done.code != 0
    assert "HTTP+JSON" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="it has quotes of its own")
def test_a_command_to_copy_quotes_the_id_that_an_agent_has_chosen() -> None:
    task_id = "t'; touch /tmp/stolen; '"
    interface: Json = {"url": "https://a.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    card: Json = {"name": "far", "version": "1", "capabilities": {}, "supportedInterfaces": [interface]}
    task: Json = {"id": task_id, "contextId": "c", "status": {"state": "TASK_STATE_INPUT_REQUIRED"}}
    transport, _ = answering((200, {}, json.dumps(card).encode()), rpc({"task": task}))
    done = Shell(Deployment(Writer().agent), transport=transport).run("send", "https://a.example", "hi", "--no-wait")
    command = done.err.split("To follow it: ")[1]
    assert shlex.split(command) == ["a2a-serverless", "watch", "https://a.example", task_id]
