"""``examples/workflow``: a state machine waits for an agent's task, and a real delivery continues it."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from moto import mock_aws

import a2a_webhook_receiver
from a2a_serverless.domain.model import Principal
from a2a_serverless_tools.stack import sam
from a2a_serverless_tools.stack.emulator import start_emulator
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import CHECKOUT, Paths
from a2a_serverless_tools.stack.processes import stop
from a2a_webhook_receiver.aws_lambda import make_handler
from a2a_webhook_receiver.settings import BadSettings
from a2a_webhook_receiver.testing import AUDIENCE, ISSUER, StubIssuer, lambda_event
from tests.conformance.live import serving
from tests.docs.documents import ROOT
from tests.echo import Writer
from tests.stack.local import eventually
from tests.webhook_receiver.test_mobile import load
from tests.webhook_receiver.test_real_deliveries import answering
from tests.webhook_receiver.test_stores import make_table

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = ROOT / "examples/workflow"
function = load(FOLDER / "function.py")
CALLER = "a2a_key-of-the-workflow"
TOKEN = "token-of-the-workflow-1"


class TaskTimedOut(Exception):
    """The execution waits no longer."""


@dataclass
class States:
    """Step Functions as far as task tokens go: ``waiting`` are known, the rest has timed out."""

    waiting: set[str]
    told: list[tuple[str, Any]] = field(default_factory=list)
    exceptions: Any = field(
        default_factory=lambda: SimpleNamespace(TaskTimedOut=TaskTimedOut, TaskDoesNotExist=KeyError)
    )

    def send_task_success(self, *, taskToken: str, output: str) -> None:  # noqa: N803 - AWS's name
        self._tell(taskToken, json.loads(output))

    def send_task_failure(self, *, taskToken: str, error: str, cause: str) -> None:  # noqa: N803 - AWS's name
        self._tell(taskToken, (error, cause))

    def _tell(self, token: str, what: Any) -> None:
        if token not in self.waiting:
            raise TaskTimedOut
        self.waiting.remove(token)
        self.told.append((token, what))


@dataclass
class Setting:
    """The functions over DynamoDB of moto, an issuer, and an agent that answers ``task``."""

    issuer: StubIssuer
    states: States
    workflow: Any
    sent: list[dict[str, Any]]
    task: dict[str, Any]
    answer: dict[str, Any]

    def webhook(self, state: str, number: int = 1) -> int:
        handler = make_handler(self.workflow.handle, self.issuer.build)
        request = self.issuer.notification("task-1", state, number=number)
        status: int = handler(lambda_event(request), None)["statusCode"]
        return status

    def start(self, attempt: int = 1) -> None:
        # The stub issuer signs notifications of the configuration "config-1".
        self.workflow.start({"execution": "config-1", "text": "The sea", "taskToken": f"t-{attempt}"})


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made-up")
    issuer, sent = StubIssuer(token=TOKEN, AGENT_AUTHORIZATION="Bearer x"), []
    task = {"id": "task-1", "status": {"state": "TASK_STATE_SUBMITTED"}}
    answer: dict[str, Any] = {"task": task}

    def agent(_path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        sent.append({**json.loads(body), "authorization": headers["Authorization"]})
        return 200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": answer}).encode()

    with mock_aws(), answering(agent) as port:
        states, url = States({"t-1"}), f"http://127.0.0.1:{port}/echo"
        workflow = function.Workflow(issuer.receiver, issuer.settings, url, make_table(), states, "receiver")
        yield Setting(issuer, states, workflow, sent, task, answer)


pytestmark = pytest.mark.enable_socket


def test_the_message_names_the_execution_and_a_second_one_is_the_same(setting: Setting) -> None:
    setting.start()
    setting.start(2)
    first, second = (one["params"] for one in setting.sent)
    assert first == second
    assert first["configuration"] == {
        "returnImmediately": True,
        "taskPushNotificationConfig": {"id": "config-1", "url": setting.issuer.settings.audience, "token": TOKEN},
    }
    assert setting.sent[0]["authorization"] == "Bearer x"


def test_the_execution_goes_on_when_the_task_has_ended_and_only_then(setting: Setting) -> None:
    setting.start()
    assert setting.webhook("working") == 200
    assert setting.states.told == []
    assert setting.webhook("completed", 2) == 200
    assert setting.states.told == [("t-1", {"taskId": "task-1", "state": "completed"})]
    assert setting.webhook("completed", 3) == 200


@pytest.mark.parametrize("state", ["failed", "rejected", "canceled", "input-required", "auth-required"])
def test_a_task_that_did_not_succeed_fails_the_state_by_its_name(setting: Setting, state: str) -> None:
    setting.start()
    assert setting.webhook(state) == 200
    assert setting.states.told == [("t-1", (f"A2A.{state}", "task-1"))]


def test_a_webhook_of_no_execution_and_one_that_waits_no_longer_are_settled(setting: Setting) -> None:
    assert setting.webhook("completed") == 200
    setting.states.waiting.clear()
    setting.start()
    assert setting.webhook("completed", 2) == 200
    assert setting.states.told == []


@pytest.mark.parametrize("state", sorted(function.ENDED | function.NEEDS_SOMEBODY))
def test_a_state_that_is_started_again_after_its_webhook_came_goes_on_at_once(setting: Setting, state: str) -> None:
    setting.states.waiting = {"t-2"}
    setting.start()
    assert setting.webhook(state) == 200
    setting.task["status"]["state"] = f"TASK_STATE_{state.upper().replace('-', '_')}"
    setting.start(2)
    output = {"taskId": "task-1", "state": state}
    assert setting.states.told == [("t-2", output if state == "completed" else (f"A2A.{state}", "task-1"))]


def test_a_state_that_is_started_again_while_its_webhook_is_handled_is_told_by_the_next_attempt(
    setting: Setting,
) -> None:
    setting.start()
    tell = setting.states.send_task_success

    def started_again(**told: Any) -> None:
        setting.states.send_task_success = tell  # type: ignore[method-assign]
        setting.states.waiting = {"t-2"}
        setting.start(2)
        tell(**told)

    setting.states.send_task_success = started_again  # type: ignore[method-assign]
    assert setting.webhook("completed") == 500
    assert setting.webhook("completed") == 200
    assert setting.states.told == [("t-2", {"taskId": "task-1", "state": "completed"})]


def test_an_agent_that_answers_without_a_task_is_named(setting: Setting) -> None:
    setting.answer.clear()
    setting.answer["message"] = {"messageId": "m-1", "role": "ROLE_AGENT", "parts": [{"text": "No."}]}
    with pytest.raises(RuntimeError, match="without a task"):
        setting.start()


def attempts(state: str, error: str) -> int:
    """How often the definition retries a state after an error: the first retrier that names it counts."""
    retriers = json.loads((FOLDER / "workflow.asl.json").read_text())["States"][state]["Retry"]
    named: list[int] = [one["MaxAttempts"] for one in retriers if {error, "States.ALL"} & {*one["ErrorEquals"]}]
    return named[0] if named else 0


@pytest.mark.parametrize("error", ["Unreachable", "Sandbox.Timedout", "Lambda.Unknown", "Lambda.SdkClientException"])
def test_a_message_that_may_not_have_been_sent_is_sent_again(error: str) -> None:
    assert attempts("CallAgent", error) > 1


def test_an_end_that_another_message_would_not_change_is_not_retried() -> None:
    told = [f"A2A.{state}" for state in (function.ENDED | function.NEEDS_SOMEBODY) - {"completed"}]
    assert [attempts("CallAgent", error) for error in (*told, "States.Timeout", "RuntimeError")] == [0] * 7


@pytest.mark.parametrize(
    "wrong", [{"WEBHOOK_TOKEN": ""}, {"AGENT_URL": "https://agents.example.org/echo"}, {"AGENT_URL": ISSUER}]
)
def test_a_workflow_that_could_only_wait_in_vain_is_not_made(wrong: dict[str, str]) -> None:
    right = {"ISSUER": ISSUER, "AUDIENCE": AUDIENCE, "WEBHOOK_TOKEN": TOKEN, "REPLAY_DB": ":memory:"}
    right |= {"AGENT_URL": f"{ISSUER}/echo"}
    with pytest.raises(BadSettings, match=r"WEBHOOK_TOKEN .* AGENT_URL"):
        function.make_workflow(right | wrong, None, None)


class Emulated:
    """The three functions and the state machine of the template, in the emulator."""

    def __init__(self, endpoint: str, issuer: str, audience: str) -> None:
        services = ("dynamodb", "lambda", "secretsmanager", "stepfunctions")
        self.clients = {name: sam.client(name, endpoint) for name in services}
        self.has_ended = Event()
        self._make_table()
        secret = json.dumps({"AGENT_AUTHORIZATION": f"Bearer {CALLER}", "WEBHOOK_TOKEN": TOKEN})
        arn = self.clients["secretsmanager"].create_secret(Name="workflow", SecretString=secret)["ARN"]
        variables = {"ISSUER": issuer, "AUDIENCE": audience, "AGENT_URL": f"{issuer}/echo"}
        variables |= {"REPLAY_TABLE": "memory", "SECRET_ARN": arn}
        code = packed()
        made = {name: self._make_function(name, code, variables) for name in ("start", "read", "webhook")}
        definition = (FOLDER / "workflow.asl.json").read_text()
        for name, value in {"Partition": "aws", "Start": made["start"], "Read": made["read"]}.items():
            definition = definition.replace(f"${{{name}}}", value)
        states = self.clients["stepfunctions"]
        role = "arn:aws:iam::000000000000:role/workflow"
        self.machine = states.create_state_machine(name="flow", definition=definition, roleArn=role)["stateMachineArn"]

    def _make_table(self) -> None:
        self.clients["dynamodb"].create_table(
            TableName="memory",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            BillingMode="PAY_PER_REQUEST",
        )

    def _make_function(self, name: str, code: bytes, variables: dict[str, str]) -> str:
        made = self.clients["lambda"].create_function(
            FunctionName=name,
            Runtime="python3.13",
            Handler=f"function.{name}",
            Role="arn:aws:iam::000000000000:role/workflow",
            Code={"ZipFile": code},
            Timeout=60,
            Environment={"Variables": variables},
        )
        return str(made["FunctionArn"])

    def invoke_webhook(self, _path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        event = {"httpMethod": "POST", "headers": headers, "body": body.decode()}
        if b"COMPLETED" in body:
            self.has_ended.set()
        answer = json.load(self.clients["lambda"].invoke(FunctionName="webhook", Payload=json.dumps(event))["Payload"])
        return answer["statusCode"], answer["body"].encode()

    def run(self, text: str) -> dict[str, Any]:
        """Runs an execution to its end."""
        states = self.clients["stepfunctions"]
        started = states.start_execution(stateMachineArn=self.machine, name="flow-1", input=json.dumps({"text": text}))
        assert self.has_ended.wait(60), "no webhook of the end of the task"
        arn = started["executionArn"]
        found: dict[str, Any] = eventually(lambda: ended(states.describe_execution(executionArn=arn)))
        return found


def ended(execution: dict[str, Any]) -> dict[str, Any] | None:
    return None if execution["status"] == "RUNNING" else execution


def packed() -> bytes:
    """The function with the packages that the emulator's environment has not."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.write(FOLDER / "function.py", "function.py")
        for package in (a2a_webhook_receiver, jwt):
            folder = Path(str(package.__file__)).parent
            for path in folder.rglob("*.py"):
                made.write(path, Path(folder.name) / path.relative_to(folder))
    return archive.getvalue()


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[str]:
    paths = Paths(CHECKOUT, tmp_path)
    try:
        process = start_emulator(paths, port=0)
    except (OSError, StackError) as error:
        pytest.skip(f"WORKFLOW NOT TESTED: the emulator does not start: {error}")
    try:
        yield process.url
    finally:
        stop(paths, process)


@pytest.mark.integration
def test_the_state_machine_goes_on_by_a_real_delivery_and_reads_the_result(emulator: str) -> None:
    made: list[Emulated] = []
    callers = {CALLER: Principal("default", "workflow")}

    def receive(path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        return made[0].invoke_webhook(path, headers, body)

    with serving([Writer(seconds=0).agent], callers=callers) as base, answering(receive) as port, ExitStack() as end:
        made.append(Emulated(emulator, base, f"http://127.0.0.1:{port}/webhook"))
        for client in made[0].clients.values():
            end.callback(client.close)
        execution = made[0].run("The sea")
    assert execution["status"] == "SUCCEEDED", execution
    assert json.loads(execution["output"])["text"] == "one: The sea. two: The sea. three: The sea. "
