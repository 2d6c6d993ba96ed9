import base64
import json
from pathlib import Path
from typing import Any

import pytest

from a2a_webhook_receiver.errors import Refused
from a2a_webhook_receiver.expectations import Expectation, digest
from a2a_webhook_receiver.keys import parse_key_set
from a2a_webhook_receiver.verifier import VerifiedChallenge, verify
from vectors.make import PATH, render

VECTORS: dict[str, Any] = json.loads(PATH.read_text())
KEYS = parse_key_set(json.dumps(VECTORS["keys"]).encode())


def expectation_of(number: int, listed: dict[str, Any]) -> Expectation:
    return Expectation(
        id=str(number),
        expires=listed["expires"],
        task_id=listed.get("taskId"),
        token_digest=digest(listed["token"]) if "token" in listed else None,
        authorization_digest=digest(listed["authorization"]) if "authorization" in listed else None,
    )


def verdict(case: dict[str, Any]) -> tuple[str | None, str | None]:
    try:
        verified = verify(
            [(name, value) for name, value in case["headers"]],
            base64.b64decode(case["body"]),
            KEYS,
            case["now"],
            issuer=VECTORS["issuer"],
            audience=VECTORS["audience"],
            expectations=[expectation_of(*each) for each in enumerate(case["expectations"])],
        )
    except Refused as refusal:
        return refusal.code, None
    return None, verified.challenge if isinstance(verified, VerifiedChallenge) else None


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_the_verifier_reaches_the_verdict_of_the_vector(case: dict[str, Any]) -> None:
    assert verdict(case) == (case["code"], case["challenge"])


def test_the_vectors_are_what_their_script_makes() -> None:
    assert Path(PATH).read_text() == render()
