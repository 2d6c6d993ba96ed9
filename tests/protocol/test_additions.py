"""What we add to the protocol."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from a2a_serverless.domain.contents import LARGEST
from a2a_serverless.domain.cursors import Cursor, CursorState, Verification
from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.push_configs import Attempt, PushConfig, WebhookStatus
from a2a_serverless.protocol import additions, v1, v1_card
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.protojson import read_model

CONFIG = PushConfig(
    config_id="p",
    url="https://example.com",
    version="1.0",
    incarnation="i",
    created_at=0,
    token="a secret",
    credentials=None,
)
CURSOR = Cursor(
    config_id="p",
    incarnation="i",
    position=2,
    attempt=1,
    next_at=5000,
    state=CursorState.ACTIVE,
    failing_since=0,
    verification=Verification.VERIFIED,
)
ATTEMPT = Attempt(config_id="p", n=0, k=1, at=1000, ms=7, status=503, address="192.0.2.1")
PRINTED: dict[str, Any] = {
    "id": "p",
    "url": "https://example.com",
    "version": "1.0",
    "createdAt": "1970-01-01T00:00:00.000Z",
    "hasToken": True,
    "hasCredentials": False,
    "events": "all",
    "verification": "verified",
    "state": "active",
    "deliveredUpTo": 2,
    "lastEvent": 3,
    "failuresInARow": 1,
    "nextAttemptAt": "1970-01-01T00:00:05.000Z",
    "attempts": [
        {
            "eventNumber": 0,
            "attempt": 1,
            "at": "1970-01-01T00:00:01.000Z",
            "milliseconds": 7,
            "status": 503,
            "address": "192.0.2.1",
        }
    ],
}


def test_a_delivery_is_printed_without_secrets_and_without_what_is_not_known() -> None:
    one = WebhookStatus(TaskKey("acme", "o", "t"), CONFIG, CURSOR, 3, (ATTEMPT,))
    assert json.loads(additions.Delivery.of(one).json_bytes()) == PRINTED
    listed = additions.Deliveries(deliveries=(additions.Delivery.of(one, "acme/o/t"),))
    assert json.loads(listed.json_bytes()) == {"deliveries": [{"task": "acme/o/t", **PRINTED}]}
    assert json.loads(additions.Deliveries(deliveries=()).json_bytes()) == {"deliveries": []}


@pytest.mark.parametrize("state", [one for one in CursorState if one is not CursorState.ACTIVE])
def test_only_an_active_webhook_has_a_next_attempt(state: CursorState) -> None:
    one = WebhookStatus(TaskKey("acme", "o", "t"), CONFIG, replace(CURSOR, state=state), 3, ())
    printed = json.loads(additions.Delivery.of(one).json_bytes())
    assert (printed["state"], "nextAttemptAt" in printed, printed["attempts"]) == (state.value, False, [])


UPLOAD: dict[str, Any] = {"sha256": "a" * 64, "size": 5}


@pytest.mark.parametrize(
    ("model", "params", "fields"),
    [
        (additions.UploadRequest, UPLOAD | {"mediaType": "text/plain"}, []),
        (additions.UploadRequest, {}, ["sha256", "size"]),
        (additions.UploadRequest, UPLOAD | {"sha256": "A" * 64, "size": True}, ["sha256", "size"]),
        (additions.UploadRequest, UPLOAD | {"size": LARGEST + 1}, ["size"]),
    ],
)
def test_a_request_is_read_or_refused_with_its_fields(model: Any, params: Any, fields: list[str]) -> None:
    if not fields:
        read_model(model, params)
        return
    with pytest.raises(InvalidParams) as refused:
        read_model(model, params)
    assert [one.field for one in refused.value.violations] == fields


MODELS: set[Any] = {
    *(operation.request for operation in Operation),
    v1.Task,
    v1.StreamResponse,
    v1.ListTasksResponse,
    v1_card.AgentCard,
    additions.Deliveries,
    additions.UploadRequest,
}


@pytest.mark.parametrize("model", sorted(MODELS, key=str))
def test_every_model_has_a_schema(model: Any) -> None:
    assert model.model_json_schema(by_alias=True)["properties"]
