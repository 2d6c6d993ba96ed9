import json
import subprocess
import sys
from pathlib import Path

import pytest

from a2a_serverless_tools.stack import logs, sam
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import Paths
from tests.stack.local import LocalStack


def test_logs_of_a_server_are_read_from_its_file(tmp_path: Path) -> None:
    here = Paths(tmp_path, tmp_path)
    here.log("receiver").write_text("one\ntwo\n")
    assert logs.read(here, "receiver") == ["one", "two"]


def test_a_server_that_never_ran_has_said_nothing(tmp_path: Path) -> None:
    assert logs.read(Paths(tmp_path, tmp_path), "server") == []


@pytest.mark.enable_socket
@pytest.mark.integration
def test_logs_of_a_function_are_read_from_the_emulator(stack: LocalStack) -> None:
    assert any("RequestId" in line for line in logs.read(stack.paths, "rotator"))


@pytest.mark.enable_socket
@pytest.mark.integration
def test_a_function_s_log_has_all_that_a_line_says_beside_its_message(stack: LocalStack) -> None:
    name = stack.deployment.outputs["WorkerFunctionName"]
    event = {"Records": [{"messageId": "m", "body": "no message of ours"}]}
    answer = sam.client("lambda", stack.deployment.endpoint).invoke(FunctionName=name, Payload=json.dumps(event))
    assert json.load(answer["Payload"]) == {"batchItemFailures": []}
    said = [json.loads(line) for line in logs.read(stack.paths, "worker") if "discarded" in line]
    assert (said[-1]["level"], said[-1]["message_id"], said[-1]["reason"]) == ("WARNING", "m", "JSONDecodeError")


def test_a_functions_log_needs_a_running_emulator(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="emulator: is not running"):
        logs.read(Paths(tmp_path, tmp_path), "worker")


def test_logs_shows_the_lines_of_dev_if_only_dev_runs(tmp_path: Path) -> None:
    here = Paths(tmp_path, tmp_path)
    with pytest.raises(StackError, match="emulator: is not running"):
        logs.read_all(here)
    here.dev.log("dev").write_text('{"message": "cut"}\n')
    assert logs.read_all(here) == {"dev": logs.read(here, "dev")} == {"dev": ['{"message": "cut"}']}


def test_the_command_line_says_in_a_sentence_what_a_person_can_mend() -> None:
    program = Path(sys.executable).with_name("a2a-serverless")
    done = subprocess.run([program, "logs", "nobody"], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 1
    assert done.stderr.startswith("logs: there is no 'nobody'\n  what helps: one of api, worker")
