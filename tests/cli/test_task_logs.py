"""``logs --task`` and ``logs --errors``: the lines of one task, and what goes wrong in functions, wherever they ran."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.stub import Stubber

from a2a_serverless_tools.operators.deployed import CommandFailed, StackName
from a2a_serverless_tools.operators.function_errors import FILTER, count_errors
from a2a_serverless_tools.operators.task_logs import MOST_LINES, read_errors, read_lines
from a2a_serverless_tools.stack.paths import find
from tests.cli.shell import Shell
from tests.client.deployment import Deployment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TASK = "3f9a1c0e5b7d2846"
IDS = {"agent": "echo", "task": TASK, "context": "c", "run": 1}
AT = "2026-11-29T10:00:0{}.123+00:00"


def line(second: int, message: str, level: str = "INFO", **fields: object) -> str:
    return json.dumps({"timestamp": AT.format(second), "level": level, "message": message, **IDS, **fields})


LINES = [
    line(3, "agent failed", "ERROR", error="ValueError", traceback="Traceback ...\n  File x\nValueError: blunt\n"),
    line(1, "cut", step="cut/sleeve", logger="print"),
    line(2, "the needle is hot", "WARNING"),
    line(2, "of another task", task="another"),
    f"2026 START {{not json {TASK}",
    "Traceback of nobody",
]


def shell(lines: list[str] | None = None) -> Shell:
    at = Shell(Deployment())
    given = LINES if lines is None else lines
    at.log_lines = lambda stack, task: given if (stack, TASK.startswith(task)) == (StackName("mine"), True) else []
    return at


def test_the_lines_of_a_task_are_shown_in_the_order_of_their_times_with_their_ids() -> None:
    done = shell().run("logs", "--task", "3f9a", "--stack", "mine")
    assert done.code == 0
    assert done.out.splitlines() == [
        "10:00:01.123  INFO    cut  agent=echo run=1 step=cut/sleeve logger=print",
        "10:00:02.123  WARNING the needle is hot  agent=echo run=1",
        "10:00:03.123  ERROR   agent failed  agent=echo run=1 error=ValueError",
        "Traceback ...",
        "  File x",
        "ValueError: blunt",
    ]


@pytest.mark.parametrize(("level", "count"), [("DEBUG", 3), ("INFO", 3), ("WARNING", 2), ("ERROR", 1)])
def test_a_level_leaves_out_the_lines_below_it(level: str, count: int) -> None:
    done = shell().run("logs", "--task", TASK, "--stack", "mine", "--level", level, "--json")
    assert len([json.loads(text) for text in done.out.splitlines()]) == count


def test_a_task_without_a_line_is_said_to_have_none() -> None:
    done = shell([]).run("logs", "--task", TASK, "--stack", "mine")
    assert (done.code, done.out, done.err) == (0, "", f"There is no line of the task {TASK}.\n")


class GrowingLog(Shell):
    """A project whose `dev` has logged two lines, logs the others at the first pause, and is left at the second."""

    def __init__(self, state: Path) -> None:
        super().__init__(Deployment())
        self.environment = {"A2A_STATE": str(state)}
        self.file = find(state=state).dev.log("dev")
        self.growing = ["\n".join(LINES), "\n".join(LINES[:2])]
        self._sleep(0)

    def _sleep(self, _: float) -> None:
        if not self.growing:
            raise KeyboardInterrupt
        self.file.write_text(self.growing.pop())


def test_new_lines_are_shown_once_as_they_come(tmp_path: Path) -> None:
    done = GrowingLog(tmp_path).run("logs", "--task", TASK, "--follow", "--json")
    assert done.code == 130
    assert [json.loads(text)["message"] for text in done.out.splitlines()] == [
        "cut",
        "agent failed",
        "the needle is hot",
    ]


@pytest.mark.parametrize("options", [(), ("--task", TASK, "--follow")])
def test_a_stack_needs_a_task_and_is_not_asked_again_and_again(options: tuple[str, ...]) -> None:
    at = shell()
    at.log_lines = lambda *_: pytest.fail("a query of the logs in AWS costs")
    assert at.run("logs", "--stack", "mine", *options).code == 2


@pytest.fixture
def logs() -> Iterator[tuple[Any, Stubber]]:
    session: Any = boto3.Session("k", "s", region_name="eu-central-1")
    client = session.client("logs")
    with Stubber(client) as stubber:
        yield client, stubber


def queried(client: Any, task: str = TASK) -> list[str]:
    return read_lines(client, ["/a", "/b"], task, 2, now=lambda: 1_000_000, sleep=lambda _: None)


def test_a_deployed_stack_is_asked_by_one_query_over_its_log_groups(logs: tuple[Any, Stubber]) -> None:
    client, stubber = logs
    query = f"fields @message | filter task like /^{TASK}/ | sort @timestamp asc | limit {MOST_LINES}"
    asked = {"logGroupNames": ["/a", "/b"], "startTime": 827_200, "endTime": 1_000_060, "queryString": query}
    stubber.add_response("start_query", {"queryId": "q"}, asked)
    stubber.add_response("get_query_results", {"status": "Running"}, {"queryId": "q"})
    rows = [[{"field": "@message", "value": text}, {"field": "@ptr", "value": "p"}] for text in LINES[:2]]
    stubber.add_response("get_query_results", {"status": "Complete", "results": rows}, {"queryId": "q"})
    assert queried(client) == LINES[:2]
    stubber.assert_no_pending_responses()


def test_a_query_that_fails_and_what_is_no_id_are_told(logs: tuple[Any, Stubber]) -> None:
    client, stubber = logs
    with pytest.raises(CommandFailed, match="is no id of a task"):
        queried(client, "x/ | limit 1")
    stubber.add_response("start_query", {"queryId": "q"})
    stubber.add_response("get_query_results", {"status": "Failed"})
    with pytest.raises(CommandFailed, match="the query of the logs is Failed"):
        queried(client)


PLACES = ["/var/task/a2a_serverless/engine/run.py:274 _play_to_end", "/var/task/shop/tailor.py:24 parse"]
FAILED = line(3, "agent failed", "ERROR", error="KeyError", raised_at=PLACES, step="cut")


def platform(kind: str, **record: str) -> str:
    return json.dumps({"time": "2026-11-29T10:00:07.000Z", "type": f"platform.{kind}", "record": record})


def test_equal_errors_are_counted_with_the_last_time_and_task() -> None:
    later = FAILED.replace(TASK, "later").replace(AT.format(3), AT.format(5))
    (error, other) = count_errors([("worker", FAILED), ("worker", later), ("api", FAILED)])
    assert (error.function, error.occurrences, error.last, error.task) == ("worker", 2, AT.format(5)[:19], "later")
    assert (error.text, error.error, error.agent) == ("agent failed", "KeyError", "echo")
    assert (error.place, error.step) == ("shop/tailor.py:24 parse", "cut")
    assert (other.function, other.occurrences) == ("api", 1)


RAISED = {"level": "ERROR", "timestamp": "2026-11-29T10:00:07Z", "errorType": "SettingsError", "errorMessage": "no URL"}


@pytest.mark.parametrize(
    ("text", "what", "error"),
    [
        (line(1, "tick skipped", "WARNING", reason="late"), "tick skipped", "late"),
        (json.dumps(RAISED), "no URL", "SettingsError"),
        (platform("report", status="timeout"), "Lambda ended it: timeout", ""),
        (
            platform("report", status="error", errorType="Runtime.OutOfMemory"),
            "Lambda ended it: error",
            "Runtime.OutOfMemory",
        ),
        (platform("initReport", status="error", errorType="X"), "it did not start: error", "X"),
    ],
)
def test_an_error_line_of_a_function_or_of_lambda_is_counted(text: str, what: str, error: str) -> None:
    (one,) = count_errors([("worker", text)])
    assert (one.text, one.error) == (what, error)


@pytest.mark.parametrize(
    "text",
    [line(1, "request answered"), platform("report", status="success"), "START RequestId: 1", "[1]", '{"a":' * 99_999],
    ids=["info", "success", "start", "list", "nested"],
)
def test_a_log_line_that_is_no_error_is_not_counted(text: str) -> None:
    said = f"x y ERROR [lambda] error for a-WorkerFunction-9: {text}"
    assert count_errors([("worker", text), ("emulator", said)]) == []


def test_an_error_of_several_lines_is_one_line_of_the_table() -> None:
    at = shell()
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    said = RAISED | {"errorMessage": "no\nURL\x1b[2J", "timestamp": now}
    at.error_lines = lambda *_: [("worker", json.dumps(said))]
    (shown,) = at.run("logs", "--errors", "--stack", "mine").out.splitlines()
    assert "no URL\N{REPLACEMENT CHARACTER}[2J: SettingsError" in shown


def test_a_function_that_does_not_start_in_the_emulator_is_named_by_the_emulator_s_log() -> None:
    said = "2026-11-29 14:20:54 ERROR [lambda] Warm worker execution error for a2a-serverless-WorkerFunction-91: no URL"
    (one,) = count_errors([("emulator", said), ("emulator", FAILED)])
    assert (one.function, one.text) == ("worker", "no URL")


def test_the_errors_of_a_deployed_stack_are_shown_with_their_cause_and_place() -> None:
    at = shell()
    now = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    asked: list[tuple[StackName, int]] = []

    def lines(stack: StackName, seconds: int) -> list[tuple[str, str]]:
        asked.append((stack, seconds))
        return [("worker", FAILED.replace(AT.format(3), now)), ("worker", FAILED.replace("2026", "2025"))]

    at.error_lines = lines
    done = at.run("logs", "--errors", "--stack", "mine", "--since", "2h")
    assert asked == [(StackName("mine"), 7200)]
    (row,) = done.out.splitlines()
    assert row.split()[:2] == ["worker", "1"]
    assert "agent failed: KeyError, in the step cut, at shop/tailor.py:24 parse" in row
    at.error_lines = lambda *_: []
    assert at.run("logs", "--errors", "--stack", "mine").err == "No function has logged an error since 1h.\n"


def test_the_errors_of_a_deployed_stack_are_found_by_one_query(logs: tuple[Any, Stubber]) -> None:
    client, stubber = logs
    query = f"fields @message, @log | filter {FILTER} | sort @timestamp desc | limit {MOST_LINES}"
    asked = {"logGroupNames": ["/a"], "startTime": 996_400, "endTime": 1_000_060, "queryString": query}
    stubber.add_response("start_query", {"queryId": "q"}, asked)
    groups = ["123:my-Logs-WorkerLogs-1X", "123:other"]
    rows = [[{"field": "@message", "value": "{}"}, {"field": "@log", "value": group}] for group in groups]
    stubber.add_response("get_query_results", {"status": "Complete", "results": rows}, {"queryId": "q"})
    found = read_errors(client, ["/a"], 3600, now=lambda: 1_000_000, sleep=lambda _: None)
    assert found == [("worker", "{}"), ("123:other", "{}")]
