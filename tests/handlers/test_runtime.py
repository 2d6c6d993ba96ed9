"""The streaming loop against a Runtime API: what it posts, and how much of it at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from a2a_serverless.domain.access import Caller
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.http.lambda_proxy import make_gateway_handler
from a2a_serverless.http.runtime import (
    CONTENT_TYPE,
    SEPARATOR,
    STREAMING_ROUTES,
    RuntimeApi,
    make_streaming_handler,
    serve,
)
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.echo import Writer
from tests.edge import Edge
from tests.runtime_api import FUNCTION_MS, Invocation, RuntimeApiServer, runtime_api
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp

    from a2a_serverless.adapters.invocations import Handler

pytestmark = pytest.mark.enable_socket
STREAMING = Path(__file__).parents[2] / "functions/api/streaming.py"


class Mine(AllowAnonymous):
    """Everybody is the world's own client."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        del headers
        return Caller(ME)


def edge(world: World, writer: Writer) -> Edge:
    return Edge(world.service, {"echo": writer.agent}, Mine(), MemoryCallbackVerifier(), 300)


def event(resource: str, path: str, verb: str = "GET", body: object = None) -> dict[str, Any]:
    headers = {"content-type": "application/json", "a2a-version": "1.0"}
    return {
        "resource": resource,
        "path": path,
        "httpMethod": verb,
        "headers": headers,
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "requestContext": {"identity": {}},
        "body": None if body is None else json.dumps(body),
        "isBase64Encoded": False,
    }


def answered(world: World, writer: Writer, *events: dict[str, Any]) -> list[Invocation]:
    """What became of the events; nothing that was posted was refused."""
    invocations, server = served(edge(world, writer).app, *(json.dumps(one).encode() for one in events))
    assert server.refused == []
    return invocations


def served(
    app: ASGIApp, *events: bytes, cut_after: int | None = None, buffered: Handler | None = None
) -> tuple[list[Invocation], RuntimeApiServer]:
    """What became of the events, and the Runtime API that has seen it."""
    invocations = [Invocation(one) for one in events]
    left, still = iter(invocations), iter([True] * len(events) + [False])
    with runtime_api(lambda: next(left), cut_after) as server:
        runtime = RuntimeApi(server.address)
        try:
            serve(runtime, make_streaming_handler(app, buffered or make_gateway_handler(app)), lambda: next(still))
        finally:
            runtime.close()
    return invocations, server


def call(method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def test_an_ordinary_answer_on_a_streaming_route_has_the_prelude_too() -> None:
    writer = Writer()
    [posted] = answered(
        World([writer.agent]), writer, event("/{agent}", "/echo", "POST", call("GetTask", {"id": "no"}))
    )
    assert posted.kind == "response"
    assert posted.headers["Lambda-Runtime-Function-Response-Mode"] == "streaming"
    assert posted.headers["Content-Type"] == CONTENT_TYPE
    prelude, body = b"".join(posted.posted()).split(SEPARATOR)
    assert json.loads(prelude) == {
        "statusCode": 200,
        "headers": {"content-type": "application/json", "cache-control": "no-store"}
        | {"strict-transport-security": "max-age=31536000"},
    }
    assert json.loads(body)["error"]["code"] == -32001


def test_a_stream_is_sent_event_by_event() -> None:
    writer = Writer()
    world = World([writer.agent])
    task = world.send("hello", push=False)
    world.settle()
    subscribe = event("/{agent}/{proxy+}", f"/echo/tasks/{task.id}:subscribe")
    subscribe["multiValueHeaders"]["last-event-id"] = ["1"]
    [posted] = answered(world, writer, subscribe)
    prelude, first, *rest = posted.posted()
    assert json.loads(prelude.removesuffix(SEPARATOR))["headers"]["content-type"] == "text/event-stream"
    assert [chunk.split(b"\n")[0] for chunk in (first, *rest)] == [b"id: %d" % n for n in range(2, 8)]


def test_a_buffered_route_gets_the_buffered_form() -> None:
    writer = Writer()
    world = World([writer.agent])
    world.table.publish("jwks", {"body": '{"keys":[]}', "etag": '"1"', "modified": "x", "basis": "1"})
    [posted] = answered(world, writer, event("/.well-known/jwks.json", "/.well-known/jwks.json"))
    assert "Lambda-Runtime-Function-Response-Mode" not in posted.headers
    assert json.loads(posted.posted()[0])["body"] == '{"keys":[]}'


def test_an_invocation_says_how_much_time_the_platform_leaves_it() -> None:
    with runtime_api(lambda: Invocation(b"{}")) as server:
        runtime = RuntimeApi(server.address)
        left_ms = runtime.next().get_remaining_time_in_millis()
        runtime.close()
    assert 0 < left_ms <= FUNCTION_MS


def test_an_event_that_cannot_be_answered_is_reported_and_the_next_one_is_answered() -> None:
    writer = Writer()
    bad, good = {"resource": "/agents", "nonsense": True}, event("/{agent}", "/echo", "POST", call("No", {}))
    failed, posted = answered(World([writer.agent]), writer, bad, good)
    assert failed.kind == "error"
    assert posted.kind == "response"


def test_the_streamed_routes_are_those_whose_integration_streams() -> None:
    class Loader(yaml.SafeLoader):
        pass

    def construct(loader: yaml.SafeLoader, _: str, node: yaml.Node) -> object:
        if isinstance(node, yaml.ScalarNode):
            return loader.construct_scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        assert isinstance(node, yaml.MappingNode)
        return loader.construct_mapping(node, deep=True)

    Loader.add_multi_constructor("!", construct)
    template = yaml.load(Path("template.yaml").read_text(), Loader)  # noqa: S506 - ours, by a safe loader
    paths = template["Resources"]["Api"]["Properties"]["DefinitionBody"]["paths"]
    streamed = {path for path, verbs in paths.items() if all("Fn::If" in integration(verb) for verb in verbs.values())}
    assert streamed == STREAMING_ROUTES
    assert not any("Fn::If" in integration(verb) for path in paths.keys() - streamed for verb in paths[path].values())


def integration(verb: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = verb["x-amazon-apigateway-integration"]
    return found


def failed_start(*options: str, **variables: str) -> tuple[str, dict[str, Any], str]:
    """What the api function's program reports when it cannot start: the error's type, the body, and its log."""
    with runtime_api(lambda: Invocation(b"")) as server:
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, *options, STREAMING],
            env={"AWS_LAMBDA_RUNTIME_API": server.address, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, len(server.init_errors)) == (1, 1), done.stderr
    return *server.init_errors[0], done.stderr


def test_a_package_that_is_missing_is_reported_as_lambda_s_own_runtime_reports_it() -> None:
    kind, body, log = failed_start("-S")  # without site-packages, as in a zip that lacks the library
    assert kind == body["errorType"] == "Runtime.ImportModuleError"
    assert body["errorMessage"] == "Unable to import module 'streaming': No module named 'a2a_serverless'"
    assert "streaming.py" in body["stackTrace"][0]
    assert "ModuleNotFoundError" in log


def test_a_setting_that_the_api_refuses_is_reported_with_its_name() -> None:
    kind, body, _ = failed_start(BLOCKING_SECONDS="much")
    assert kind == body["errorType"] != "Runtime.ImportModuleError"
    assert "BLOCKING_SECONDS" in body["errorMessage"].upper()
