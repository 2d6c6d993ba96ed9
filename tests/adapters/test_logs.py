"""A log line holds what is declared to be an id or a number, and nothing else, whoever logs what."""

from __future__ import annotations

import ast
import asyncio
import gc
import io
import json
import logging
import sys
from contextlib import contextmanager, redirect_stdout
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import a2a_serverless
from a2a_serverless.adapters.logs import FIELDS, PACKAGE, IdsOnly, PrintedLines, RunFields, start_logging
from a2a_serverless.domain.current_task import note_run
from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.testing import AgentTestHarness
from tests.contexts import Context
from tests.echo import agent_of
from tests.loggers import kept_loggers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aws_lambda_powertools import Logger

    from a2a_serverless.domain.task_context import TaskContext

SOURCES = Path(a2a_serverless.__file__).parent
WORD = "c4n4ry"
# What a laptop's programs log is for the person who started them.
ELSEWHERE = ("client", "testing")


class Started:
    """The log of a process like Lambda's: ``runtime`` is what its own handler on the root has printed."""

    def __init__(self, logger: Logger, printed: io.StringIO, runtime: io.StringIO) -> None:
        self.logger = logger
        self.printed = printed
        self.runtime = runtime

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.printed.getvalue().splitlines()]


@contextmanager
def process(*, root: bool = True, shows_errors: bool = False) -> Iterator[Started]:
    """Loggers as in a new process, and afterwards as they were."""
    printed, runtime = io.StringIO(), io.StringIO()
    with kept_loggers() as loggers:
        for one in loggers:
            one.handlers = []
        if root:
            logging.getLogger().addHandler(logging.StreamHandler(runtime))
        yield Started(start_logging("stack", printed, shows_errors=shows_errors), printed, runtime)


def test_a_line_is_json_with_time_level_message_logger_stack_and_ids() -> None:
    with process() as log:
        logging.getLogger(f"{PACKAGE}.services.x").warning("said", extra={"task": "t", "count": 3})
    (line,) = log.lines
    assert line.pop("timestamp").endswith("+00:00")
    ids = {"service": "stack", "task": "t", "count": 3}
    assert line == {"level": "WARNING", "message": "said", "logger": f"{PACKAGE}.services.x", **ids}


@pytest.mark.parametrize("name", [f"{PACKAGE}.x", "mangum.http", "asyncio"])
def test_rule_10_arguments_other_fields_and_exceptions_are_in_no_log_line(name: str) -> None:
    error = ValueError(WORD)
    with process() as log:
        logger = logging.getLogger(name)
        logger.error("with %s", WORD, extra={"body": WORD})
        logger.error("failed", exc_info=error)
        logger.error(error)
        logger.error({"body": WORD})
        logger.error("one line\n%s", WORD)
        logger.error(f"one line\n{WORD}")  # noqa: G004 - as asyncio does
    said = [line["message"] for line in log.lines]
    assert said == ["with %s", "failed", "ValueError", "dict", "one line", "one line"]
    assert log.lines[1]["error"] == "ValueError"
    assert WORD not in log.printed.getvalue()
    assert log.runtime.getvalue() == "", "Lambda's own handler says none of it again"


def test_rule_10_the_exception_of_a_forgotten_asyncio_task_is_in_no_log_line() -> None:
    async def forget() -> None:
        async def fails() -> None:
            raise ValueError(WORD)

        task = asyncio.create_task(fails())
        await asyncio.wait([task])
        del task
        gc.collect()

    with process() as log:
        asyncio.run(forget())
    assert [line["message"] for line in log.lines] == ["Task exception was never retrieved"]
    assert WORD not in log.printed.getvalue()


def test_log_lines_of_an_author_are_left_to_the_runtime() -> None:
    with process() as log:
        logging.getLogger("my_agent").warning("mine: %s", "this")
    assert (log.printed.getvalue(), log.runtime.getvalue()) == ("", "mine: this\n")


def test_log_lines_of_an_author_are_written_if_no_runtime_has_set_up_the_log() -> None:
    with process(root=False) as log:
        logging.getLogger("my_agent").warning("mine: %s", "this")
        logging.getLogger(PACKAGE).warning("ours")
    assert [line["message"] for line in log.lines] == ["mine: this", "ours"]


def test_a_line_names_its_invocation() -> None:
    with process() as log:
        inject: Any = log.logger.inject_lambda_context
        handler = inject(lambda *_: logging.getLogger(PACKAGE).warning("x"), log_event=False)
        handler({"secret": WORD}, Context())
    (line,) = log.lines
    assert line["function_request_id"] == Context().aws_request_id
    assert not {"function_arn", "function_name", "function_memory_size", "cold_start"} & line.keys()


def test_a_level_that_lambda_is_set_to_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "ERROR")
    with process() as log:
        logging.getLogger(f"{PACKAGE}.x").warning("not wanted")
        logging.getLogger(f"{PACKAGE}.x").error("wanted")
    assert [line["message"] for line in log.lines] == ["wanted"]


def test_an_id_cannot_break_out_of_its_log_line() -> None:
    record = logging.makeLogRecord({"msg": "x", "task": 'a"}\n{"level":"ERROR'})
    assert json.loads(IdsOnly().format(record))["task"] == 'a"}\n{"level":"ERROR'


def fields_of(source: Path) -> Iterator[str]:
    """The names that a module gives to ``extra=``, directly or by a variable of the same function."""
    for function in ast.walk(ast.parse(source.read_text())):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        extras = [
            keyword.value
            for call in ast.walk(function)
            if isinstance(call, ast.Call)
            for keyword in call.keywords
            if keyword.arg == "extra"
        ]
        named = {node.id for extra in extras for node in ast.walk(extra) if isinstance(node, ast.Name)}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(target, ast.Name) and target.id in named for target in targets):
                    extras.append(node.value)
        for extra in extras:
            for node in ast.walk(extra):
                if isinstance(node, ast.Dict):
                    yield from (key.value for key in node.keys if isinstance(key, ast.Constant))  # type: ignore[misc]


def test_every_field_that_our_code_logs_is_declared() -> None:
    sources = [path for path in SOURCES.rglob("*.py") if path.relative_to(SOURCES).parts[0] not in ELSEWHERE]
    logged = {name for path in sources for name in fields_of(path)}
    assert {"task", "outcome", "attempt"} <= logged
    assert logged | safe_error_fields(ValueError()).keys() <= FIELDS


async def run_with_lines(task: TaskContext) -> str:
    logging.getLogger("my_agent").warning("outside of steps")
    print("printed")  # noqa: T201 - as an author does

    def work() -> str:
        logging.getLogger("its.library").warning("in a step")
        print("printed in a step")  # noqa: T201 - as an author does
        logging.getLogger(f"{PACKAGE}.engine.x").warning("ours")
        return "x"

    return await task.step("cut", work)


def test_each_line_of_a_run_carries_agent_task_context_run_and_step() -> None:
    with process(root=False) as log, redirect_stdout(PrintedLines(log.printed)):
        logging.getLogger("my_agent").warning("outside of runs")
        print("printed outside of runs")  # noqa: T201 - as an author does
        harness = AgentTestHarness(agent_of(run_with_lines), replay=False)  # all lines are of one run
        reply = harness.send("go")
    others = [line for line in log.printed.getvalue().splitlines() if not line.startswith("{")]
    assert others == ["printed outside of runs"]
    values = [json.loads(text) for text in log.printed.getvalue().splitlines() if text.startswith("{")]
    lines = {value["message"]: value for value in values}
    ids = {"agent": "echo", "task": reply.task.id, "context": reply.task.context_id, "run": 1}
    steps = {"outside of steps": None, "printed": None, "in a step": "cut", "printed in a step": "cut", "ours": "cut"}
    for message, step in steps.items():
        line = lines[message]
        assert {name: line.get(name) for name in ids} == ids, message
        assert line.get("step") == step, message
    assert not ids.keys() & lines["outside of runs"].keys()


def test_a_line_that_a_run_has_begun_is_not_part_of_the_next_run_of_its_thread() -> None:
    with process(root=False) as log, redirect_stdout(PrintedLines(log.printed)):
        for task, text in (("first", "of alice"), ("second", "of bob\n")):
            own = copy_context()
            own.run(note_run, "a", task, "c", 1)
            own.run(print, text, end="")
    assert [(line["task"], line["message"]) for line in log.lines] == [("first", "of alice"), ("second", "of bob")]


def test_a_handler_that_writes_to_the_stdout_of_a_run_writes_a_bounded_number_of_lines() -> None:
    """As an author's own ``logging.StreamHandler(sys.stdout)`` does."""
    with process(root=False) as log, redirect_stdout(PrintedLines(log.printed)):
        logging.getLogger().addHandler(logging.StreamHandler(sys.stdout))
        own = copy_context()
        own.run(note_run, "a", "t", "c", 1)
        own.run(logging.getLogger("my_agent").warning, "said once")
    assert 2 <= log.printed.getvalue().count("said once") <= 3


def test_a_log_that_is_set_up_again_writes_to_the_real_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    real = io.StringIO()
    with kept_loggers() as loggers:
        for one in loggers:
            one.handlers = []
        monkeypatch.setattr(sys, "stdout", PrintedLines(real))
        logger = start_logging("stack")
        own = copy_context()
        own.run(note_run, "a", "t", "c", 1)
        own.run(logger.warning, "ours")
    assert [json.loads(line)["message"] for line in real.getvalue().splitlines()] == ["ours"]


def test_a_field_that_a_line_has_already_stays() -> None:
    record = logging.makeLogRecord({"msg": "x", "task": "another"})
    own = copy_context()
    own.run(note_run, "a", "t", "c", 2)
    assert own.run(RunFields().filter, record)
    assert vars(record).items() >= {"agent": "a", "task": "another", "context": "c", "run": 2}.items()


@pytest.mark.parametrize("shows", [False, True])
def test_the_traceback_of_an_agent_is_logged_only_if_a_setting_says_that(*, shows: bool) -> None:
    async def fails(_: TaskContext) -> None:
        raise ValueError(WORD)

    with process(shows_errors=shows) as log:
        AgentTestHarness(agent_of(fails)).send("go")
    (line,) = [line for line in log.lines if line["message"] == "agent failed"]
    assert (WORD in log.printed.getvalue()) == shows
    if shows:
        assert line["traceback"].startswith("Traceback (most recent call last):\n")
        assert "raise ValueError(WORD)" in line["traceback"]
