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
# The receiver cuts a long text, and says how long it is.
TEXT = {"kind": "text", "text": "x" * 4000 + "…", "length": 4886, "cut": True}
DATA = {"kind": "data", "text": '{"seed": 1}', "length": 11, "cut": False}
CHUNK = ACCEPTED | {"state": None, "message": [], "artifacts": [{"name": "d.md", "parts": [TEXT]}]}


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


def test_a_chunk_is_told_by_its_size() -> None:
    assert entry_of(CHUNK).says == "+ d.md, 4,886 characters"


@pytest.mark.parametrize(
    ("part", "size"),
    [
        ({"kind": "file", "text": "boat.png, image/png, 293,888 bytes"}, "287 KB"),
        ({"kind": "file", "text": "a name that was cut…"}, "a file"),
        ({"kind": "image", "text": "boat.png", "source": "data:image/png;base64,AAAA"}, "3 bytes"),
        ({"kind": "link", "text": "https://blobs.example.com/" + "x" * 300}, "a file by link"),
    ],
)
def test_a_picture_is_told_by_its_bytes(part: dict[str, str], size: str) -> None:
    view = CHUNK | {"artifacts": [{"name": "boat.png", "parts": [part]}]}
    assert entry_of(view).says == f"+ boat.png, {size}"


def test_data_are_no_characters() -> None:
    parts = [{"kind": "link", "text": "https://blobs.example.com/x"}, DATA]
    assert entry_of(CHUNK | {"artifacts": [{"name": "boat.png", "parts": parts}]}).says == (
        "+ boat.png, a file by link, 1 data part"
    )
    assert entry_of(CHUNK | {"artifacts": [{"name": "o.json", "parts": [DATA, DATA]}]}).says == "+ o.json, 2 data parts"


@pytest.mark.parametrize(("outcome", "verified"), [("late", True), ("duplicate", False), ("challenge", False)])
def test_only_what_is_new_and_genuine_counts(outcome: str, verified: bool) -> None:  # noqa: FBT001 - a table
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
