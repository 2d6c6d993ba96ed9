"""Where the new models answer otherwise than the codec before them, each with its reason and an example.

Nothing that was taken is refused by them but for what is marked so, and nothing reads as another value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.protocol.operations import Operation
from tests.protocol.vectors import camel_named
from tests.wire.test_v1 import MESSAGE

if TYPE_CHECKING:
    from tests.protocol.codec_pairs import Refused

Json = Any
MOST: Final = 16  # violations are named


@dataclass(frozen=True)
class Difference:
    """``new`` and ``old`` are the fields that each refuses; None when it takes the request."""

    reason: str
    binding: str
    version: str
    operation: Operation
    params: Json
    new: tuple[str, ...] | None
    old: tuple[str, ...] | None


DIFFERENCES: Final = (
    Difference(
        "A field is named as the client has spelled it.",
        "jsonrpc", "1.0", Operation.SEND, {"message": MESSAGE | {"context_id": 5}},
        new=("message.context_id",), old=("message.contextId",),
    ),
    Difference(
        "A field is refused once, with the first reason.",
        "jsonrpc", "1.0", Operation.SEND, {"message": ""},
        new=("message",), old=("message", "message"),
    ),
    Difference(
        "The tenant is named with everything else that is wrong.",
        "jsonrpc", "1.0", Operation.GET, {"tenant": 5},
        new=("tenant", "id"), old=("id",),
    ),
    Difference(
        "Violations come in the order of the members, those of inner objects where they stand.",
        "jsonrpc", "0.3", Operation.PUSH_CREATE, {},
        new=("taskId", "pushNotificationConfig"), old=("pushNotificationConfig", "taskId"),
    ),
    Difference(
        "A member of a wrong type is named before it is asked which one is meant.",
        "jsonrpc", "1.0", Operation.SEND, {"message": MESSAGE | {"parts": [{"text": 5, "url": "u"}]}},
        new=("message.parts[0].text",), old=("message.parts[0]",),
    ),
    Difference(
        "What should hold the configuration is refused, and not besides that there is none.",
        "rest", "0.3", Operation.PUSH_CREATE, {"taskId": "t", "config": 5},
        new=("config",), old=("config", "url"),
    ),
    Difference(
        "Taken in more places: the older shapes read ``content`` too.",
        "legacy", "0.3", Operation.SEND,
        {"message": {"messageId": "m", "role": "user", "content": [{"text": "a"}]}},
        new=None, old=("message.parts",),
    ),
    Difference(
        "Refused now: null under one spelling of a name hides the value under the other.",
        "jsonrpc", "1.0", Operation.GET, {"id": None, "historyLength": None, "history_length": -1},
        new=("id",), old=("id", "historyLength"),
    ),
    Difference(
        "Refused now: members of a webhook's configuration in a send that nobody reads are read.",
        "jsonrpc", "1.0", Operation.SEND,
        {"message": MESSAGE, "configuration": {"taskPushNotificationConfig": {"url": "u", "taskId": 5}}},
        new=("configuration.taskPushNotificationConfig.taskId",), old=None,
    ),
)  # fmt: skip


def is_listed(binding: str, params: Json) -> bool:
    """Whether a request has something in it that is taken by one and refused by the other."""
    if isinstance(params, list):
        return any(is_listed(binding, one) for one in params)
    if not isinstance(params, dict):
        return False
    spelled = [camel_named(name) for name in params]
    inline = params.get("taskPushNotificationConfig", params.get("task_push_notification_config"))
    return (
        len(set(spelled)) < len(spelled)
        or (binding == "legacy" and "content" in params)
        or (isinstance(inline, dict) and bool(inline.keys() & {"taskId", "task_id"}))
        or _has_two_of(params, ("bytes", "fileWithBytes"), ("uri", "fileWithUri", "url"), ("mimeType", "mediaType"))
        or any(is_listed(binding, one) for one in params.values())
    )


def _has_two_of(params: Json, *groups: tuple[str, ...]) -> bool:
    names = {camel_named(name) for name in params}
    return any(len(names & set(group)) > 1 for group in groups)


def is_explained(new: Refused, old: Refused) -> bool:
    """Whether two refusals are of the same things, but for what is listed."""
    if new.error != old.error:
        return False
    if MOST in {len(new.violations), len(old.violations)}:
        return True
    ours, theirs = _places(new), _places(old)
    unshaped = any(place.endswith(("config", "pushNotificationConfig")) for place in ours)
    return all(_is_near(place, theirs) for place in ours - {"tenant"}) and all(
        _is_near(place, ours) or (unshaped and place.endswith("url")) for place in theirs
    )


def _places(refusal: Refused) -> set[str]:
    found = {camel_named(field) for field, _ in refusal.violations}
    return {"message" + place.removeprefix("request") if place.startswith("request") else place for place in found}


def _is_near(place: str, others: set[str]) -> bool:
    return any(place == other or _is_inside(place, other) or _is_inside(other, place) for other in others)


def _is_inside(place: str, outer: str) -> bool:
    return place.startswith((f"{outer}.", f"{outer}["))
