"""An operator at night: a fault is planted in the local stack, and the commands of docs/operate.md name its cause.

``docs/operate.md#from-an-alarm-to-its-cause`` lists these faults; ``test_the_page_lists_each_fault`` compares.
"""

from __future__ import annotations

import json
import os
import re
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.adapters.clock import SystemClock
from a2a_serverless.store import keys
from a2a_serverless_tools.stack import processes, sam
from faulty_proxy import FaultyProxy, Rates, serving
from projects import agent_file, make_project
from tests.docs.documents import ROOT
from tests.functions.template import resources
from tests.journeys.shell import Shell
from tests.observed import asked
from tests.stack.local import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration, pytest.mark.xdist_group("test_alarm_to_cause")]

LOOPBACK: Final = "127.0.0.1"
LONG_AGO_MS: Final = 20 * 60_000
SOURCE: Final = '''"""Agents, each with a fault of its own."""

import asyncio

from a2a_serverless import Schedule, Skill, TaskContext, agent

SKILL = Skill("work", "Work", "Works.", ("test",))
EACH_MINUTE = Schedule("minutely", "* * * * ? *", "bad")


@agent(id="healthy", name="Healthy", description="Echoes.", skills=[SKILL])
async def healthy(task: TaskContext) -> str:
    return await task.step("echo", task.text)


@agent(id="parsing", name="Parsing", description="Raises for one input.", skills=[SKILL])
async def parsing(task: TaskContext) -> str:
    return await task.step("parse", parse, task.text())


@agent(id="nightly", name="Nightly", description="Starts by itself.", skills=[SKILL], schedules=[EACH_MINUTE])
async def nightly(task: TaskContext) -> str:
    return await task.step("parse", parse, task.text())


@agent(id="slow", name="Slow", description="Has a long step.", skills=[SKILL])
async def slow(task: TaskContext) -> str:
    await task.step("sleep", asyncio.sleep, 600)
    return "done"


@agent(id="calling", name="Calling", description="Calls another agent.", skills=[SKILL])
async def calling(task: TaskContext) -> str:
    await task.call("ask", "peer", "hello")
    return "done"


async def parse(text: str) -> str:
    return {"good": "fine"}[text]
'''
AGENTS: Final = ("healthy", "parsing", "nightly", "slow", "calling")


class Moody(BaseHTTPRequestHandler):
    """A receiver that answers the challenge, and each event with the status in its path."""

    def do_POST(self) -> None:
        challenge = json.loads(self.rfile.read(int(self.headers["Content-Length"]))).get("challenge")
        body = json.dumps({"challenge": challenge}).encode()
        self.send_response(200 if challenge else int(self.path.strip("/")))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@dataclass
class Night:
    """A stack on this machine, and an operator who knows only the page."""

    shell: Shell

    @cached_property
    def deployment(self) -> sam.Deployment:
        return sam.outputs(f"http://{LOOPBACK}:{self.shell.environment['A2A_EMULATOR_PORT']}")

    def client(self, service: str) -> Any:
        return sam.client(service, self.deployment.endpoint)

    # ---- What the page says to type

    def errors(self, function: str) -> list[dict[str, Any]]:
        listed = self.shell.json("logs", "--errors")["errors"]
        return [one for one in listed if one["function"] == function]

    def named(self, function: str, **cause: str) -> dict[str, Any]:
        """The error of the function that has these words, as soon as the command lists it."""

        def match() -> list[dict[str, Any]]:
            return [one for one in self.errors(function) if all(word in one[field] for field, word in cause.items())]

        return dict(eventually(match)[0])

    def shown(self, task: str) -> dict[str, Any]:
        return dict(self.shell.json("tasks", "show", f"local/anybody/{task}", "--local"))

    def stuck(self) -> dict[str, Any]:
        listed = self.shell.json("tasks", "stuck", "--local")["tasks"]
        return {one["task"].rpartition("/")[2]: one["reasons"][0] for one in listed}

    def queues(self) -> dict[str, Any]:
        return {one["name"]: one for one in self.shell.json("queues", "--local")["queues"]}

    def attempts(self, task: str) -> list[dict[str, Any]]:
        return list(self.shell.json("push", "show", f"local/anybody/{task}", "hook", "--local")["attempts"])

    # ---- What callers do, and faults

    def send(self, agent: str, text: str = "good", webhook: str = "") -> str:
        message = {"messageId": os.urandom(8).hex(), "role": "ROLE_USER", "parts": [{"text": text}]}
        configuration: dict[str, Any] = {"returnImmediately": True}
        if webhook:
            configuration["taskPushNotificationConfig"] = {"id": "hook", "url": webhook}
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage"}
        answer: Any = asked(
            self.shell.environment["A2A_URL"],
            agent,
            "POST",
            {**call, "params": {"message": message, "configuration": configuration}},
        )
        return str(answer["result"]["task"]["id"])

    @contextmanager
    def changed(self, function: str, timeout: int = 0, **variables: str) -> Iterator[None]:
        """The function has these variables and this timeout while the block lasts."""
        client, name = self.client("lambda"), self.deployment.outputs[f"{function}FunctionName"]
        before = client.get_function_configuration(FunctionName=name)
        own = before["Environment"]["Variables"]
        client.update_function_configuration(
            FunctionName=name,
            Environment={"Variables": own | variables},
            Timeout=timeout or before["Timeout"],
        )
        try:
            yield
        finally:
            client.update_function_configuration(
                FunctionName=name, Environment={"Variables": own}, Timeout=before["Timeout"]
            )

    @contextmanager
    def without_worker(self) -> Iterator[None]:
        """No function takes work: as with `WorkerService` and no container."""
        client, name = self.client("lambda"), self.deployment.outputs["WorkerFunctionName"]
        (mapping,) = client.list_event_source_mappings(FunctionName=name)["EventSourceMappings"]
        client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
        try:
            yield
        finally:
            client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=True)

    def grow_old(self, task: str) -> None:
        """The task was sent long ago, and the sweeper has enqueued it in vain since."""
        long_ago = SystemClock().now() - LONG_AGO_MS
        self.client("dynamodb").update_item(
            TableName=self.deployment.outputs["TableName"],
            Key={"pk": {"S": f"{keys.TASKS}local/anybody/{task}"}, "sk": {"S": keys.HEAD}},
            UpdateExpression="SET due_at = :due, status_at = :long_ago, sweeps_in_a_row = :sweeps",
            ExpressionAttributeValues={
                ":due": {"S": keys.moment(long_ago)},
                ":long_ago": {"N": str(long_ago)},
                ":sweeps": {"N": "9"},
            },
        )

    def sweep(self) -> None:
        self.client("lambda").invoke(FunctionName=self.deployment.outputs["SweeperFunctionName"], Payload=b"{}")

    def measured(self, function: str, metric: str) -> list[float]:
        """The values of a metric that a function has written to its log, for CloudWatch."""
        lines = self.shell.json("logs", function)[function]
        entries = [json.loads(line) for line in lines if line.startswith("{")]
        metrics = [entry[metric] for entry in entries if "_aws" in entry and metric in entry]
        return [value for values in metrics for value in values]


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    file = agent_file(make_project("alarm-to-cause"))
    file.write_text(SOURCE)
    project = file.parent.parent
    settings = project / "pyproject.toml"
    package = file.parent.name
    agents = json.dumps([f"{package}.{file.stem}:{name}" for name in AGENTS])
    settings.write_text(re.sub(r"^agents = .*$", f"agents = {agents}", settings.read_text(), flags=re.MULTILINE))
    ports = {f"A2A_{part}_PORT": str(processes.claim_port(part, 0)) for part in ("EMULATOR", "API", "RECEIVER")}
    own = {**ports, "A2A_STATE": str(tmp_path_factory.mktemp("state")), "NO_COLOR": "1"}
    own["A2A_URL"] = f"http://{LOOPBACK}:{ports['A2A_API_PORT']}"
    shell = Shell(project, {**os.environ, **own})
    shell.json("up")
    try:
        yield Night(shell)
    finally:
        shell.run("down")


@pytest.fixture(scope="module")
def receiver() -> Iterator[str]:
    with ThreadingHTTPServer((LOOPBACK, 0), Moody) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{LOOPBACK}:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_a_worker_that_cannot_start_is_named_with_its_error(night: Night) -> None:
    with night.changed("Worker", AGENTS_FILE="/nowhere/agents.json"):
        task = night.send("healthy")
        night.named("worker", text="agents.json is missing")
        night.grow_old(task)
        assert night.stuck()[task]["kind"] == "overdue"
        night.sweep()
        alarm = resources("AWS::CloudWatch::Alarm")["OldestDueTaskAlarm"]
        assert max(night.measured("sweeper", alarm["MetricName"])) > alarm["Threshold"]


def test_an_input_that_makes_an_agent_raise_is_named_with_its_line(night: Night) -> None:
    task = night.send("parsing", "bad")
    eventually(lambda: night.shown(task)["state"] == "TASK_STATE_FAILED")
    error = night.named("worker", agent="parsing")
    assert (error["text"], error["error"], error["task"]) == ("agent failed", "KeyError", task)
    assert re.fullmatch(r"alarm_to_cause/tailor\.py:\d+ parse", error["place"])


def test_a_schedule_whose_agent_fails_each_time_is_named(night: Night) -> None:
    error = night.named("worker", agent="nightly")
    assert (error["text"], error["error"]) == ("agent failed", "KeyError")


def test_a_peer_that_never_answers_is_named(night: Night) -> None:
    with socket.create_server((LOOPBACK, 0)) as silent:
        port = silent.getsockname()[1]
        with night.changed("Worker", AGENT_URLS=f"peer=http://{LOOPBACK}:{port}"):
            task = night.send("calling")
            eventually(lambda: night.shown(task)["reasons"][0]["kind"] == "call")
            error = night.named("worker", text="agent unavailable")
            assert "peer" in error["agent"]
            assert "AgentUnavailable" in error["error"]
            night.shell.run("cancel", "calling", task)


def test_a_step_that_is_longer_than_its_function_may_run_is_named(night: Night) -> None:
    with night.changed("Worker", timeout=25):
        task = night.send("slow")
        eventually(lambda: night.shown(task)["state"] == "TASK_STATE_FAILED")
        error = night.named("worker", agent="slow")
    assert (error["text"], error["error"], error["task"]) == ("task failed", "StepTimedOut", task)
    assert error["step"] == "sleep"


@pytest.mark.parametrize("status", [500, 401])
def test_a_receiver_that_refuses_events_is_named_with_its_status(night: Night, receiver: str, status: int) -> None:
    task = night.send("healthy", webhook=f"{receiver}{status}")
    attempts = eventually(lambda: [one for one in night.attempts(task) if one["eventNumber"] == 1])
    assert attempts[0]["status"] == status


def test_a_key_ring_that_is_missing_is_named(night: Night, receiver: str) -> None:
    client, secret = night.client("secretsmanager"), night.deployment.outputs["KeyRingSecretId"]
    client.delete_secret(SecretId=secret, RecoveryWindowInDays=7)
    try:
        with night.changed("Notifier", RESTARTED="yes"):  # a notifier keeps its keys for some minutes
            night.send("healthy", webhook=f"{receiver}200")
            assert "(GetSecretValue: " in night.named("notifier", text="queue message failed")["error"]
    finally:
        client.restore_secret(SecretId=secret)


def test_a_key_ring_that_cannot_be_read_is_named_with_what_restores_it(night: Night, receiver: str) -> None:
    client, secret = night.client("secretsmanager"), night.deployment.outputs["KeyRingSecretId"]
    ring = client.get_secret_value(SecretId=secret)["SecretString"]
    client.put_secret_value(SecretId=secret, SecretString="{garbage")
    try:
        with night.changed("Notifier", RESTARTED="again"):
            night.send("healthy", webhook=f"{receiver}200")
            night.named("notifier", text="queue message failed", error="UnreadableKeyRing")
            shown = night.shell.run("keys", "show", "--local")
            assert "aws secretsmanager put-secret-value" in shown.stderr
    finally:
        client.put_secret_value(SecretId=secret, SecretString=ring)


def test_a_table_that_throttles_is_named_with_the_call(night: Night) -> None:
    emulator = int(night.deployment.endpoint.rpartition(":")[2])
    proxy = FaultyProxy(emulator, Random(1), Rates(throttled=1.0))  # noqa: S311 - a seed, not a secret
    port = processes.claim_port("proxy", 0)
    with serving(proxy, port), night.changed("Worker", AWS_ENDPOINT_URL=f"http://{LOOPBACK}:{port}"):
        night.send("healthy")
        night.named("worker", error="ProvisionedThroughputExceeded")


def test_work_that_nobody_takes_is_named(night: Night) -> None:
    with night.without_worker():
        task = night.send("healthy")
        night.grow_old(task)
        assert night.stuck()[task]["kind"] == "overdue"
        assert night.queues()["work"]["waiting"] > 0
    eventually(lambda: night.shown(task)["state"] == "TASK_STATE_COMPLETED")


def test_a_message_that_was_given_up_names_its_runbook(night: Night) -> None:
    url = night.deployment.outputs["WorkDeadLettersUrl"]
    night.client("sqs").send_message(QueueUrl=url, MessageBody="{}")
    assert "WorkDeadLettersAlarm" in night.shell.run("queues", "--local").stderr
    night.client("sqs").purge_queue(QueueUrl=url)
    assert night.queues()["work, failed"]["waiting"] == 0


def test_the_page_lists_each_fault() -> None:
    page = (ROOT / "docs/operate.md").read_text()
    section = page.partition("## From an alarm to its cause\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!fault|---)", section, re.MULTILINE)
    assert len(rows) >= len([name for name in globals() if name.startswith("test_") and "_named" in name])
    assert {*re.findall(r"\w+Alarm\b", section)} <= {*resources("AWS::CloudWatch::Alarm"), "DeliveryFailuresAlarm"}
