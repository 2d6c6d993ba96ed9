import base64
import json
from typing import Any

import pytest

from a2a_webhook_receiver.errors import UnknownKey
from a2a_webhook_receiver.preview import PICTURE, TEXT, view_delivery, view_refusal
from a2a_webhook_receiver.receive import check
from a2a_webhook_receiver.strict_json import Json
from a2a_webhook_receiver.tasks import Delivery
from a2a_webhook_receiver.verifier import VerifiedNotification
from tests.webhook_receiver.sending import EXPECTED, receiving, signed
from vectors.cases import NOW, TASK, good_headers, good_token

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


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


def test_long_text_is_cut() -> None:
    assert shown({"text": "x" * TEXT})["text"] == "x" * TEXT
    assert shown({"text": "x" * (TEXT + 1)})["text"] == "x" * TEXT + "…"
    assert len(view({"text": "x"}, name="n" * 10_000)["artifacts"][0]["name"]) == 201


def test_data_is_shown_as_json_with_its_letters() -> None:
    assert json.loads(shown({"data": {"风": [1, None]}})["text"]) == {"风": [1, None]}
    assert "风" in shown({"data": {"风": 1}})["text"]


def test_a_small_png_is_shown_as_a_picture() -> None:
    part = shown(raw(PNG, filename="boat.png", mediaType="image/png"))
    assert part["kind"] == "image"
    assert part["source"] == "data:image/png;base64," + base64.b64encode(PNG).decode()


@pytest.mark.parametrize(
    "part",
    [
        raw(b"<svg onload='alert(1)'/>", mediaType="image/png"),
        raw(PNG + bytes(PICTURE), mediaType="image/png"),
        raw(b"GIF89a", mediaType="image/gif"),
        raw(b"<script>", mediaType="text/html"),
        {"raw": "not base64!", "mediaType": "image/png"},
        {"raw": base64.b64encode(PNG).decode() + '"><script>', "mediaType": "image/png"},
        {"raw": "ü", "mediaType": "image/png"},
    ],
    ids=["svg", "large", "gif", "html", "not base64", "markup behind", "not ascii"],
)
def test_any_other_file_is_only_described(part: dict[str, str]) -> None:
    assert shown(part)["kind"] == "file"
    assert "source" not in shown(part)


def test_a_file_is_described_by_name_type_and_size() -> None:
    part = shown(raw(b"x" * 1500, filename="a.pdf", mediaType="application/pdf"))
    assert part["text"] == "a.pdf, application/pdf, 1,500 bytes"


def test_only_the_first_parts_are_shown() -> None:
    assert len(view(*[{"text": str(number)} for number in range(20)])["artifacts"][0]["parts"]) == 8


def claimed(*headers: tuple[str, str]) -> Json:
    return view_refusal(UnknownKey("the issuer publishes no such key"), headers)["claimed"]


def test_a_refusal_shows_what_was_claimed_and_nothing_secret() -> None:
    view = view_refusal(UnknownKey("the issuer publishes no such key"), good_headers(good_token(aud="x" * 500)))
    assert view["refusal"] == {"code": "unknown-key", "step": "key", "reason": "the issuer publishes no such key"}
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
def test_what_cannot_be_read_is_not_shown(headers: tuple[tuple[str, str], ...]) -> None:
    assert claimed(*headers) == {}
