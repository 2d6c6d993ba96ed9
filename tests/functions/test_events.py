import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.functions.emulated_runtime import Function, running
from tests.observed import check_proxy_answer
from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

EVENTS = Path(__file__).parents[2] / "events"
ANSWERS: dict[str, dict[str, Any]] = {
    "api-agents": {"statusCode": 200},
    "api-card": {"statusCode": 200},
    "api-get-unknown-task": {"statusCode": 200},
    "api-jwks": {"statusCode": 200},
    "api-rest-get-unknown-task": {"statusCode": 404},
    "api-send": {"statusCode": 200},
    "notifier-message": {"batchItemFailures": []},
    "relay-event": {"batchItemFailures": []},
    "rotator-create": {"Status": "SUCCESS"},
    "rotator-schedule": {},
    "sweeper-minute": {},
    "worker-message": {"batchItemFailures": []},
    "worker-invalid-message": {"batchItemFailures": []},
}


@pytest.fixture(scope="module")
def functions(stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator["Functions"]:
    with ExitStack() as cleanup:
        yield Functions(stack, tmp_path_factory, cleanup)


class Functions:
    """Starts each function when it is first asked for, and stops all at the end."""

    def __init__(self, stack: LocalStack, scratch: pytest.TempPathFactory, cleanup: ExitStack) -> None:
        self.stack, self.scratch, self.cleanup = stack, scratch, cleanup
        self.running: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        if name not in self.running:
            function = running(self.stack, name, self.scratch.mktemp(name))
            self.running[name] = self.cleanup.enter_context(function)
        return self.running[name]


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_a_function_runs_from_its_zip_alone_and_answers_its_event(functions: Functions, name: str) -> None:
    event = json.loads((EVENTS / f"{name}.json").read_text())
    if "ResponseURL" in event:
        event["ResponseURL"] = f"{functions.stack.deployment.endpoint}/_ministack/health"
    answer = functions[name.partition("-")[0]].invoke(event)
    assert "errorType" not in answer, answer
    assert ANSWERS[name].items() <= answer.items()
    if "statusCode" in answer:
        check_proxy_answer(event, answer)


def test_every_example_event_has_an_expected_answer() -> None:
    assert sorted(path.stem for path in EVENTS.glob("*.json")) == sorted(ANSWERS)
