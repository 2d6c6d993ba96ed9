"""What we add to the protocol, as models beside what prints it today."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.push import Attempt, Cursor, CursorState, PushConfig, Verification, WebhookStatus
from a2a_serverless.protocol import additions, v1, v1_card
from a2a_serverless.protocol.codecs import REQUESTS
from a2a_serverless.protocol.validation import read
from a2a_serverless.wire.deliveries import print_standing, print_standings

SOME_TIME = st.integers(0, 4_102_444_800_000)
NUMBERS = st.integers(0, 1000)
MAYBE = st.none() | st.text(max_size=5)
STANDINGS = st.builds(
    WebhookStatus,
    key=st.just(TaskKey("acme", "o", "t")),
    config=st.builds(
        PushConfig,
        config_id=st.text(max_size=5),
        url=st.just("https://example.com"),
        wire=st.sampled_from(["1.0", "0.3"]),
        incarnation=st.just("i"),
        created_at=SOME_TIME,
        token=MAYBE,
        credentials=MAYBE,
    ),
    cursor=st.builds(
        Cursor,
        config_id=st.just("p"),
        incarnation=st.just("i"),
        position=NUMBERS,
        attempt=NUMBERS,
        next_at=st.just(0) | SOME_TIME,
        state=st.sampled_from(CursorState),
        failing_since=st.just(0) | SOME_TIME,
        verification=st.sampled_from(Verification),
    ),
    last=NUMBERS,
    attempts=st.lists(
        st.builds(
            Attempt,
            config_id=st.just("p"),
            n=NUMBERS,
            k=NUMBERS,
            at=SOME_TIME,
            ms=NUMBERS,
            status=st.none() | NUMBERS,
            address=MAYBE,
            error=MAYBE,
            kid=MAYBE,
            next_at=st.none() | SOME_TIME,
        ),
        max_size=2,
    ).map(tuple),
)


@given(st.lists(STANDINGS, max_size=2))
@settings(deadline=None, max_examples=60)
def test_deliveries_are_printed_as_they_were(standings: list[WebhookStatus]) -> None:
    listed = additions.Deliveries(deliveries=tuple(additions.Delivery.of(one) for one in standings))
    assert json.loads(listed.json_bytes()) == print_standings(standings)
    for one in standings:
        named = additions.Delivery.of(one, "acme/o/t")
        assert json.loads(named.json_bytes()) == {"task": "acme/o/t", **print_standing(one)}


UPLOAD: dict[str, Any] = {"sha256": "a" * 64, "size": 5}
ERASE: dict[str, Any] = {"tenant": "acme", "owner": "o"}


@pytest.mark.parametrize(
    ("model", "params", "fields"),
    [
        (additions.UploadRequest, UPLOAD | {"mediaType": "text/plain"}, []),
        (additions.UploadRequest, {}, ["sha256", "size"]),
        (additions.UploadRequest, UPLOAD | {"sha256": "A" * 64, "size": True}, ["sha256", "size"]),
        (additions.UploadRequest, UPLOAD | {"size": additions.LARGEST_UPLOAD + 1}, ["size"]),
        (additions.EraseRequest, ERASE | {"task": "t", "dryRun": True}, []),
        (additions.EraseRequest, ERASE | {"contxt": "c"}, ["contxt"]),
        (additions.EraseRequest, ERASE | {"dryRun": "yes"}, ["dryRun"]),
        (additions.EraseRequest, ERASE | {"context": "c", "task": "t"}, [""]),
        (additions.EraseRequest, {"tenant": "acme", "owner": ""}, ["owner"]),
        (additions.EraseRequest, ERASE | {"context": None}, ["context"]),
        (additions.RedriveRequest, {"all": True}, []),
        (additions.RedriveRequest, {"host": "h", "since": "2026-05-28T09:30:00Z"}, []),
        (additions.RedriveRequest, {}, [""]),
        (additions.RedriveRequest, {"all": False}, [""]),
        (additions.RedriveRequest, {"host": 1}, ["host"]),
        (additions.RedriveRequest, {"since": "yesterday"}, ["since"]),
        (additions.ListDeliveriesQuery, {"limit": "1000", "host": "h"}, []),
        (additions.ListDeliveriesQuery, {"limit": "1001"}, ["limit"]),
        (additions.ListDeliveriesQuery, {"limit": "0"}, ["limit"]),
    ],
)
def test_a_request_is_read_or_refused_with_its_fields(model: Any, params: Any, fields: list[str]) -> None:
    if not fields:
        read(model, params)
        return
    with pytest.raises(InvalidParams) as refused:
        read(model, params)
    assert [one.field for one in refused.value.violations] == fields


MODELS: set[Any] = {
    *REQUESTS.values(),
    v1.Task,
    v1.StreamResponse,
    v1.ListTasksResponse,
    v1_card.AgentCard,
    additions.Deliveries,
    additions.EraseRequest,
    additions.UploadRequest,
}


@pytest.mark.parametrize("model", sorted(MODELS, key=str))
def test_every_model_has_a_schema(model: Any) -> None:
    assert model.model_json_schema(by_alias=True)["properties"]
