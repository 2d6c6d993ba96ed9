"""The api function, as API Gateway calls it: whatever comes in, an answer goes out and says what was wrong."""

from __future__ import annotations

import base64
import json
import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.model import TaskKey
from a2a_serverless.http.api import ANYBODY, AllowAnonymous, OidcOrApiKey
from a2a_serverless.http.lambda_proxy import make_gateway_handler, proxy_body, proxy_scope
from a2a_serverless.http.messages import HttpRequest, read_request
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.echo import Writer
from tests.edge import Edge
from tests.handlers.test_queues import Clock
from tests.world import World

if TYPE_CHECKING:
    from a2a_serverless.http.api import Authenticator

SENT = json.loads((Path(__file__).parents[2] / "events" / "api-send.json").read_text())
MESSAGE = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "my secret plan"}]}
SEND = {
    "jsonrpc": "2.0",
    "id": "call-1",
    "method": "SendMessage",
    "params": {"message": MESSAGE, "configuration": {"returnImmediately": True}},
}


class Api:
    """The api function over a world."""

    def __init__(self, authenticator: Authenticator | None = None) -> None:
        self.writer = Writer()
        self.world = World([self.writer.agent])
        self.edge = Edge(
            self.world.service,
            {"echo": self.writer.agent},
            authenticator or AllowAnonymous(),
            MemoryCallbackVerifier(),
            300,
        )
        self.handler = make_gateway_handler(self.edge.app)

    def call(self, **fields: Any) -> dict[str, Any]:
        """What API Gateway gets for its event with these fields changed."""
        return self.handler(SENT | {"path": "/echo"} | fields, Clock())

    def rpc(self, body: object, **fields: Any) -> Any:
        """The JSON-RPC answer to a body, which always comes with 200."""
        text = body if isinstance(body, str) else json.dumps(body)
        answer = self.call(body=text, **fields)
        assert (answer["statusCode"], answer["headers"]["content-type"]) == (200, "application/json")
        return json.loads(answer["body"])

    def error(self, body: object, **fields: Any) -> tuple[object, int]:
        """The id and the code of the error that a body is answered with."""
        answer = self.rpc(body, **fields)
        assert sorted(answer) == ["error", "id", "jsonrpc"]
        return answer["id"], answer["error"]["code"]


def header(name: str, *values: str) -> dict[str, Any]:
    """The event's headers with one more, in both of their forms."""
    without = {key: value for key, value in SENT["multiValueHeaders"].items() if key.lower() != name.lower()}
    several = without | ({name: list(values)} if values else {})
    return {"multiValueHeaders": several, "headers": {key: value[-1] for key, value in several.items()}}


# ---- What goes well


@pytest.mark.requirement(4)
def test_a_message_makes_a_task() -> None:
    api = Api()
    answer = api.rpc(SEND)
    task = answer["result"]["task"]
    assert (answer["id"], task["status"]["state"]) == ("call-1", "TASK_STATE_SUBMITTED")
    api.world.settle()
    key = TaskKey(ANYBODY.tenant, ANYBODY.owner, task["id"])
    assert api.world.table.read_head(key).head.state is TaskState.COMPLETED


def test_a_body_in_base64_is_the_body() -> None:
    text = base64.b64encode(json.dumps(SEND).encode()).decode()
    assert "result" in Api().rpc(text, isBase64Encoded=True)


def test_a_text_of_any_script_comes_through() -> None:
    api = Api()
    message = MESSAGE | {"parts": [{"text": "山水 🏔"}]}
    task = api.rpc(SEND | {"params": {"message": message, "configuration": {"returnImmediately": True}}})["result"][
        "task"
    ]
    assert task["history"][0]["parts"] == [{"text": "山水 🏔"}]


def read(event: dict[str, Any], time_left_ms: int) -> HttpRequest:
    return read_request(proxy_scope(event, None, time_left_ms), proxy_body(event))


@pytest.mark.requirement(106)
def test_headers_are_read_whatever_their_case_and_form() -> None:
    event = {
        "httpMethod": "POST",
        "path": "/echo",
        "requestContext": {},
        "multiValueHeaders": {"A2A-Extensions": ["one", "two"], "Content-Type": ["application/json"]},
        "multiValueQueryStringParameters": {"a": ["1", "2"], "b": [""]},
        "body": None,
    }
    request = read(event, 1000)
    assert request.headers == {"a2a-extensions": "one, two", "content-type": "application/json"}
    assert request.query == (("a", "1"), ("a", "2"), ("b", ""))
    assert (request.body, request.time_left_ms) == (b"", 1000)
    single = {"headers": {"X-One": "1"}, "queryStringParameters": {"a": "2"}}
    plain = read(event | single | {"multiValueHeaders": None, "multiValueQueryStringParameters": None}, 1)
    assert (plain.headers, plain.query) == ({"x-one": "1"}, (("a", "2"),))


@pytest.mark.requirement(121)
@pytest.mark.parametrize(("verb", "path"), [("POST", "/echo"), ("GET", "/echo/tasks"), ("GET", "/agents")])
def test_browsers_are_told_to_come_by_tls_only(verb: str, path: str) -> None:
    answer = Api().call(httpMethod=verb, path=path)
    assert answer["headers"]["strict-transport-security"] == "max-age=31536000"


# ---- Envelopes

BAD_ENVELOPES: dict[str, tuple[object, object, int]] = {
    "empty": ("", None, -32700),
    "no json": ("{", None, -32700),
    "no utf-8": ('{"\ud800": 1}', None, -32700),
    "not a number": ('{"a": NaN}', None, -32700),
    "a name twice": ('{"id": 1, "id": 2}', None, -32700),
    "a batch": ([SEND], None, -32600),
    "a text": ('"hello"', None, -32600),
    "null": ("null", None, -32600),
    "no version": ({key: value for key, value in SEND.items() if key != "jsonrpc"}, "call-1", -32600),
    "another version": (SEND | {"jsonrpc": "1.0"}, "call-1", -32600),
    "no method": ({key: value for key, value in SEND.items() if key != "method"}, "call-1", -32600),
    "a method that is no text": (SEND | {"method": 7}, "call-1", -32600),
    "an id that is an object": (SEND | {"id": {}}, None, -32600),
    "an id that is a boolean": (SEND | {"id": True}, None, -32600),
    "an unknown method": (SEND | {"method": "DropTable"}, "call-1", -32601),
    "a list of params": (SEND | {"params": [1]}, "call-1", -32602),
    "no message": (SEND | {"params": {}}, "call-1", -32602),
    "a message without parts": (SEND | {"params": {"message": MESSAGE | {"parts": []}}}, "call-1", -32602),
    "a role that is none": (SEND | {"params": {"message": MESSAGE | {"role": "ROLE_GOD"}}}, "call-1", -32602),
    "an unknown task": (SEND | {"method": "GetTask", "params": {"id": "unknown"}}, "call-1", -32001),
    "six megabytes": (SEND | {"x": "x" * 6_000_000}, None, -32600),
    "a thousand levels": ("[" * 1000 + "]" * 1000, None, -32600),
    "a hundred thousand levels": ("[" * 100_000 + "]" * 100_000, None, -32600),
}


@pytest.mark.requirement(35, 40)
@pytest.mark.parametrize("case", BAD_ENVELOPES)
def test_a_bad_envelope_is_answered_with_its_code_and_its_id(case: str, caplog: pytest.LogCaptureFixture) -> None:
    body, call_id, code = BAD_ENVELOPES[case]
    api = Api()
    assert api.error(body) == (call_id, code)
    assert api.world.table.feed == []
    assert [line for line in caplog.records if line.levelno >= logging.ERROR] == [], "not our fault"


def test_a_body_that_is_no_base64_is_no_json() -> None:
    assert Api().error("%%%", isBase64Encoded=True) == (None, -32700)


@pytest.mark.requirement(121)
@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data; boundary=x"])
def test_another_content_type_is_refused(kind: str) -> None:
    assert Api().error(SEND, **header("Content-Type", kind)) == (None, -32005)


@pytest.mark.requirement(63)
@pytest.mark.parametrize("version", ["2.0", "0.1", "one", "1.0,0.3"])
def test_a_version_that_we_do_not_speak_is_refused(version: str) -> None:
    assert Api().error(SEND, **header("A2A-Version", version)) == ("call-1", -32009)


@pytest.mark.parametrize("name", ["headers", "multiValueHeaders", "body", "queryStringParameters"])
def test_a_field_that_is_null_is_an_empty_one(name: str) -> None:
    answer = Api().call(**{name: None})
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["jsonrpc"] == "2.0"


# ---- Paths, verbs and callers


@pytest.mark.parametrize("path", ["/", "/unknown", "/echo/unknown", "/%00", "/echo/../x", "/" + "x" * 5000])
def test_an_unknown_path_is_not_found(path: str) -> None:
    answer = Api().call(path=path)
    assert answer["statusCode"] == 404
    assert json.loads(answer["body"])["error"]["status"] == "NOT_FOUND"


@pytest.mark.parametrize("verb", ["GET", "PUT", "DELETE", "PATCH"])
def test_another_verb_is_refused_with_the_one_that_is_right(verb: str) -> None:
    answer = Api().call(httpMethod=verb)
    headers = {name.lower(): value for name, value in answer["headers"].items()}
    assert (answer["statusCode"], headers["allow"]) == (405, "POST")


@pytest.mark.requirement(30, 31, 92)
def test_a_deployment_without_keys_answers_401_to_every_caller() -> None:
    api = Api(OidcOrApiKey(lambda _: None))
    answer = api.call(body=json.dumps(SEND))
    assert answer["statusCode"] == 401
    assert answer["headers"]["www-authenticate"] == 'Bearer realm="a2a"'
    assert json.loads(answer["body"])["error"]["data"][0]["reason"] == "UNAUTHENTICATED"
    assert api.world.table.feed == []


# ---- Our own fault


class Down:
    """Storage that does not answer."""

    def __getattr__(self, name: str) -> Any:
        return partial(self._fail, name)

    def _fail(self, name: str, *_: object) -> None:
        raise ConnectionError(f"{name}: table-1 in account 0000 does not answer")


@pytest.mark.requirement(39)
def test_an_internal_error_is_logged_and_its_text_is_in_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    api = Api()
    down: Any = Down()
    handler = make_gateway_handler(replace(api.edge, service=api.edge.service._replace(log=down)).app)
    answer = handler(SENT | {"path": "/echo", "body": json.dumps(SEND)}, Clock())
    error = json.loads(answer["body"])["error"]
    assert (answer["statusCode"], error["code"]) == (200, -32603)
    assert "0000" not in answer["body"]
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.__dict__["error"] == "ConnectionError"
    assert "raised_at" in record.__dict__
    assert "my secret plan" not in str(record.__dict__)


@pytest.mark.requirement(121)
def test_every_request_leaves_a_line_that_tells_what_was_done_to_which_task(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    api = Api()
    task = api.rpc(SEND)["result"]["task"]["id"]
    api.rpc(SEND | {"method": "GetTask", "params": {"id": "unknown"}})
    lines = [line.__dict__ for line in caplog.records if line.getMessage() == "request answered"]
    assert [(line["operation"], line["agent"], line["task"], line["outcome"]) for line in lines] == [
        ("SendMessage", "echo", task, "ok"),
        ("GetTask", "echo", None, "TaskNotFound"),
    ]


@pytest.mark.requirement(122)
def test_rule_10_the_log_shows_neither_messages_nor_secrets(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    api = Api()
    push = {
        "url": "https://hooks.example.com/",
        "token": "hunter2",
        "authentication": {"scheme": "Basic", "credentials": "YWJj"},
    }
    configuration = {"returnImmediately": True, "taskPushNotificationConfig": push}
    answer = api.rpc(
        SEND | {"params": {"message": MESSAGE, "configuration": configuration}},
        **header("Authorization", "Bearer mine"),
    )
    assert "result" in answer
    api.rpc(SEND | {"params": {"message": MESSAGE | {"parts": [{"text": "hunter2"}]}}})
    api.rpc(SEND | {"params": {"message": MESSAGE | {"role": "hunter2"}}})
    api.world.settle()
    assert api.world.receiver.posts
    shown = caplog.text + str([line.__dict__ for line in caplog.records])
    assert [secret for secret in ("my secret plan", "hunter2", "YWJj", "Bearer mine") if secret in shown] == []
