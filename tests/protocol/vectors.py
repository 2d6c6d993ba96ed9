"""Requests and answers to feed both codecs with: the recorded corpus, the examples, and the vectors of other tests."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from a2a_serverless.domain.errors import A2AError
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.wire import jsonrpc, rest
from tests.wire import test_v0_3, test_v0_3_rest, test_v1

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parents[1]
Json = Any
Request = tuple[str, str, Operation, Json]


def corpus() -> Iterator[tuple[str, Json]]:
    """The records of the corpus by the name of their scenario. What varies is replaced by something of its kind."""
    for path in sorted((HERE / "baseline" / "corpus").iterdir()):
        text = path.read_text().replace("<time>", "2026-05-28T09:30:00.123Z")
        for record in json.loads(text):
            yield path.stem, record


def corpus_requests() -> Iterator[Request]:
    """The requests of the corpus that come as far as a codec."""
    for _, record in corpus():
        if "request" in record:
            yield from _request(record["request"])


def _request(request: Json) -> Iterator[Request]:
    verb, _, target = request["line"].partition(" ")
    where = urlsplit(target)
    words = where.path.strip("/").split("/", 1)
    body = request["body"]
    content = b"" if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
    if words[0] == "legacy":
        if words[1].endswith(("tasks/send", "tasks/sendSubscribe")):
            yield "legacy", "0.3", Operation.SEND, body
    elif len(words) == 1 and verb == "POST":
        call = jsonrpc.parse(content)
        if isinstance(call, jsonrpc.RpcRequest) and call.method in jsonrpc.METHODS:
            operation, version = jsonrpc.method(call.method)
            yield "jsonrpc", version, operation, call.params
    elif len(words) > 1:
        try:
            found = rest.match(verb, "/" + words[1])
            params = rest.params(found, parse_qsl(where.query), content)
        except A2AError:
            return
        yield "rest", found.route.version, found.route.operation, params


def corpus_answers() -> Iterator[tuple[str, Json]]:
    """The results and items that the corpus holds, as far as they are objects, with the name of their scenario."""
    for name, record in corpus():
        body = record["webhook"]["body"] if "webhook" in record else record["answer"]["body"]
        for one in body if isinstance(body, list) else [body]:
            said = one.get("data", one) if isinstance(one, dict) else one
            result = said.get("result", said) if isinstance(said, dict) else said
            if isinstance(result, dict) and "error" not in result:
                yield name, result


def vectors() -> Iterator[Request]:  # noqa: C901 - one list after the other
    """The requests that other tests feed today's codec with."""
    for module, binding, version in ((test_v1, "jsonrpc", "1.0"), (test_v0_3, "jsonrpc", "0.3")):
        for test in (module.test_each_operation_is_read, module.test_everything_that_is_wrong_is_named):
            for operation, params, _ in cases(test):
                yield binding, version, operation, params
    message = test_v1.MESSAGE
    for sent, _ in cases(test_v1.test_what_a_part_is_tells_the_member_that_is_there):
        yield "jsonrpc", "1.0", Operation.SEND, {"message": message | {"parts": [sent]}}
    for sent, _ in cases(test_v0_3.test_parts_are_read_as_every_client_writes_them):
        yield "jsonrpc", "0.3", Operation.SEND, {"message": test_v0_3.MESSAGE | {"parts": [sent]}}
        yield "rest", "0.3", Operation.SEND, {"message": test_v0_3.MESSAGE | {"parts": [sent]}}
        yield "legacy", "0.3", Operation.SEND, {"message": test_v0_3.MESSAGE | {"parts": [sent]}}
    for schemes, credentials, _ in cases(test_v0_3.test_of_several_schemes_the_one_is_taken_that_can_be_served):
        config = {"url": "u", "authentication": {"schemes": schemes, "credentials": credentials}}
        yield "jsonrpc", "0.3", Operation.PUSH_CREATE, {"taskId": "t", "pushNotificationConfig": config}
    for (params,) in ((one,) for one in cases(test_v0_3_rest.test_a_message_is_read_in_each_of_its_spellings)):
        yield "rest", "0.3", Operation.SEND, params
    for sent, _ in cases(test_v0_3_rest.test_parts_are_read_as_the_proto_nests_them):
        message = {"messageId": "m", "role": "ROLE_USER", "content": [sent]}
        yield "rest", "0.3", Operation.SEND, {"message": message}
    for params, _ in cases(test_v0_3_rest.test_a_webhook_is_read_at_any_depth_that_clients_nest_it):
        yield "rest", "0.3", Operation.PUSH_CREATE, params | {"taskId": "t"}
    for more in cases(test_v1.test_a_list_whose_client_prints_every_default_of_the_proto_is_a_list_of_everything):
        yield "jsonrpc", "1.0", Operation.LIST, test_v1.DEFAULTS | more
    yield from _older()


def _older() -> Iterator[Request]:
    """What was printed in guides of the 0.3 time."""
    text = (HERE / "data" / "examples" / "older-requests.json").read_text().replace("<base64>", "YQ==")
    for value in json.loads(text).values():
        for body in value if isinstance(value, list) else [value]:
            if isinstance(body, dict) and body.get("method") in jsonrpc.METHODS:
                yield "jsonrpc", "0.3", Operation.SEND, body["params"]
            if isinstance(body, dict) and "POST /tasks/send" in body:
                yield "legacy", "0.3", Operation.SEND, body["POST /tasks/send"]


def cases(test: Any) -> list[Any]:
    """The cases of a test that is parametrized."""
    (mark,) = [mark for mark in test.pytestmark if mark.name == "parametrize"]
    return list(mark.args[1])


def camel_named(path: str) -> str:
    """A path by the names of JSON, whichever spelling the client chose."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), path)
