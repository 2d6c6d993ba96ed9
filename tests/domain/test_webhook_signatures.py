"""Signatures of webhooks: the vectors of the providers, and vectors of the standard library."""

from __future__ import annotations

import base64
import hashlib
import hmac
import traceback
from typing import Final

import pytest

from a2a_serverless.domain.errors import InvalidSignature
from a2a_serverless.domain.outside_events import SignedWith, check_secret, check_signature, parse_signed_with

NOW_S: Final = 1_614_265_330
BODY: Final = b'{"test": 2432232314}'
SECRET: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STANDARD: Final = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(NOW_S),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
HELLO: Final = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
GITHUB: Final = ("It's a Secret to Everybody", {"x-hub-signature-256": HELLO}, b"Hello, World!")


def stripe(secret: str, body: bytes, at: object = NOW_S) -> str:
    """An item v1 of the header of Stripe."""
    return "v1=" + hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def standard(webhook_id: str, at: object, body: bytes) -> dict[str, str]:
    """The headers of Standard Webhooks."""
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    digest = hmac.new(key, f"{webhook_id}.{at}.".encode() + body, hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": webhook_id, "webhook-timestamp": f"{at}", "webhook-signature": signature}


def check(scheme: str, secret: str, headers: dict[str, str], body: bytes = BODY, at_s: float = NOW_S) -> None:
    check_signature(scheme, secret, headers, body, int(at_s * 1000))


def test_the_vectors_of_the_providers_are_right() -> None:
    check("github", *GITHUB)
    check("standard-webhooks", SECRET, STANDARD)
    check("standard-webhooks", SECRET.removeprefix("whsec_"), STANDARD)


def test_a_webhook_with_several_signatures_needs_a_single_valid_signature() -> None:
    header = f"t={NOW_S},{stripe('old', BODY)}, {stripe('new', BODY)},v0=00"
    for secret in ("old", "new"):
        check("stripe", secret, {"stripe-signature": header})
    both = f"v1a,AAAA v1,AAAA {STANDARD['webhook-signature']}"
    check("standard-webhooks", SECRET, STANDARD | {"webhook-signature": both})


@pytest.mark.parametrize("seconds", [-300, 0, 300])
def test_a_signature_is_right_for_five_minutes(seconds: int) -> None:
    check("standard-webhooks", SECRET, STANDARD, at_s=NOW_S + seconds)
    check("stripe", "s", {"stripe-signature": f"t={NOW_S},{stripe('s', BODY)}"}, at_s=NOW_S + seconds)


@pytest.mark.parametrize("seconds", [-301, 301])
def test_a_signature_of_more_than_five_minutes_ago_or_ahead_is_refused(seconds: int) -> None:
    for scheme, secret, headers in (
        ("standard-webhooks", SECRET, STANDARD),
        ("stripe", "s", {"stripe-signature": f"t={NOW_S},{stripe('s', BODY)}"}),
    ):
        with pytest.raises(InvalidSignature, match="not of the last 5 minutes"):
            check(scheme, secret, headers, at_s=NOW_S + seconds)


@pytest.mark.parametrize("at", ["", "now", "-1", "1e9", "1" * 5000, "٣", f" {NOW_S}", f"{NOW_S}.0"])
def test_a_time_that_is_signed_and_no_number_is_refused(at: str) -> None:
    with pytest.raises(InvalidSignature):
        check("stripe", "s", {"stripe-signature": f"t={at},{stripe('s', BODY, at)}"})
    with pytest.raises(InvalidSignature):
        check("standard-webhooks", SECRET, standard("msg", at, BODY))


GOOD = stripe("s", BODY)
WRONG = {
    "stripe": [
        f"t={NOW_S}",
        f"t={NOW_S},{stripe('another', BODY)}",
        f"t={NOW_S},{stripe('s', BODY + b' ')}",
        f"t={NOW_S + 1},{GOOD}",
        f"t={NOW_S},{GOOD.replace('v1', 'v0')}",
        f"t={NOW_S},{GOOD[:-1]}",
        f"t={NOW_S},v1=",
        f"t={NOW_S},v1=\xe9",
        f"{GOOD}",
        "",
        "," * 10_000,
    ],
    "github": [
        HELLO.replace("sha256", "sha1"),
        HELLO.removeprefix("sha256="),
        HELLO[:-1],
        "sha256=",
        "sha256=\xe9",
        "",
    ],
    "standard-webhooks": ["v1,", "v1", "", "v2," + STANDARD["webhook-signature"][3:], "v1,\xe9", "v1,AAAA " * 1000],
}


@pytest.mark.parametrize(("scheme", "header"), [(scheme, header) for scheme in WRONG for header in WRONG[scheme]])
def test_a_wrong_signature_is_refused_and_no_error_has_the_secret(scheme: str, header: str) -> None:
    secret, headers, body = {
        "stripe": ("s", {"stripe-signature": header}, BODY),
        "github": (GITHUB[0], {"x-hub-signature-256": header}, GITHUB[2]),
        "standard-webhooks": (SECRET, STANDARD | {"webhook-signature": header}, BODY),
    }[scheme]
    with pytest.raises(InvalidSignature, match="is not one of this body") as refused:
        check(scheme, secret, headers, body)
    assert len(secret) == 1 or secret not in str(refused.value)


def test_a_request_without_the_header_is_told_which_one_is_missing() -> None:
    with pytest.raises(InvalidSignature, match="with the header webhook-signature only"):
        check("standard-webhooks", SECRET, {"stripe-signature": f"t={NOW_S},{GOOD}"})


def test_moving_bytes_from_the_body_into_the_id_breaks_the_signature() -> None:
    body = f"{NOW_S}.paid".encode()
    signed = standard("msg", NOW_S - 1, body)
    check("standard-webhooks", SECRET, signed, body)
    moved = signed | {"webhook-id": f"msg.{NOW_S - 1}", "webhook-timestamp": f"{NOW_S}"}
    with pytest.raises(InvalidSignature):
        check("standard-webhooks", SECRET, moved, b"paid")


@pytest.mark.parametrize("text", ["", "stripe", "stripe:", ":payments", "Stripe:payments", "payments"])
def test_another_scheme_is_an_error_that_lists_the_schemes(text: str) -> None:
    with pytest.raises(ValueError, match="Schemes: github, standard-webhooks, stripe"):
        parse_signed_with(text)


@pytest.mark.parametrize(
    ("scheme", "secret"),
    [
        ("stripe", ""),
        ("stripe", "\ud800"),
        ("github", "x" * 1025),
        ("github", "ü" * 513),
        ("standard-webhooks", "whsec_"),
        ("standard-webhooks", "whsec_no base64"),
    ],
)
def test_a_secret_that_the_scheme_cannot_use_is_an_error_without_it(scheme: str, secret: str) -> None:
    with pytest.raises(ValueError, match="The secret 'payments' is not 1 to 1024 bytes") as refused:
        check_secret(SignedWith(scheme, "payments"), secret)
    assert secret in {"", "whsec_"} or secret not in "".join(traceback.format_exception(refused.value))
