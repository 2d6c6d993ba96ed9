"""A deployment in one process: the functions as the template sets them up, on an account that a cloud plays.

Each function is made by its own ``app.py`` from the environment that the template gives it. API Gateway, the
queues' pollers, the table's stream and the clock are played here; requests of agents to each other, webhooks and models
go over HTTP on this machine.
"""

from __future__ import annotations

import io
import json
import os
import threading
from base64 import b64encode
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

import pytest
import requests
from rich.console import Console

from a2a_serverless.adapters.clock import SystemClock
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.schedules import Schedule
from a2a_serverless.store.dynamodb import DynamoTable, RetryPolicy
from a2a_serverless.store.keys import EVENTS, HEAD
from a2a_serverless_tools.cli.app import run
from a2a_serverless_tools.cli.options import CliContext
from a2a_serverless_tools.cli.terminal import Terminal
from a2a_serverless_tools.stack.settings import add_schedules
from sample_agents.bedrock import bedrock_client
from tests.adapters.clouds import session
from tests.contexts import Context
from tests.contract.schema import table_schema
from tests.functions.start import start_function
from tests.functions.template import resources
from tests.loggers import kept_loggers
from tests.manifests import manifest_of_samples
from tests.roles.clouds import SERVICES, TLS, Cloud, moto
from tests.roles.policies import Stack, document
from tests.roles.powers import GROUPS, operator_statements
from tests.roles.recorder import ACCOUNT, REGION, Recorder
from tests.sample_agents.bedrock_stand_in import PIXEL, said, showed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from a2a_serverless.adapters.invocations import Handler
    from a2a_serverless.domain.agent import Agent

WHO: Final = Principal("acme", "alice")
KEY: Final = "a2a_alice"
FUNCTIONS: Final = ("api", "worker", "relay", "notifier", "sweeper", "rotator")
PICTURE_ANSWER: Final = json.dumps({"name": "boat", "prompt": "A boat.", "description": "A boat."})
PICTURE: Final = b64encode(PIXEL).decode()
LOCAL: Final = {  # open only where AWS itself is on this machine; botocore reads the process's own environment
    "AWS_ENDPOINT_URL": "http://127.0.0.1",
    "WEBHOOK_LOCAL_ALLOW": "127.0.0.1:*,localhost:*",
}
FOREIGN_KEY: Final = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/foreign"
MODELS: Final = "text=eu.example.writer-v1:0,image=amazon.nova-canvas-v1:0"


class Account:
    """The functions, and whoever calls them.

    ``parameters`` are the template's, as far as they are not its defaults; ``environment`` is what somebody has edited
    among its constants, and what the emulator's deployment adds.
    """

    def __init__(
        self,
        recorder: Recorder,
        parameters: Mapping[str, str],
        environment: Mapping[str, str],
        cloud: Cloud,
        street: Street,
    ) -> None:
        self.recorder, self.cloud, self.street = recorder, cloud, street
        clients: Any = session()
        self.aws: dict[str, Any] = {name: clients.client(name) for name in SERVICES}
        given = json.dumps({environment["PUBLIC_BASE_URL"]: {"X-API-Key": KEY}})
        named = {"agent_credentials": self._secret("agents", given), "agent_credentials_key": FOREIGN_KEY}
        self.stack = Stack(parameters, self._resources() | named)
        if cloud.endpoint:  # moto evaluates no condition of a bucket's policy
            self._attach_policies()
        rights = self.stack.roles() | {group: operator_statements(self.stack, group) for group in GROUPS}
        self.sessions = {name: cloud.take_role(name, statements) for name, statements in rights.items()}
        self.functions: dict[str, Handler] = {}
        manifest = {"AGENTS_FILE": str(manifest_of_samples())}
        self.relayed: set[tuple[str, str]] = set()
        for name in FUNCTIONS:
            with self.acting(name):
                variables = {**self.stack.environment(name), **LOCAL, **manifest, **environment}
                self.functions[name] = start_function(name, variables)

    @contextmanager
    def acting(self, holder: str) -> Iterator[None]:
        """Sessions that are made in this block have the holder's rights, and its calls are noted."""
        with self.recorder.of(holder), patch.dict(os.environ, self.sessions[holder]):
            yield

    # ---- Whoever calls

    def invoke(self, function: str, event: Mapping[str, Any], remaining_ms: int = 60_000) -> dict[str, Any]:
        """An invocation; sessions that the function makes meanwhile are its own."""
        bedrock_client.cache_clear()  # each function is a process of its own
        with self.acting(function):
            return self.functions[function](event, Context(remaining_ms))

    def http(self, verb: str, path: str, body: object = None, key: str = KEY) -> Any:
        """What the api answers, as JSON or as the text of a stream."""
        sent = b"" if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "A2A-Version": "1.0", "X-API-Key": key}
        answer = self.invoke("api", gateway_event(verb, path, headers, sent))
        assert answer["statusCode"] == 200, answer
        kind = {name.lower(): value for name, value in answer["headers"].items()}["content-type"]
        return answer["body"] if kind.startswith("text/event-stream") else json.loads(answer["body"])

    def call(self, agent: str, method: str, **params: Any) -> Any:
        """The result of a JSON-RPC call."""
        answer = self.http("POST", f"/{agent}", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        if isinstance(answer, str):
            return answer
        assert "result" in answer, answer
        return answer["result"]

    def send(self, agent: str, *parts: dict[str, Any], webhook: str = "", **more: Any) -> Any:
        """The task that a message makes, or goes to."""
        message = {"messageId": os.urandom(8).hex(), "role": "ROLE_USER", "parts": [*parts], **more}
        configuration: dict[str, Any] = {"returnImmediately": True}
        if webhook:
            configuration["taskPushNotificationConfig"] = {"id": "hook", "url": webhook, "token": "secret"}
        answer = self.call(agent, "SendMessage", message=message, configuration=configuration)
        return answer.get("task", answer)

    def get(self, agent: str, task: str) -> Any:
        return self.call(agent, "GetTask", id=task)

    # ---- What AWS does by itself

    def settle(self) -> None:
        """Relays the log and answers messages until nothing is left to do."""
        while self._relay() or self._poll("WorkQueue", "worker") or self._poll("DeliveryQueue", "notifier"):
            pass

    def come_due(self) -> None:
        """Time passes until everything is due that may ever be."""
        for item in self.items():
            if "due_at" in item:
                self.change(item, due_at={"S": "0"})

    def heads(self) -> list[dict[str, Any]]:
        return [item for item in self.items() if item["sk"]["S"] == HEAD]

    def head(self, task: str) -> dict[str, Any]:
        return next(item for item in self.heads() if item["pk"]["S"].endswith(task))

    def items(self) -> list[dict[str, Any]]:
        pages = self.aws["dynamodb"].get_paginator("scan").paginate(TableName=self.name("Table"))
        return [item for page in pages for item in page["Items"]]

    def back_up(self, resource: str) -> str:
        """Restores the table as it is now into another table; returns the name of that table."""
        name, client = f"{self.name(resource)}-restored", self.aws["dynamodb"]
        client.restore_table_to_point_in_time(
            SourceTableName=self.name(resource), TargetTableName=name, UseLatestRestorableTime=True
        )
        return name

    def type(self, *words: str) -> Any:
        """The JSON that an operator's command prints; its calls are noted by the command's first word."""
        out, err = (Console(file=io.StringIO(), width=1000, highlight=False) for _ in range(2))
        with self.acting(words[0]), pytest.raises(SystemExit) as ended:
            run([*words, "--json"], CliContext(Terminal(out, err), environment={}))
        text = cast("io.StringIO", out.file).getvalue()
        assert ended.value.code == 0, text + cast("io.StringIO", err.file).getvalue()
        return json.loads(text)

    def table(self, resource: str) -> DynamoTable:
        """A table as operators reach it, with their own permissions."""
        retry = RetryPolicy(sleep=lambda _: None, chance=lambda: 0.5)
        return DynamoTable(self.aws["dynamodb"], self.name(resource), SystemClock().now, retry)

    def log(self, **line: str) -> None:
        """The worker logs a line."""
        place = {"logGroupName": self.name("WorkerLogs"), "logStreamName": "one"}
        self.aws["logs"].create_log_stream(**place)
        event = {"timestamp": SystemClock().now(), "message": json.dumps(line)}
        self.aws["logs"].put_log_events(**place, logEvents=[event])

    def schedule(self, agent: Agent, schedule: Schedule) -> None:
        """What the build adds to the template for an agent with a schedule."""
        described = {name: getattr(schedule, name) for name in Schedule.__slots__}
        made: dict[str, Any] = {"Resources": {}, "Outputs": {}}
        add_schedules(made, [{"id": agent.id, "schedules": [described]}])
        role = f"arn:aws:iam::{ACCOUNT}:role/a2a-serverless-SchedulesRole-1"
        arns = {"Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:WorkQueue", "RoleArn": role, "DeadLetterConfig": {"Arn": role}}
        properties = made["Resources"].popitem()[1]["Properties"]
        self.aws["scheduler"].create_schedule_group(Name="a2a-serverless")
        target = properties["Target"] | arns
        self.aws["scheduler"].create_schedule(**properties | {"GroupName": "a2a-serverless", "Target": target})

    def lose_messages(self) -> None:
        """What is in the queues is lost."""
        for queue in ("WorkQueue", "DeliveryQueue"):
            while self.take(queue):
                pass

    def name(self, resource: str) -> str:
        return self.stack.resources[resource]

    def change(self, item: Mapping[str, Any], **values: Any) -> None:
        """Somebody else writes to an item."""
        self.aws["dynamodb"].update_item(
            TableName=self.name("Table"),
            Key={"pk": item["pk"], "sk": item["sk"]},
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
            ExpressionAttributeNames={f"#{name}": name for name in values},
            ExpressionAttributeValues={f":{name}": value for name, value in values.items()},
        )

    def _relay(self) -> bool:
        fresh = sorted({*self._event_places()} - self.relayed)
        self.relayed.update(fresh)
        keys = [{"pk": {"S": pk}, "sk": {"S": sk}} for pk, sk in fresh]
        new = [self.aws["dynamodb"].get_item(TableName=self.name("Table"), Key=key)["Item"] for key in keys]
        records = [
            {
                "eventName": "INSERT",
                "dynamodb": {
                    "Keys": {"pk": one["pk"], "sk": one["sk"]},
                    "NewImage": one,
                    "SequenceNumber": str(number),
                },
            }
            for number, one in enumerate(new)
        ]
        if records:
            assert self.invoke("relay", {"Records": records}) == {"batchItemFailures": []}
        return bool(records)

    def _event_places(self) -> Iterator[tuple[str, str]]:
        """The keys of all events of logs: moto takes half a minute to serialize whole items at each look."""
        pages = (
            self.aws["dynamodb"]
            .get_paginator("scan")
            .paginate(
                TableName=self.name("Table"),
                FilterExpression="begins_with(sk, :events)",
                ExpressionAttributeValues={":events": {"S": EVENTS}},
                ProjectionExpression="pk, sk",
            )
        )
        return ((one["pk"]["S"], one["sk"]["S"]) for page in pages for one in page["Items"])

    def _poll(self, queue: str, function: str) -> bool:
        taken = self.take(queue)
        for message in taken:
            assert self.invoke(function, message_event(message["Body"], message["ReceiptHandle"])) == {
                "batchItemFailures": []
            }
        return bool(taken)

    def take(self, queue: str) -> list[dict[str, Any]]:
        url = self.name(queue)
        taken = self.aws["sqs"].receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        for message in taken:
            self.aws["sqs"].delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return list(taken)

    # ---- What is deployed

    def _resources(self) -> dict[str, str]:
        found = {"Api": "api0000000", "KeyRingSecret": self._secret("ring", "{}")}
        for name in resources("AWS::SQS::Queue"):
            url = self.aws["sqs"].create_queue(QueueName=name)["QueueUrl"]
            found |= {name: url, f"{name}.Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}", f"{name}.QueueName": name}
        for name in resources("AWS::DynamoDB::Table"):
            self.aws["dynamodb"].create_table(TableName=name, **table_schema(name))
            arn = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"
            found |= {name: name, f"{name}.Arn": arn, f"{name}.StreamArn": f"{arn}/stream/2026"}
        for name in resources("AWS::S3::Bucket"):
            self.aws["s3"].create_bucket(Bucket=name.lower())
            found |= {name: name.lower(), f"{name}.Arn": f"arn:aws:s3:::{name.lower()}"}
        for name in resources("AWS::KMS::Key"):
            key = self.aws["kms"].create_key()["KeyMetadata"]
            found |= {name: key["KeyId"], f"{name}.Arn": key["Arn"]}
        for name in resources("AWS::Logs::LogGroup"):
            group = f"a2a-serverless-{name}-1"
            self.aws["logs"].create_log_group(logGroupName=group)
            found |= {name: group, f"{name}.Arn": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:*"}
        for name in resources("AWS::Serverless::Function"):
            found |= {name: name, f"{name}.Arn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"}
        return found

    def _attach_policies(self) -> None:
        """Gives the bucket, the queues and the key the policies of the template."""
        bucket, queues, key = (
            self.stack.value(document()["Resources"][name]["Properties"])
            for name in ("BlobsPolicy", "QueuesTlsOnly", "SealingKey")
        )
        self.aws["s3"].put_bucket_policy(Bucket=bucket["Bucket"], Policy=json.dumps(bucket["PolicyDocument"]))
        for url in queues["Queues"]:
            attributes = {"Policy": json.dumps(queues["PolicyDocument"])}
            self.aws["sqs"].set_queue_attributes(QueueUrl=url, Attributes=attributes)
        given = {"KeyId": self.name("SealingKey"), "Policy": json.dumps(key["KeyPolicy"])}
        self.aws["kms"].put_key_policy(PolicyName="default", **given)

    def description(self) -> bytes:
        """What CloudFormation says of the stack: its outputs."""
        outputs = {name: self.stack.value(one["Value"]) for name, one in document()["Outputs"].items()}
        listed = "".join(
            f"<member><OutputKey>{name}</OutputKey><OutputValue>{escape(str(value))}</OutputValue></member>"
            for name, value in outputs.items()
        )
        stack = f"<member><Outputs>{listed}</Outputs></member>"
        result = f"<DescribeStacksResult><Stacks>{stack}</Stacks></DescribeStacksResult>"
        return f"<DescribeStacksResponse>{result}</DescribeStacksResponse>".encode()

    def _secret(self, name: str, text: str) -> str:
        return str(self.aws["secretsmanager"].create_secret(Name=name, SecretString=text)["ARN"])


def message_event(body: str, receipt: str = "") -> dict[str, Any]:
    """What the poller of a queue makes of a message."""
    attributes = {"ApproximateReceiveCount": "1", "SentTimestamp": "1", "ApproximateFirstReceiveTimestamp": "1"}
    record = {"messageId": "message", "body": body, "receiptHandle": receipt, "attributes": attributes}
    return {"Records": [record]}


def gateway_event(verb: str, path: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """What API Gateway makes of a request."""
    target = urlsplit(path)
    query = parse_qs(target.query)
    return {
        "resource": "/{proxy+}",
        "path": target.path,
        "httpMethod": verb,
        "headers": {"Host": "localhost", **headers},
        "multiValueHeaders": {"Host": ["localhost"], **{name: [value] for name, value in headers.items()}},
        "queryStringParameters": {name: values[-1] for name, values in query.items()} or None,
        "multiValueQueryStringParameters": query or None,
        "requestContext": {"identity": {"sourceIp": "203.0.113.7"}, "stage": "live", "path": target.path},
        "body": body.decode(),
        "isBase64Encoded": False,
    }


class Street(ThreadingHTTPServer):
    """The HTTP on this machine: the deployment's own address, a webhook's receiver, and an agent's answers."""

    account: Account | None = None
    heard: int = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Visitor)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.base_url = f"http://localhost:{self.server_address[1]}"  # webhooks to its own host are refused


class _Visitor(BaseHTTPRequestHandler):
    server: Street

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def _answer(self, verb: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        status, headers, said = self._said(verb, body)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def _said(self, verb: str, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        assert self.server.account
        if self.path.startswith("/receiver"):  # agrees to be told, and takes whatever comes
            self.server.heard += 1
            challenge = json.loads(body).get("challenge")
            fails = self.path.endswith("/failing") and not challenge
            answer = json.dumps({"challenge": challenge}).encode()
            return 503 if fails else 200, {"Content-Type": "application/json"}, answer
        if self.path.startswith("/model/"):
            spoken = said(PICTURE_ANSWER) if self.path.endswith("/converse-stream") else showed({"images": [PICTURE]})
            return 200, spoken.headers, spoken.body
        if self.path.startswith("/cloudformation"):
            return 200, {}, b""
        if body.startswith(b"Action=DescribeStacks"):
            return 200, {"Content-Type": "text/xml"}, self.server.account.description()
        if self.path.startswith("/2015-03-31/functions/"):
            return 200, {"Content-Type": "application/json"}, json.dumps(self._lambda(body)).encode()
        event = gateway_event(verb, self.path, dict(self.headers.items()), body)
        served = self.server.account.functions["api"](event, Context(60_000))
        headers = {name: value for name, value in served["headers"].items() if name.lower() != "content-length"}
        return served["statusCode"], headers, served["body"].encode()

    def _lambda(self, body: bytes) -> Any:
        """The rotator's answer, or the worker's configuration."""
        assert self.server.account
        if "/RotatorFunction/" in self.path:
            return self.server.account.functions["rotator"](json.loads(body), Context(60_000))
        return {"Environment": {"Variables": self.server.account.stack.environment("worker")}}

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def standing(
    recorder: Recorder,
    play: Callable[[], AbstractContextManager[Cloud]] = moto,
    parameters: Mapping[str, str] = MappingProxyType({}),
    agent_urls: str = "",
) -> Iterator[Account]:
    """An account with the stack in it, whose functions have done nothing yet. ``{url}`` is the deployment's own."""
    with ExitStack() as stack:
        cloud = stack.enter_context(play())
        stack.enter_context(kept_loggers())
        street = stack.enter_context(Street())
        thread = threading.Thread(target=street.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        stack.callback(thread.join)
        stack.callback(street.shutdown)
        environment = {
            **cloud.variables(),
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": street.url,
            "AWS_ENDPOINT_URL_CLOUDFORMATION": street.url,
            "AWS_ENDPOINT_URL_LAMBDA": street.url,
            "MODELS": parameters.get("Models", ""),
        }
        stack.enter_context(patch.dict(os.environ, environment))
        edited = {"PUBLIC_BASE_URL": street.base_url, "AGENT_URLS": agent_urls.replace("{url}", street.base_url)}
        street.account = Account(recorder, parameters, edited, cloud, street)
        yield street.account


def put(slot: Mapping[str, Any], content: bytes) -> int:
    """The status of an upload by a link."""
    return requests.put(slot["url"], content, headers={**slot["headers"], **TLS}, timeout=10).status_code
