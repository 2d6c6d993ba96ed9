"""Sound requests with at most a few members changed, so that codecs are compared beyond the first check."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from a2a_serverless.protocol.operations import Operation
from tests.protocol import strategies
from tests.protocol.test_fuzz import NAMES, WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = Any

HOOK: Final = {
    "id": "p",
    "url": "https://example.com/hook",
    "token": "t",
    "authentication": {"scheme": "Basic", "credentials": "c"},
}
OLD_HOOK: Final = HOOK | {"authentication": {"schemes": ["Basic", "Bearer"], "credentials": "c"}}
_MORE: Final = {
    "contextId": "c",
    "taskId": "t",
    "metadata": {"a": [1, None]},
    "extensions": ["urn:a"],
    "referenceTaskIds": ["x", "y"],
}
NEW_SEND: Final = {
    "tenant": "acme",
    "message": {
        "messageId": "m",
        "role": "ROLE_USER",
        "parts": [
            {"text": "a", "mediaType": "text/plain", "filename": "f", "metadata": {"k": 1}},
            {"raw": "YQ==", "mediaType": "a/b"},
            {"url": "https://example.com"},
            {"data": {"x": [1, {"y": None}]}},
        ],
        **_MORE,
    },
    "configuration": {
        "acceptedOutputModes": ["text/plain"],
        "returnImmediately": True,
        "historyLength": 3,
        "taskPushNotificationConfig": HOOK,
    },
    "metadata": {"b": 2},
}
OLD_SEND: Final = {
    "message": {
        "kind": "message",
        "messageId": "m",
        "role": "user",
        "parts": [
            {"kind": "text", "text": "a", "metadata": {"k": 1}},
            {"kind": "file", "file": {"bytes": "YQ==", "mimeType": "a/b", "name": "f"}},
            {"kind": "file", "file": {"uri": "https://example.com"}},
            {"kind": "data", "data": {"x": [1]}, "metadata": {"data_part_compat": True}},
            {"kind": "data", "data": {"value": [1]}, "metadata": {"data_part_compat": True}},
        ],
        **_MORE,
    },
    "configuration": {
        "acceptedOutputModes": ["text/plain"],
        "blocking": True,
        "historyLength": 3,
        "pushNotificationConfig": OLD_HOOK,
    },
    "metadata": {"b": 2},
}
PROTO_SEND: Final = {
    "request": {
        "message_id": "m",
        "role": "ROLE_USER",
        "content": [
            {"text": "a"},
            {"file": {"file_with_bytes": "YQ==", "mime_type": "a/b"}},
            {"file": {"fileWithUri": "https://example.com"}},
            {"data": {"data": {"x": [1]}}},
        ],
        "context_id": "c",
    },
    "configuration": {"accepted_output_modes": ["text/plain"], "blocking": True, "push_notification": OLD_HOOK},
}
Cases = dict[Operation, list[Json]]
NEW: Final[Cases] = {
    Operation.SEND: [NEW_SEND],
    Operation.GET: [{"id": "t", "historyLength": 2, "tenant": "acme"}],
    Operation.LIST: [
        {
            "contextId": "c",
            "status": "TASK_STATE_WORKING",
            "pageSize": 5,
            "pageToken": "x",
            "historyLength": 1,
            "statusTimestampAfter": "2026-05-28T09:30:00Z",
            "includeArtifacts": True,
        }
    ],
    Operation.CANCEL: [{"id": "t", "metadata": {"a": 1}}],
    Operation.SUBSCRIBE: [{"id": "t"}],
    Operation.PUSH_CREATE: [{"taskId": "t", **HOOK}],
    Operation.PUSH_GET: [{"taskId": "t", "id": "p"}],
    Operation.PUSH_LIST: [{"taskId": "t", "pageSize": 5, "pageToken": "x"}],
    Operation.PUSH_DELETE: [{"taskId": "t", "id": "p"}],
    Operation.CARD: [{"tenant": "acme"}],
}
OLD: Final[Cases] = {
    Operation.SEND: [OLD_SEND],
    Operation.GET: [{"id": "t", "historyLength": 2}],
    Operation.CANCEL: [{"id": "t", "metadata": {"a": 1}}],
    Operation.SUBSCRIBE: [{"id": "t"}],
    Operation.PUSH_CREATE: [{"taskId": "t", "pushNotificationConfig": OLD_HOOK}],
    Operation.PUSH_GET: [{"id": "t", "pushNotificationConfigId": "p"}],
    Operation.PUSH_LIST: [{"id": "t"}],
    Operation.PUSH_DELETE: [{"id": "t", "pushNotificationConfigId": "p"}],
    Operation.CARD: [{}],
}
REST: Final[Cases] = OLD | {
    Operation.SEND: [OLD_SEND, PROTO_SEND],
    Operation.PUSH_CREATE: [
        {"taskId": "t", **OLD_HOOK},
        {"taskId": "t", "pushNotificationConfig": OLD_HOOK},
        {"taskId": "t", "config_id": "q", "config": {"push_notification_config": {"url": "u"}}},
    ],
}
SOUND: Final[dict[tuple[str, str], Cases]] = {
    ("jsonrpc", "1.0"): NEW,
    ("jsonrpc", "0.3"): OLD,
    ("rest", "0.3"): REST,
    ("legacy", "0.3"): {
        Operation.SEND: [OLD_SEND],
        Operation.GET: [{"id": "t"}],
        Operation.CANCEL: [{"id": "t"}],
    },
}
VALUES: Final = WORDS | strategies.JSON | st.sampled_from(
    [True, 1, 2, 0, 1.0, 2.5, -1, 101, 2**31, "7", "2147483648", "TASK_STATE_UNSPECIFIED", "agent", "ROLE_AGENT",
     [], {}, [{}], [""], "x" * 257, "x" * 1025, "漢" * 100, "a\nb", "2026-05-28T09:30:00.123456+02:00", "-_8", "a/b"]
)  # fmt: skip


@st.composite
def changed(draw: st.DrawFn, base: Json, changes: int) -> Json:
    """The value with so many of its members replaced, removed, renamed or added."""
    value = copy.deepcopy(base)
    for _ in range(changes):
        holder, name = draw(st.sampled_from([*_places(value)] or [(value, "id")]))
        what = draw(st.sampled_from(["replace", "replace", "remove", "snake", "add"]))
        if what == "replace":
            holder[name] = copy.deepcopy(draw(VALUES))
        elif what == "remove":
            holder.pop(name, None) if isinstance(holder, dict) else holder.pop(name)
        elif isinstance(holder, dict) and what == "add":
            holder[draw(NAMES)] = copy.deepcopy(draw(VALUES))
        elif isinstance(holder, dict) and name in holder:
            holder["".join("_" + char.lower() if char.isupper() else char for char in name)] = holder.pop(name)
    return value


def _places(value: Json) -> Iterator[tuple[Any, Any]]:
    named = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in named:
        yield value, name
        yield from _places(inner)


@st.composite
def requests(draw: st.DrawFn, changes: st.SearchStrategy[int]) -> tuple[Any, Any, Operation, Json]:
    """A request in any form with some members changed."""
    form = draw(st.sampled_from([*SOUND]))
    operation = draw(st.sampled_from([*SOUND[form]] + [Operation.SEND] * 4))
    base = draw(st.sampled_from(SOUND[form][operation]))
    return *form, operation, draw(changed(base, draw(changes)))
