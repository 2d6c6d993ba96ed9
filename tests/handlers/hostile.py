"""Requests that nobody sends by accident: mutations of valid ones, and what is no request at all."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol.jsonrpc import METHODS
from tests.handlers.requests import BINDINGS, Names

if TYPE_CHECKING:
    from collections.abc import Iterator

Path = tuple[str | int, ...]

FEW: Final = 150
EXAMPLES: Final = int(os.environ.get("FUZZ_EXAMPLES", FEW))
# A small look is the same each time; a long one (``make prove KIND=fuzz``) is another each time.
LOOK: Final = settings(
    deadline=None,
    max_examples=EXAMPLES,
    derandomize=EXAMPLES == FEW,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TASK: Final = "id-0003"
NAMES: Final = Names(task=TASK, context="context-1", page="a-token", tenant="elsewhere")
VALUES: Final[st.SearchStrategy[Any]] = st.sampled_from(
    [None, True, False, 0, -1, 2**31, 2**63, 10**400, 1.5, -0.0, 1e308, "", " ", "0", "null", "\x00", "\ud7ff", "é漢🏔",
     "x" * 300, "../..", "%2F", "https://[::1", "http://a b", "ROLE_USER", "user", "YQ==", "Y", "2026-01-01T00:00:00Z",
     "9999-99-99T99:99:99Z", TASK, [], {}, [[]], [None], [{}], {"": None}, {"kind": "file"}, {"text": 1}, {"data": {}},
     {"file": {"bytes": "YQ==", "uri": "x"}}, [{"kind": "data", "data": []}], {"$ref": "#"}, {"a": [1e-320]}]
)  # fmt: skip
RAW: Final = st.sampled_from(
    [b"", b" ", b"null", b"[]", b"{}", b"{", b"[" * 100_000, b'{"a":' * 100 + b"1" + b"}" * 100, b"NaN", b"-Infinity",
     b"1e999", b"9" * 5000, b'{"jsonrpc":"2.0","jsonrpc":"2.0"}', b'"\\ud800"', b"\xff\xfe{\x00}", b"\xef\xbb\xbf{}",
     b'{"jsonrpc":"2.0","id":NaN,"method":"GetTask"}', b'{"jsonrpc":"2.0","id":1.5,"method":"GetTask"}',
     b'{"jsonrpc":"2.0","id":' + b"9" * 400 + b',"method":"GetTask","params":{"id":"t"}}',
     b'{"jsonrpc":"2.0","id":"\\udfff","method":"x"}', b'{"jsonrpc":"2.0","id":[],"method":{}}', b"<xml/>", b"\x00",
     b'[{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}]']
) | st.binary(max_size=40)  # fmt: skip
ODD: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
HEADERS: Final = st.dictionaries(
    st.sampled_from(["a2a-version", "a2a-extensions", "x-a2a-extensions", "accept", "content-type", "last-event-id",
                     "if-none-match", "if-modified-since", "traceparent", "x-amzn-trace-id", "authorization",
                     "x-api-key", "origin"]),
    st.sampled_from(["", "1.0", "0.3", "1.0.1", "2.0", "*/*", "application/json", "application/json; charset=latin-1",
                     "application/a2a+json", "text/plain", "-1", "99999999999", "00-0-0-0", "Bearer", ",,,", ";", '"'])
    | ODD,
    max_size=3,
)  # fmt: skip
QUERIES: Final = st.lists(
    st.tuples(
        st.sampled_from(["A2A-Version", "tenant", "historyLength", "pageSize", "pageToken", "status", "contextId",
                         "statusTimestampAfter", "includeArtifacts", "id"]) | ODD,
        st.sampled_from(["", "1.0", "0.3", "-1", "1", "true", "9" * 30, "TASK_STATE_WORKING", "working", "\x00"]) | ODD,
    ),
    max_size=3,
).map(tuple)  # fmt: skip
WORDS: Final = st.sampled_from(
    ["", "echo", "legacy", "v1", "tasks", TASK, f"{TASK}:cancel", f"{TASK}:subscribe", ":cancel", "send", "card",
     "message:send", "message:stream", "sendSubscribe", "pushNotificationConfigs", "extendedAgentCard", "deliveries",
     "uploads", ".well-known", "agent.json", "agents", "callbacks", "%", "%2F", "%00", "%ff", "..", "{id}",
     "x" * 2000]
) | ODD  # fmt: skip
_METHODS: Final = st.sampled_from([*METHODS, "", "No", "message/", "rpc.discover"])
_VERBS: Final = st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", ""])
_HOOK: Final = {"id": "hook", "url": "https://hooks.example.com/a2a", "token": "t"}
_ABOUT: Final = {"historyLength": 1, "acceptedOutputModes": ["text/plain"]}
_MESSAGE: Final = {"messageId": "m", "metadata": {"a": [1]}, "extensions": ["urn:x"], "referenceTaskIds": [TASK]}
_NEW_PARTS: Final = [{"text": "x", "mediaType": "text/plain"}, {"raw": "YQ==", "filename": "f"}, {"url": "https://x"},
                     {"data": {"a": 1}, "metadata": {}}]  # fmt: skip
_OLD_PARTS: Final = [{"kind": "text", "text": "x"}, {"kind": "file", "file": {"bytes": "YQ==", "mimeType": "a/b"}},
                     {"kind": "data", "data": {"a": 1}, "metadata": {}}]  # fmt: skip
# Requests with everything in them that may be.
_FULL: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("1.0", "SendMessage", {
        "tenant": "elsewhere", "metadata": {"a": 1}, "message": {**_MESSAGE, "role": "ROLE_USER", "parts": _NEW_PARTS},
        "configuration": {**_ABOUT, "returnImmediately": True, "taskPushNotificationConfig": {
            **_HOOK, "authentication": {"scheme": "Bearer", "credentials": "c"}}},
    }),
    ("1.0", "ListTasks", {
        "contextId": "c", "status": "TASK_STATE_INPUT_REQUIRED", "pageSize": 1, "historyLength": 0,
        "statusTimestampAfter": "2026-01-01T00:00:00Z", "includeArtifacts": True,
    }),
    ("1.0", "ListTasks", {}),
    ("0.3", "message/send", {
        "metadata": {"a": 1}, "message": {**_MESSAGE, "kind": "message", "role": "user", "parts": _OLD_PARTS},
        "configuration": {**_ABOUT, "blocking": False, "pushNotificationConfig": {
            **_HOOK, "authentication": {"schemes": ["Bearer"], "credentials": "c"}}},
    }),
]  # fmt: skip


def _called(version: str, method: str, params: dict[str, Any]) -> HttpRequest:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"a2a-version": version, "content-type": "application/json"}
    return HttpRequest("POST", "/echo", headers, body=json.dumps(body).encode())


_VALID: Final = [_called(*one) for one in _FULL] + [
    make(replace(NAMES, task=None, context=None) if "send" in operation.lower() else NAMES)
    for binding, made in BINDINGS.items()
    for operation, make in made.items()
    if binding != "legacy" or not operation.streams
]


def places(value: Any, at: Path = ()) -> Iterator[Path]:
    """Where something stands in a JSON value, the value itself included."""
    yield at
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield from places(child, (*at, name))


def changed(value: Any, at: Path, new: Any) -> Any:
    """The value with something else at one of its places."""
    if not at:
        return new
    copied = value.copy()
    copied[at[0]] = changed(value[at[0]], at[1:], new)
    return copied


@st.composite
def mutations(draw: st.DrawFn) -> HttpRequest:
    """A valid request of any binding with another value at one or two of its places, headers or parameters."""
    request = draw(st.sampled_from(_VALID))
    if request.body:
        document = json.loads(request.body)
        for _ in range(draw(st.integers(1, 2))):
            at = draw(st.sampled_from(list(places(document))))
            document = changed(document, at, draw(VALUES))
        request = request._replace(body=json.dumps(document).encode())
    query = (*request.query, *draw(QUERIES)) if draw(st.booleans()) else request.query
    headers = {**request.headers, **draw(HEADERS)} if draw(st.booleans()) else request.headers
    return request._replace(query=query, headers=headers)


@st.composite
def strangers(draw: st.DrawFn) -> HttpRequest:
    """Any verb, path, headers, parameters and body."""
    path = draw(st.sampled_from(["/echo", "/echo/message:send", "/echo/v1/message:send", "/legacy/echo/tasks/send"]))
    if draw(st.booleans()):
        path = "/" + "/".join(draw(st.lists(WORDS, max_size=5)))
    call = {"jsonrpc": "2.0", "id": draw(VALUES), "method": draw(_METHODS), "params": draw(VALUES)}
    body = draw(RAW | st.just(json.dumps(call).encode()))
    return HttpRequest(draw(st.just("POST") | _VERBS), path, draw(HEADERS), draw(QUERIES), body)
