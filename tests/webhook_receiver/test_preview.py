import base64
import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from a2a_webhook_receiver.body import read_task
from a2a_webhook_receiver.errors import Refused, UnknownKey, WrongToken, naming
from a2a_webhook_receiver.exchange import WebhookRequest
from a2a_webhook_receiver.preview import TEXT, view_delivery, view_part, view_prompt, view_refusal
from a2a_webhook_receiver.receive import check
from a2a_webhook_receiver.strict_json import Json
from a2a_webhook_receiver.subject import Subject
from a2a_webhook_receiver.tasks import Delivery
from a2a_webhook_receiver.verifier import VerifiedNotification
from tests.webhook_receiver.sending import EXPECTED, receiving, signed
from vectors.cases import AUDIENCE, ISSUER, NOW, TASK, TOKEN, good_header, good_headers, good_token

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


def with_header(name: str, value: str) -> WebhookRequest:
    request = signed()
    kept = [(each, other) for each, other in request.headers if each.lower() != name.lower()]
    return replace(request, headers=(*kept, (name, value)))


def view(*parts: dict[str, Any], name: str = "a.md") -> Any:
    artifact = {"artifactId": "a-1", "name": name, "parts": list(parts)}
    body = {"artifactUpdate": {"taskId": TASK, "contextId": "c", "artifact": artifact}}
    with receiving(EXPECTED) as receiver:
        notification = check(receiver, signed(body), NOW)
    assert isinstance(notification, VerifiedNotification)
    return view_delivery(Delivery(notification, NOW, late=False))


def shown(part: dict[str, Any]) -> Any:
    return view(part)["artifacts"][0]["parts"][0]


def raw(content: bytes, **more: str) -> dict[str, str]:
    return {"raw": base64.b64encode(content).decode(), **more}


def test_the_preview_cuts_long_texts_and_names() -> None:
    assert shown({"text": "x" * TEXT})["text"] == "x" * TEXT
    assert shown({"text": "x" * (TEXT + 1)})["text"] == "x" * TEXT + "…"
    assert len(view({"text": "x"}, name="n" * 10_000)["artifacts"][0]["name"]) == 201


def test_a_text_with_letters_outside_of_the_basic_plane_is_not_said_to_be_cut() -> None:
    assert (shown({"text": "🚢" * TEXT})["cut"], shown({"text": "x" * (TEXT + 1)})["cut"]) == (False, True)


def test_the_type_and_the_name_of_a_text_are_shown() -> None:
    text = shown({"text": "x", "mediaType": "text/markdown", "filename": "a.md"})
    assert (text["type"], text["name"]) == ("text/markdown", "a.md")


def test_data_is_shown_as_json_with_its_letters() -> None:
    assert json.loads(shown({"data": {"风": [1, None]}})["text"]) == {"风": [1, None]}
    assert "风" in shown({"data": {"风": 1}})["text"]


def whole(at: int, *parts: dict[str, Any]) -> Any:
    artifact = {"artifactId": "a-1", "parts": list(parts)}
    return view_part(signed({"artifactUpdate": {"taskId": TASK, "contextId": "c", "artifact": artifact}}), at)


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0" + bytes(40), "image/jpeg"),
        (b"GIF89a" + bytes(40), "image/gif"),
        (b"RIFF\x01\x02\x03\x04WEBPVP8 " + bytes(40), "image/webp"),
        (PNG + bytes(700_000), "image/png"),
    ],
    ids=["png", "jpeg", "gif", "webp", "large"],
)
def test_a_picture_is_named_and_can_be_viewed_whole(content: bytes, media_type: str) -> None:
    part = raw(content, filename="boat.png", mediaType="image/png")
    view = shown(part)
    assert (view["kind"], view["name"], view["bytes"], view["at"]) == ("image", "boat.png", len(content), 0)
    assert whole(0, part) == {"source": f"data:{media_type};base64," + base64.b64encode(content).decode()}


def test_a_long_text_can_be_viewed_whole_and_a_file_that_is_no_picture_cannot() -> None:
    long = {"text": "x" * (TEXT + 1)}
    assert shown(long)["length"] == TEXT + 1
    assert whole(1, {"text": "first"}, long) == {"text": "x" * (TEXT + 1)}
    assert whole(0, raw(b"<svg onload='alert(1)'/>", mediaType="image/svg+xml")) == {}
    assert whole(1, {"text": "only one"}) is None
    assert view_part(WebhookRequest((("A2A-Version", "1.0"),), b"no JSON"), 0) is None


@pytest.mark.parametrize(
    ("history", "prompt"),
    [
        ([{"role": "ROLE_USER", "parts": [{"text": " Draw 一只船\nplease "}]}], "Draw 一只船"),
        ([{"role": "ROLE_USER", "parts": [{"text": "# Sails\n\nThe wind"}]}], "Sails"),
        ([{"role": "user", "parts": [{"file": {"name": "a.md", "uri": "https://a.example"}}]}], "a.md"),
        ([{"role": "ROLE_AGENT", "parts": [{"text": "What?"}]}], None),
        ([{"role": "ROLE_USER", "parts": [{"data": 1}]}], None),
        ([7, {"role": "ROLE_USER", "parts": 8}], None),
        ({"role": "ROLE_USER"}, None),
    ],
)
def test_the_prompt_is_the_beginning_of_the_clients_first_message(history: Any, prompt: str | None) -> None:
    task = {"id": TASK, "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}, "history": history}
    assert view_prompt(read_task(task)) == prompt


@pytest.mark.parametrize(
    "part",
    [
        raw(b"<svg onload='alert(1)'/>", mediaType="image/png"),
        raw(b"%PDF-1.7", mediaType="image/gif"),
        raw(b"<script>", mediaType="text/html"),
        {"raw": "not base64!", "mediaType": "image/png"},
        {"raw": "ü", "mediaType": "image/png"},
    ],
    ids=["svg", "pdf", "html", "not base64", "not ascii"],
)
def test_the_preview_describes_a_file_that_is_no_safe_picture(part: dict[str, str]) -> None:
    assert shown(part)["kind"] == "file"
    assert "source" not in shown(part)


def test_a_file_is_described_by_name_type_and_size() -> None:
    part = shown(raw(b"x" * 1500, filename="a.pdf", mediaType="application/pdf"))
    assert part["text"] == "a.pdf, application/pdf, 1,500 bytes"


def test_a_picture_with_anything_else_behind_it_is_not_shown() -> None:
    assert whole(0, {"raw": base64.b64encode(PNG + bytes(50)).decode() + '"><script>'}) == {}


def test_only_the_first_parts_are_shown() -> None:
    assert len(view(*[{"text": str(number)} for number in range(20)])["artifacts"][0]["parts"]) == 8


def claimed(*headers: tuple[str, str]) -> Json:
    return view_refusal(UnknownKey("the issuer publishes no such key"), headers)["claimed"]


def test_a_refusal_names_the_event_of_an_authentic_request_only() -> None:
    assert "taskId" not in view_refusal(UnknownKey("the issuer publishes no such key"), good_headers(good_token()))
    with pytest.raises(WrongToken) as raised, naming(Subject("task", "config", "n-1", 3)):
        raise WrongToken(WrongToken.reason)
    view = view_refusal(raised.value, good_headers(good_token()))
    assert (view["taskId"], view["eventNumber"]) == ("task", 3)


def differing(request: WebhookRequest) -> tuple[Json, Json]:
    with receiving(EXPECTED) as receiver, pytest.raises(Refused) as raised:
        check(receiver, request, NOW)
    view = view_refusal(raised.value, request.headers)["refusal"]
    assert isinstance(view, dict)
    assert TOKEN not in json.dumps(view)
    return view.get("expected"), view.get("received")


@pytest.mark.parametrize(
    ("request_", "expected", "received"),
    [
        (signed(aud="https://other.example/"), AUDIENCE, "https://other.example/"),
        (signed(aud="x" * 500), AUDIENCE, "x" * 200 + "…"),
        (signed(iss="https://other.example"), ISSUER, "https://other.example"),
        (signed(now=NOW - 900_000), "less than 60 s ago by our clock", "600 s ago"),
        (signed(now=NOW + 900_000), "at most 60 s ahead", "900 s"),
        (signed(exp=NOW // 1000 + 3600), "1 to 300 s from iat to exp", "3600 s"),
        (replace(signed(), body=b"{}"), sha256(signed().body).hexdigest(), sha256(b"{}").hexdigest()),
        (with_header("Content-Type", "text/html"), "application/a2a+json or application/json", "text/html"),
        (with_header("X-A2A-Notification-Token", "another-token-of-16"), None, None),
    ],
    ids=["audience", "long", "issuer", "expired", "future", "lifetime", "body", "media", "token"],
)
def test_a_refusal_names_the_values_that_differ_and_no_secret(
    request_: WebhookRequest, expected: str | None, received: str | None
) -> None:
    assert differing(request_) == (expected, received)


def test_an_unknown_key_is_named_beside_those_that_the_issuer_publishes() -> None:
    header, claims, signature = good_token().split(".")
    unknown = base64.urlsafe_b64encode(json.dumps(good_header(kid="another")).encode()).decode().rstrip("=")
    request = WebhookRequest(tuple(good_headers(f"{unknown}.{claims}.{signature}")), signed().body)
    assert header != unknown
    expected, received = differing(request)
    assert received == "another"
    assert str(good_header()["kid"]) in str(expected).split(" or ")


def test_a_refusal_shows_what_was_claimed_and_nothing_secret() -> None:
    view = view_refusal(UnknownKey("the issuer publishes no such key"), good_headers(good_token(aud="x" * 500)))
    assert view["refusal"] == {
        "code": "unknown-key",
        "step": "key",
        "reason": "the issuer publishes no such key",
        "remedy": UnknownKey.remedy,
    }
    assert isinstance(view["claimed"], dict)
    assert view["claimed"]["aud"] == "x" * 200 + "…"
    assert "client-token" not in json.dumps(view)


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("Authorization", "Basic abc"),),
        (("Authorization", "Bearer a.b"),),
        (("Authorization", "Bearer !!!.???.***"),),
        (("Authorization", "Bearer " + "A" * 100 + ".é.x"),),
        (("X-A2A-Notification-JWT", ""),),
    ],
    ids=repr,
)
def test_the_preview_shows_no_claims_that_it_cannot_read(headers: tuple[tuple[str, str], ...]) -> None:
    assert claimed(*headers) == {}
