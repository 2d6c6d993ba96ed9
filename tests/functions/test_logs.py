"""What a function's log holds under Lambda's own runtime client, whose format is JSON as in the template."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from a2a_serverless_tools.stack import sam
from tests.functions.emulated_runtime import running
from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

WORD = "c4n4ry"
LAMBDA = {"AWS_LAMBDA_LOG_FORMAT": "JSON", "AWS_LAMBDA_LOG_LEVEL": "INFO"}
INVALID_MESSAGE = {"Records": [{"messageId": "m", "body": WORD, "eventSource": "aws:sqs"}]}


def logged(
    stack: LocalStack, name: str, scratch: Path, event: Mapping[str, Any], **more: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The answer of a function, and the lines of its log."""
    log = stack.paths.log(f"function-{name}")
    with running(stack, name, scratch, more=LAMBDA | more) as function:
        answer = function.invoke(event)
    text = log.read_text()
    assert WORD not in text.replace(json.dumps(answer), "")
    return answer, [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def service_of(stack: LocalStack) -> str:
    return sam.function_environment(stack.deployment, "worker")["POWERTOOLS_SERVICE_NAME"]


def test_a_line_is_there_once_with_its_level_and_its_invocation(stack: LocalStack, tmp_path: Path) -> None:
    answer, lines = logged(stack, "worker", tmp_path, INVALID_MESSAGE)
    assert answer == {"batchItemFailures": []}
    (line,) = [line for line in lines if "discarded" in str(line)]
    assert (line["level"], line["message_id"], line["reason"]) == ("WARNING", "m", "JSONDecodeError")
    assert datetime.fromisoformat(line["timestamp"]).tzinfo
    assert line["service"] == service_of(stack)
    assert len(line["function_request_id"]) == 36


def test_a_metric_is_a_line_by_itself(stack: LocalStack, tmp_path: Path) -> None:
    _, lines = logged(stack, "notifier", tmp_path, INVALID_MESSAGE, OBSERVABILITY="full")
    (line,) = [line for line in lines if "ColdStart" in line]
    assert line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service"], ["service", "function"]]
    assert (line["service"], line["function"], line["ColdStart"]) == (service_of(stack), "notifier", [1.0])


def test_rule_10_a_failed_invocation_shows_the_kind_of_its_error_only(stack: LocalStack, tmp_path: Path) -> None:
    answer, lines = logged(stack, "sweeper", tmp_path, {}, TABLE_NAME=WORD)
    assert (answer["errorType"], answer["errorMessage"].split()[1:]) == ("InvocationFailed", ["see", "the", "log"])
    (line,) = [line for line in lines if line.get("message") == "invocation failed"]
    assert line["error"].startswith("ResourceNotFoundException")
