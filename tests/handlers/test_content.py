"""What a message may hold: media types of the card, and limits that are named. What is refused leaves nothing."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.agent import Skill
from a2a_serverless.domain.contents import UPLOADS, StoredFile
from a2a_serverless.http.api import ANYBODY
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.strict_json import LIMITS
from a2a_serverless.services.operation_runner import MAX_FILES
from tests.client.deployment import Deployment
from tests.echo import Writer
from tests.handlers.requests import BINDINGS, Names

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.http.messages import HttpRequest
    from tests.edge import HttpResponse

CURRENT = ("1.0 JSON-RPC", "1.0 REST", "0.3 JSON-RPC", "0.3 REST")
SENDS = [(binding, operation) for binding in CURRENT for operation in (Operation.SEND, Operation.STREAM)]
EACH = pytest.mark.parametrize(("binding", "operation"), SENDS)
PAINTER = Skill("paint", "Paint", "Paints.", ("art",), input_modes=("image/*",))
CONTENT = base64.b64encode(b"content").decode()


class Place:
    """An agent that takes texts and CSV, and pictures for one of its skills."""

    def __init__(self) -> None:
        agent = replace(Writer().agent, input_modes=("text/plain", "text/csv"))
        self.deployment = Deployment(replace(agent, skills=(*agent.skills, PAINTER)))

    def send(self, binding: str, change: Callable[[Any], None], operation: Operation = Operation.SEND) -> HttpResponse:
        """The answer to a message that was changed; ``change`` gets the request's params."""
        return self.deployment.edge.answer(changed(BINDINGS[binding][operation](Names()), change))

    def keep(self, content: bytes) -> StoredFile:
        """An upload of the caller's."""
        return self.deployment.world.contents.store(ANYBODY.key(UPLOADS), content)

    @property
    def empty(self) -> bool:
        return not self.deployment.world.table.feed


def changed(request: HttpRequest, change: Callable[[Any], None]) -> HttpRequest:
    document = json.loads(request.body)
    change(document.get("params", document))
    return request._replace(body=json.dumps(document).encode())


def file_of(binding: str, media_type: str | None, content: str = CONTENT) -> Any:
    """A file as its binding spells it."""
    if binding.startswith("1.0"):
        return {"raw": content} | ({"mediaType": media_type} if media_type else {})
    said = {"mimeType": media_type} if media_type else {}
    if binding == "0.3 JSON-RPC":
        return {"kind": "file", "file": {"bytes": content} | said}
    return {"file": {"fileWithBytes": content} | said}


def refusal(answer: HttpResponse) -> tuple[int, str, dict[str, str]]:
    """Status, reason and the violations by their fields. A 0.3 stream says them as its only event."""
    body = answer.body
    if answer.stream is not None:
        stream: Any = answer.stream
        body = asyncio.run(anext(stream)).partition(b"data: ")[2]
    document = json.loads(body)
    error = document["error"] if isinstance(document["error"], dict) else document
    details = error.get("data") or error["details"]
    wrong = [one for detail in details for one in detail.get("fieldViolations", [])]
    return answer.status, details[0]["reason"], {one["field"]: one["description"] for one in wrong}


# ---- Media types


@EACH
@pytest.mark.parametrize("media_type", ["application/zip", "text/html", "audio/*", "nonsense"])
def test_a_file_of_a_type_that_the_card_does_not_have_is_refused_with_those_that_it_has(
    media_type: str, binding: str, operation: Operation
) -> None:
    place = Place()
    parts = [{"text": "see"}, file_of(binding, media_type)]
    answer = place.send(binding, lambda params: params["message"].update(parts=parts), operation)
    status, reason, wrong = refusal(answer)
    assert reason == "CONTENT_TYPE_NOT_SUPPORTED"
    assert wrong == {"message.parts[1].mediaType": f"must be one of text/plain, text/csv, image/*, not {media_type}"}
    assert status == {"1.0 REST": 400, "0.3 REST": 415}.get(binding, 200) or answer.stream is not None
    assert place.empty


@pytest.mark.parametrize("binding", CURRENT)
@pytest.mark.parametrize("media_type", ["text/csv", "TEXT/CSV; header=present", "image/png", "text/*", None])
def test_a_file_of_a_type_of_the_agent_or_of_a_skill_is_taken_and_so_is_one_that_says_none(
    media_type: str | None, binding: str
) -> None:
    parts = [file_of(binding, media_type)]
    assert b"error" not in Place().send(binding, lambda params: params["message"].update(parts=parts)).body


# ---- Uploads that a message names


def address(binding: str, url: str) -> Any:
    """A file at a URL as its binding spells it."""
    if binding.startswith("1.0"):
        return {"url": url}
    return {"kind": "file", "file": {"uri": url}} if binding == "0.3 JSON-RPC" else {"file": {"fileWithUri": url}}


@EACH
@pytest.mark.parametrize("size", [0, 7])
def test_a_message_that_names_uploads_which_are_not_there_is_refused_with_their_places(
    size: int, binding: str, operation: Operation
) -> None:
    place = Place()
    kept = place.keep(b"content")
    lie = StoredFile(UPLOADS, kept.sha256, 8)
    missing = StoredFile(UPLOADS, "0" * 64, size)
    named = (kept, missing, lie, missing)
    parts = [{"text": "see"}, *(address(binding, one.address) for one in named)]
    _, reason, wrong = refusal(place.send(binding, lambda params: params["message"].update(parts=parts), operation))
    assert reason == "INVALID_PARAMS"
    assert set(wrong) == {"message.parts[2].url", "message.parts[3].url"}
    assert all("names no upload of yours" in text for text in wrong.values())
    assert place.empty


@pytest.mark.parametrize("content", [b"c", b"content"])
@pytest.mark.parametrize("binding", CURRENT)
def test_a_message_that_names_uploads_which_are_there_is_taken(binding: str, content: bytes) -> None:
    place = Place()
    kept = place.keep(content)
    parts = [address(binding, kept.address)]
    assert b"error" not in place.send(binding, lambda params: params["message"].update(parts=parts)).body


def test_a_message_that_names_too_many_uploads_is_refused_before_any_is_looked_for() -> None:
    place = Place()
    parts = [{"url": StoredFile(UPLOADS, f"{n:064x}", 7).address} for n in range(MAX_FILES + 1)]
    answer = place.send("1.0 JSON-RPC", lambda params: params["message"].update(parts=parts))
    _, _, wrong = refusal(answer)
    assert wrong == {
        f"message.parts[{MAX_FILES}].url": f"is one too many: a message may name {MAX_FILES} different uploads"
    }


# ---- Limits


def many_parts(params: Any) -> None:
    params["message"]["parts"] = [{"text": "x"}] * (LIMITS.parts + 1)


def much_metadata(params: Any) -> None:
    params["message"]["metadata"] = {"x": "x" * LIMITS.metadata}


def deep_metadata(params: Any) -> None:
    inner: Any = 1
    for _ in range(LIMITS.depth):
        inner = [inner]
    params["message"]["metadata"] = {"x": inner}


def many_modes(params: Any) -> None:
    params["configuration"]["acceptedOutputModes"] = ["text/plain"] * (LIMITS.items + 1)


def big_body(params: Any) -> None:
    params["message"]["parts"] = [{"text": "x" * LIMITS.body}]


def many_values(params: Any) -> None:
    params["message"]["parts"][0] = {"data": [[]] * LIMITS.values}


TOO_MUCH = [
    (many_parts, "INVALID_PARAMS", 400, {"message.parts": "must be a list of at most 256"}, ""),
    (much_metadata, "INVALID_PARAMS", 400, {"message.metadata": "must have at most 65536 bytes"}, ""),
    (many_modes, "INVALID_PARAMS", 400, {"configuration.acceptedOutputModes": "must be a list of at most 64"}, ""),
    (deep_metadata, "INVALID_REQUEST", 400, {}, "at most 56 levels are allowed"),
    (many_values, "INVALID_REQUEST", 413, {}, "more than 100000 JSON values"),
    (big_body, "INVALID_REQUEST", 413, {}, "at most 5800000 are allowed"),
]


@EACH
@pytest.mark.parametrize(
    ("change", "why", "code", "fields", "text"), TOO_MUCH, ids=[change.__name__ for change, *_ in TOO_MUCH]
)
def test_content_above_a_limit_is_refused_with_the_limit(
    change: Any, why: str, code: int, fields: dict[str, str], text: str, binding: str, operation: Operation
) -> None:
    place = Place()
    answer = place.send(binding, change, operation)
    status, reason, wrong = refusal(answer)
    assert reason == why
    assert text.encode() in answer.body
    assert wrong == fields
    assert status == (code if "REST" in binding else 200)
    assert place.empty


@pytest.mark.parametrize("binding", CURRENT)
def test_a_message_at_each_of_its_limits_is_accepted(binding: str) -> None:
    def change(params: Any) -> None:
        params["message"]["parts"] = [{"text": "x"}] * LIMITS.parts
        params["message"]["metadata"] = {"x": "x" * (LIMITS.metadata - len('{"x":""}'))}
        params["configuration"]["acceptedOutputModes"] = ["text/plain"] * LIMITS.items

    assert b"error" not in Place().send(binding, change).body


@pytest.mark.parametrize("binding", CURRENT)
def test_a_file_of_four_megabytes_is_taken_inline(binding: str) -> None:
    place = Place()
    content = base64.b64encode(bytes(4 * 1024 * 1024)).decode()
    parts = [file_of(binding, "image/png", content)]
    assert b"error" not in place.send(binding, lambda params: params["message"].update(parts=parts)).body
    assert not place.empty
