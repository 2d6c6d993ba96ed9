"""Invalid settings of the rotator."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.settings import SettingsError
from a2a_serverless.wiring.rotator import make_rotator
from tests.contexts import Context
from tests.loggers import kept_loggers

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSED = [
    ({"JWKS_MAX_AGE_SECONDS": "never"}, "JWKS_MAX_AGE_SECONDS must be a whole number from 1 to 86400, not 'never'"),
    ({}, "PUBLIC_TABLE_NAME is not set"),
]
CONTEXT = Context()


@pytest.fixture(autouse=True)
def _loggers() -> Iterator[None]:
    with kept_loggers():
        yield


@pytest.mark.parametrize("kind", ["Create", "Update"])
@pytest.mark.parametrize(("environment", "why"), REFUSED)
def test_cloudformation_is_told_at_once_which_setting_the_rotator_refuses(
    environment: dict[str, str], why: str, kind: str
) -> None:
    answers: list[tuple[str, Any]] = []
    rotator = make_rotator(environment, lambda url, body: answers.append((url, json.loads(body))))
    request = {"StackId": "s", "RequestId": "r", "LogicalResourceId": "KeyRing", "ResponseURL": "https://cfn.example"}
    rotator(request | {"RequestType": kind}, CONTEXT)
    ((url, answer),) = answers
    assert (url, answer["Status"], answer["Reason"]) == ("https://cfn.example", "FAILED", f"SettingsError: {why}")
    rotator(request | {"RequestType": "Delete"}, CONTEXT)
    assert answers[-1][1]["Status"] == "SUCCESS", "or the stack could not be rolled back or deleted"


@pytest.mark.parametrize("event", [{}, {"command": "rotate"}, {"command": "show"}, {"source": "aws.events"}])
def test_whoever_else_calls_such_a_rotator_fails_by_the_same_words(event: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="JWKS_MAX_AGE_SECONDS"):
        make_rotator({"JWKS_MAX_AGE_SECONDS": "never"})(event, CONTEXT)
