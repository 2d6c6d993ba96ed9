import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pytest

from a2a_serverless.client import ClientRequest, ClientResponse, HttpError, ResponseTimeout
from a2a_serverless_tools.cli.inbox import InboxClient, entry_of
from tests.client.deployment import answering
from tests.webhook_receiver.test_preview import PNG, raw, shown

URL = "http://127.0.0.1:8010"
ACCEPTED: dict[str, Any] = {
    "number": 7,
    "receivedAt": 1000,
    "outcome": "accepted",
    "kid": "k",
    "jti": "j",
    "taskId": "t",
    "eventNumber": 3,
    "state": "working",
    "message": [{"kind": "text", "text": "two sections"}],
}
REFUSED: dict[str, Any] = {
    "number": 8,
    "receivedAt": 1001,
    "outcome": "refused",
    "refusal": {"code": "wrong-body", "step": "body hash", "reason": "not the body that was signed"},
    "claimed": {"kid": "k2", "jti": "j2", "taskId": "t2", "eventNumber": "4"},
}


def frames(*views: dict[str, Any]) -> bytes:
    return b"".join(b"id: %d\ndata: %s\n\n" % (view["number"], json.dumps(view).encode()) for view in views)


def test_a_verified_notification_is_told_with_its_proof() -> None:
    entry = entry_of(ACCEPTED)
    assert (entry.verified, entry.event, entry.kid, entry.jti, entry.task_id) == (True, 3, "k", "j", "t")
    assert entry.says == "working: two sections"


def test_a_refused_one_is_told_with_the_reason_and_with_what_it_claimed() -> None:
    entry = entry_of(REFUSED)
    assert (entry.verified, entry.why) == (False, "wrong-body: not the body that was signed")
    assert (entry.kid, entry.jti, entry.task_id, entry.event, entry.says) == ("k2", "j2", "t2", None, "refused")


@pytest.mark.parametrize(
    ("parts", "size"),
    [
        ([{"text": "x" * 4886}], "4,886 characters"),
        ([{"data": 1}, {"data": 2}], "2 data parts"),
        ([raw(bytes(293_888), filename="boat.bin")], "287 KB"),
        ([raw(bytes(3), filename="n" * 300)], "3 bytes"),
        ([raw(PNG + bytes(190_000))], "186 KB"),
        ([{"url": "https://blobs.example.com/boat"}, {"data": 1}], "a file by link, 1 data part"),
    ],
    ids=["long text", "data", "file", "file with a long name", "picture", "link"],
)
def test_an_artifact_is_told_by_what_the_receiver_says_of_its_parts(parts: list[dict[str, Any]], size: str) -> None:
    view = {"artifacts": [{"name": "boat", "parts": [*map(shown, parts)]}]}
    assert entry_of(ACCEPTED | {"state": None, "message": []} | view).says == f"+ boat, {size}"


@pytest.mark.parametrize(("outcome", "verified"), [("late", True), ("duplicate", False), ("challenge", False)])
def test_late_notifications_are_verified_but_duplicates_and_challenges_are_not(outcome: str, verified: bool) -> None:  # noqa: FBT001 - a table
    assert entry_of(ACCEPTED | {"outcome": outcome}).verified is verified


def test_a_receiver_that_expects_nothing_from_us_is_an_error() -> None:
    transport, _ = answering((403, {}, b"{}"))
    with pytest.raises(HttpError, match="did not register a token"):
        InboxClient(URL, transport).expect()


def test_a_receiver_without_a_feed_is_an_error() -> None:
    transport, _ = answering((204, {}, b""))
    with pytest.raises(HttpError, match="no live feed"):
        next(InboxClient(URL, transport).entries())


def test_silence_is_told_and_the_feed_goes_on_behind_the_last_entry() -> None:
    asked: list[str] = []

    class Falls(io.BytesIO):
        def read1(self, limit: int | None = -1, /) -> bytes:
            block = super().read1(limit)
            if not block:
                raise ResponseTimeout(URL, "no answer in 5 s")
            return block

    @contextmanager
    def transport(call: ClientRequest) -> Iterator[ClientResponse]:
        asked.append(call.url)
        yield ClientResponse(200, {}, Falls(frames(ACCEPTED) if len(asked) == 1 else frames(REFUSED)))

    entries = list(islice(InboxClient(URL, transport).entries(), 4))
    assert [entry and entry.number for entry in entries] == [7, None, 8, None]
    assert asked == [f"{URL}/events?after=0", f"{URL}/events?after=7"]
