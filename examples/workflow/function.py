"""A Step Functions workflow that calls an A2A agent and waits without running anything: three Lambda functions.

``start`` sends the message, ``webhook`` continues the workflow when the task has ended, ``read`` reads the result. The
push notification configuration is named after the execution, and the deployment signs that name (claim ``configId``):
so a webhook says which execution to continue. See ``docs/serverless-client.md``.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

import boto3

from a2a_webhook_receiver import outbound, strict_json
from a2a_webhook_receiver.aws_lambda import make_handler
from a2a_webhook_receiver.receive import Claimed, Receiver
from a2a_webhook_receiver.settings import BadSettings, Settings, read_settings
from a2a_webhook_receiver.wiring import build_receiver

ENDED = frozenset({"completed", "failed", "canceled", "rejected"})
NEEDS_SOMEBODY = frozenset({"input-required", "auth-required"})
KEPT_SECONDS = 7 * 86_400
SEND_SECONDS, SEND_BYTES = 20.0, 8 * 1024 * 1024
RESULT_CHARACTERS = 50_000

Event = Mapping[str, Any]


class NewerToken(Exception):
    """The state was started once more meanwhile. The sender's next attempt continues the newer one."""


@dataclass(frozen=True)
class Workflow:
    """``agent_url`` is the agent's JSON-RPC endpoint; ``table`` is the receiver's own (keys ``pk`` and ``sk``)."""

    receiver: Receiver
    settings: Settings
    agent_url: str
    dynamodb: Any
    states: Any
    table: str

    def start(self, event: Event) -> None:
        """Sends ``event["text"]`` for the execution ``event["execution"]``. Idempotent: Step Functions may retry it.

        The task token is stored first: the webhook can be faster than the answer.
        """
        execution: str = event["execution"]
        expires = self.receiver.clock() // 1000 + KEPT_SECONDS
        texts = {"pk": f"FLOW#{execution}", "sk": "TOKEN", "taskToken": event["taskToken"]}
        item: dict[str, Any] = {name: {"S": value} for name, value in texts.items()}
        self.dynamodb.put_item(TableName=self.table, Item=item | {"expires": {"N": str(expires)}})
        task = self._send(execution, event["text"])
        state = str(task["status"]["state"]).removeprefix("TASK_STATE_").lower().replace("_", "-")
        if state in ENDED | NEEDS_SOMEBODY:  # sent before: its webhook may have come before this task token
            self._go_on(execution, task["id"], state)

    def handle(self, claimed: Claimed) -> None:
        """Continues the execution of a verified notification. If it raises, the sender's next attempt does."""
        notification = claimed.notification
        state = notification.content.state
        if state in ENDED | NEEDS_SOMEBODY:
            self._go_on(notification.subject.config_id, notification.subject.task_id, str(state))

    def read(self, event: Event) -> dict[str, str]:
        """The result of the task ``event["taskId"]``: its texts, cut at 50,000 characters (a state may hold 256 KB)."""
        task = self.receiver.tasks.fetch(self.agent_url, event["taskId"])
        parts = [part for artifact in task.artifacts for part in artifact.parts if part.kind == "text"]
        return {"taskId": event["taskId"], "text": "".join(str(part.value) for part in parts)[:RESULT_CHARACTERS]}

    def _send(self, execution: str, text: str) -> dict[str, Any]:
        """Sends the message. One with the same id is not sent twice: the answer is then the task that there is."""
        message_id = sha256(execution.encode()).hexdigest()
        message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
        webhook = {"id": execution, "url": self.receiver.audience, "token": self.settings.webhook_token}
        configuration = {"returnImmediately": True, "taskPushNotificationConfig": webhook}
        params = {"message": message, "configuration": configuration}
        request = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
        headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
        if self.settings.agent_authorization:
            headers["Authorization"] = self.settings.agent_authorization
        body = json.dumps(request).encode()
        answer = outbound.post(self.agent_url, body, headers, seconds=SEND_SECONDS, limit=SEND_BYTES)
        result: Any = strict_json.parse_object(answer).get("result")
        if not isinstance(result, dict):
            raise RuntimeError("the agent answered with an error")  # noqa: TRY004 - not a wrong type of ours
        task: Any = result.get("task")
        if not isinstance(task, dict):
            raise RuntimeError("the agent answered without a task")  # noqa: TRY004 - not a wrong type of ours
        return task

    def _go_on(self, execution: str, task_id: str, state: str) -> None:
        key = {"pk": {"S": f"FLOW#{execution}"}, "sk": {"S": "TOKEN"}}
        found = self.dynamodb.get_item(TableName=self.table, Key=key, ConsistentRead=True).get("Item")
        if found is None:
            return  # it went on before
        token = found["taskToken"]["S"]
        self._tell(token, task_id, state)
        try:
            self.dynamodb.delete_item(
                TableName=self.table,
                Key=key,
                ConditionExpression="attribute_not_exists(pk) OR taskToken = :told",
                ExpressionAttributeValues={":told": {"S": token}},
            )
        except self.dynamodb.exceptions.ConditionalCheckFailedException as error:
            raise NewerToken from error

    def _tell(self, token: str, task_id: str, state: str) -> None:
        """Tells Step Functions, ids only. An execution that waits no longer (stopped, told before) is left alone."""
        over = (self.states.exceptions.TaskTimedOut, self.states.exceptions.TaskDoesNotExist)
        try:
            if state == "completed":
                output = json.dumps({"taskId": task_id, "state": state})
                self.states.send_task_success(taskToken=token, output=output)
            else:
                self.states.send_task_failure(taskToken=token, error=f"A2A.{state}", cause=task_id)
        except over:
            pass


def make_workflow(environment: Mapping[str, str], dynamodb: Any, states: Any) -> Workflow:  # noqa: ANN401 - clients
    """The workflow that the variables describe (those of the receiver, and ``AGENT_URL``). Raises BadSettings."""
    settings = read_settings(environment)
    # Without the token no webhook is accepted; ``read`` sends the API key to agents under the issuer only.
    if not settings.webhook_token or not environment["AGENT_URL"].startswith(f"{settings.issuer.rstrip('/')}/"):
        raise BadSettings("WEBHOOK_TOKEN must be set, and AGENT_URL must be under ISSUER")
    receiver = build_receiver(settings)
    return Workflow(receiver, settings, environment["AGENT_URL"], dynamodb, states, environment["REPLAY_TABLE"])


@cache
def _workflow() -> Workflow:
    """With ``WEBHOOK_TOKEN`` and ``AGENT_AUTHORIZATION`` from the secret that ``SECRET_ARN`` names."""
    secret = boto3.client("secretsmanager").get_secret_value(SecretId=os.environ["SECRET_ARN"])["SecretString"]
    environment = {**os.environ, **json.loads(secret)}
    return make_workflow(environment, boto3.client("dynamodb"), boto3.client("stepfunctions"))


def start(event: Event, _context: object) -> None:
    """The Lambda entry point of the state that calls the agent."""
    _workflow().start(event)


def read(event: Event, _context: object) -> dict[str, str]:
    """The Lambda entry point of the state after it."""
    return _workflow().read(event)


webhook = make_handler(
    lambda claimed: _workflow().handle(claimed), lambda: (_workflow().receiver, _workflow().settings)
)
