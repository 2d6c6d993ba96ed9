"""Cards and the catalog as they are served, verified by the letter (8.4.3) with nothing of ours."""

from __future__ import annotations

import base64
import json
from copy import deepcopy
from typing import Any

import pytest
from jwt import InvalidSignatureError, PyJWK, PyJWS

from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.services.key_rotation import ensure_ring
from sample_agents import conformance
from tests.conformance.live import Live

PUBLIC = "/conformance/.well-known/agent-card.json"
EXTENDED = "/conformance/extendedAgentCard"


def served(path: str, shape: Any = "both") -> tuple[dict[str, Any], dict[str, Any]]:
    """The card that a fresh deployment answers with, and the keys that it publishes, by their ids."""
    live = Live([conformance.full], shape=shape)
    ensure_ring(live.rotation)

    def document(where: str) -> dict[str, Any]:
        answer = live.edge.answer(HttpRequest("GET", where, {"a2a-version": "1.0"}))
        assert answer.status == 200
        return dict(json.loads(answer.body))

    return document(path), {key["kid"]: key for key in document("/.well-known/jwks.json")["keys"]}


def verified(card: dict[str, Any], keys: dict[str, Any]) -> int:
    """How many signatures fit the card as it was received, without ``signatures``.

    Our cards hold no numbers, and their members' names are ASCII: so JCS (RFC 8785) is sorted and compact JSON.
    """
    received = {name: value for name, value in card.items() if name not in {"signatures", "signature"}}
    payload = json.dumps(received, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    carried = base64.urlsafe_b64encode(payload).rstrip(b"=").decode()
    fit = 0
    for one in card["signatures"]:
        token = f"{one['protected']}.{carried}.{one['signature']}"
        header = json.loads(base64.urlsafe_b64decode(one["protected"] + "=="))
        assert header["jku"] == "http://127.0.0.1:1/.well-known/jwks.json"
        try:
            PyJWS().decode(token, PyJWK(keys[header["kid"]]).key, algorithms=["ES256"])
        except InvalidSignatureError:
            continue
        fit += 1
    return fit


@pytest.mark.requirement(101, 102)
@pytest.mark.parametrize(("path", "shape"), [(PUBLIC, "both"), (PUBLIC, "v1"), (EXTENDED, "both"), (EXTENDED, "v1")])
def test_a_card_verifies_as_it_was_received(path: str, shape: str) -> None:
    card, keys = served(path, shape)
    assert verified(card, keys) == 1


def test_the_catalog_verifies_as_a_detached_jws_over_all_but_its_signature() -> None:
    catalog, keys = served("/.well-known/ai-catalog.json")
    protected, empty, signature = catalog["signature"].split(".")
    assert empty == ""
    assert verified(catalog | {"signatures": [{"protected": protected, "signature": signature}]}, keys) == 1
    catalog["entries"][0]["url"] = "https://elsewhere.example.com"
    assert verified(catalog | {"signatures": [{"protected": protected, "signature": signature}]}, keys) == 0


@pytest.mark.requirement(101)
@pytest.mark.parametrize("member", ["description", "url", "preferredTransport", "supportedInterfaces"])
def test_a_card_that_was_altered_in_either_version_does_not(member: str) -> None:
    card, keys = served(PUBLIC)
    altered = deepcopy(card)
    altered[member] = "https://elsewhere.example.com"
    assert verified(altered, keys) == 0


def test_a_card_for_0_3_only_has_no_signature_because_0_3_has_no_canonical_form() -> None:
    card, _ = served(PUBLIC, "v0_3")
    assert card["protocolVersion"].startswith("0.3")
    assert "signatures" not in card


@pytest.mark.requirement(101)
def test_a_card_that_has_lost_its_members_of_0_3_still_verifies_for_those_who_know_1_0_only() -> None:
    card, keys = served(PUBLIC)
    alone, _ = served(PUBLIC, "v1")
    known = {name: value for name, value in card.items() if name in alone}
    known["supportedInterfaces"] = alone["supportedInterfaces"]
    known["capabilities"] = alone["capabilities"]
    assert verified(known, keys) == 1
