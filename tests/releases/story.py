"""One item of every kind, and what today's code must read from it. ``make release`` records it for its version.

A release is recorded once, when it is made: then it is what the release leaves in the tables of those who run it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from moto import mock_aws

from a2a_serverless.adapters.key_ring_secret import dump_key_ring
from a2a_serverless.domain import decisions, head, queue_messages
from a2a_serverless.domain.access import ApiKey, Caller
from a2a_serverless.domain.challenges import ChallengeState
from a2a_serverless.domain.circuit_breaker import OpenBreaker
from a2a_serverless.domain.cursors import Cursor, CursorState, Verification
from a2a_serverless.domain.events import ArtifactEvent, Event, Incoming, StatusEvent
from a2a_serverless.domain.key_ring import KeyRing, RetiredKey, SigningKey
from a2a_serverless.domain.model import DAY_MS, Json, Principal, TaskKey
from a2a_serverless.domain.new_task import IdempotencyRecord, LastTick, NewTask
from a2a_serverless.domain.push_configs import Attempt, PushConfig
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.domain.values import StoredText, ValueScope
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Role, TaskState
from a2a_serverless.store.keys import UPLOADED
from a2a_serverless.store.stores import agent_pause
from tests.contract.backends import NOW, client_at, dynamo
from tests.functions.template import template

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.contract.backends import Store

KEY: Final = TaskKey("acme", "auth0|5f7c/ö", "0b8f7c1e-5f9e-4f0b-9d2e-1f5a7d3c9e11")
WHO: Final = Principal(KEY.tenant, KEY.owner)
TRACE: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
LIFE: Final = decisions.TaskLifetime(max_life_ms=7 * 86_400_000, retention_ms=30 * 86_400_000)
EXPIRES: Final = (NOW + LIFE.max_life_ms + LIFE.retention_ms) // 1000
ASKED: Final = Message(
    message_id="m-1",
    role=Role.USER,
    parts=(
        Part(text="Write about the sea. 海", metadata={"a": 1}),
        Part(data={"sections": [1, 2.5, None, True]}, media_type="application/json"),
        Part(raw="aGVsbG8=", media_type="image/png", filename="a.png"),
        Part(url="https://files.example.com/a"),
    ),
    context_id="context/1",
    task_id=KEY.task,
    metadata={"k": "v"},
    extensions=("https://example.com/ext",),
    reference_task_ids=("t-0",),
)
INCOMING: Final = Incoming(ASKED, ("text/plain",), {"m": 1})
SAID: Final = Message(
    message_id="a-1", role=Role.AGENT, parts=(Part(text="done"),), context_id="context/1", task_id=KEY.task
)
SMALL: Final = Artifact(
    artifact_id="art",
    parts=(Part(text="one"),),
    name="document.md",
    description="a document",
    metadata={"x": 1},
    extensions=("https://example.com/ext",),
)
BIG: Final = Artifact(artifact_id="art", parts=(Part(text="two " * 1000),), name="document.md")
EVENTS: Final[tuple[Event, ...]] = (
    StatusEvent(1, NOW, "by-1", TaskState.SUBMITTED, incoming=INCOMING),
    StatusEvent(2, NOW + 10, "by-2", TaskState.WORKING, fence=1),
    ArtifactEvent(3, NOW + 20, "by-3", SMALL, emits=(1, 1), fence=1),
    ArtifactEvent(4, NOW + 30, "by-4", BIG, append=True, last_chunk=True, emits=(2, 3), fence=1),
    StatusEvent(5, NOW + 40, "by-5", TaskState.COMPLETED, message=SAID, fence=1),
)
STEP: Final = StepResult("digest", {"text": "one", "n": [1, 2]})
VALUES: Final = {
    ValueScope(KEY): StoredText("k", "[1]", "by-3", "document"),
    ValueScope(KEY, "context/1"): StoredText("k", "two " * 1000, "by-4", "document"),
}
CONFIG: Final = PushConfig(
    "hook",
    "https://hooks.example.com/a?b=c",
    "0.3",
    "first",
    NOW,
    token="sealed-1",
    scheme="Basic",
    credentials="sealed-2",
)
CURSOR: Final = Cursor("hook", "first")
MOVED: Final = replace(CURSOR, position=3, attempt=2, next_at=NOW + 99, lease_no=4, due_at=NOW + 100, failing_since=NOW)
LOST: Final = Cursor("lost", "first", state=CursorState.EXHAUSTED, attempt=5, due_at=NOW + 7)
GIVEN_UP: Final = replace(LOST, verification=Verification.REFUSED)
ATTEMPT: Final = Attempt(
    "hook", 2, 1, NOW + 50, 12, status=503, address="192.0.2.1", error="status", kid="kid", next_at=NOW + 99
)
RECEIPT: Final = IdempotencyRecord("document", "m-1", "d" * 64, KEY.task)
API_KEY: Final = ApiKey("d" * 64, WHO, "a note", NOW)
DOCUMENT: Final[Json] = {"keys": [{"kty": "EC"}], "text": "海"}
OPEN_BREAKER: Final = OpenBreaker(NOW + 30_000, 2)
PUBLIC_KEY: Final[dict[str, Any]] = {"kty": "EC", "crv": "P-256", "x": "x", "y": "y", "kid": "kid-1"}
RING: Final = KeyRing(
    SigningKey("kid-1", PUBLIC_KEY, "pem-1", NOW),
    SigningKey("kid-2", PUBLIC_KEY | {"kid": "kid-2"}, "pem-2", NOW + 1),
    (RetiredKey("kid-0", PUBLIC_KEY | {"kid": "kid-0"}, NOW + 2),),
    NOW + 3,
)
LASTING: Final = {
    "AWS::DynamoDB::Table",
    "AWS::KMS::Key",
    "AWS::S3::Bucket",
    "AWS::SQS::Queue",
    "AWS::SecretsManager::Secret",
    "AWS::Serverless::Api",
}
MESSAGES: Final = (queue_messages.WorkMessage(KEY), queue_messages.DeliveryMessage(KEY, "hook"))

# A second task, of another owner.
KEY_2: Final = KEY._replace(owner="other", task="5e0c2d34-8a3d-4a2c-9f57-0c1f9f1a2b22")
CALLER: Final = Caller(Principal(KEY_2.tenant, KEY_2.owner), frozenset({"a2a:document", "a2a:read"}), key="d" * 64)
STEP_2: Final = StepResult("digest", "said", attempt=2, sequence=1, ended_at=NOW)
CHUNK_2: Final = ArtifactEvent(2, NOW + 20, "by-2", SMALL, emits=(1, 1), fence=0, step="write/2")
TICK_2: Final = LastTick("hourly", NOW, KEY_2.task)
PAUSE: Final = agent_pause("image")
CHALLENGES_2: Final = ChallengeState(webhooks=3, sent=21, next_at=NOW + 30_000)


def heads() -> tuple[head.Head, decisions.Change, decisions.Change]:
    """A task's first head, and how it was taken and ended."""
    first, _ = decisions.submit(
        KEY, "document", "context/1", INCOMING, now=NOW, by="by-1", life=LIFE, push=True, trace=TRACE
    )
    first = first._replace(due_at=NOW + 30_000)
    taken = decisions.start_run(head.CurrentHead(first, 1), now=NOW + 10, by="by-2")
    taken = taken._replace(after=taken.after._replace(due_at=NOW + 30_000))
    ended = decisions.report_status(
        head.CurrentHead(taken.after, 4), 1, TaskState.COMPLETED, SAID, now=NOW + 40, by="by-5"
    )
    return first, taken, ended


def write(store: Store) -> None:
    """Leaves one item of every kind."""
    first, taken, ended = heads()
    assert isinstance(EVENTS[0], StatusEvent)
    lost = replace(CONFIG, config_id="lost")
    pushes = ((CONFIG, CURSOR), (lost, Cursor("lost", "first")))
    assert store.log.create(NewTask(first, EVENTS[0], RECEIPT, pushes)) is None
    assert store.log.append(taken)
    for chunk in EVENTS[2:4]:
        assert isinstance(chunk, ArtifactEvent)
        assert store.log.append_chunk(taken.after, chunk)
    store.log.store_step(taken.after, "write/1", STEP)
    for scope, value in VALUES.items():
        assert store.values.put_value(taken.after, scope, value, None) == value.version
    assert store.log.append(ended)
    assert store.push.move_cursor(KEY, CURSOR, MOVED)
    assert store.push.move_cursor(KEY, Cursor("lost", "first"), GIVEN_UP)
    store.push.record_attempt(KEY, ATTEMPT, EXPIRES)
    store.hosts.store_open_breaker("hooks.example.com", OPEN_BREAKER)
    store.publications.publish("jwks", DOCUMENT)
    store.api_keys.add(API_KEY)
    store.owners.lease_stream(WHO, "stream", NOW + 60_000)
    store.log.store_callback(taken.after, "callback", "call/1")
    store.log.note_webhook("https://far.example.com", NOW)
    write_second(store)


def head_2() -> tuple[head.Head, StatusEvent]:
    """A task's first head, made by a caller whose scopes it keeps."""
    first, event = decisions.submit(
        KEY_2, "document", "context/1", INCOMING, now=NOW, by="by-1", life=LIFE, push=False, caller=CALLER
    )
    return first._replace(due_at=NOW + 30_000), event


def write_second(store: Store) -> None:
    """Leaves the second task."""
    first, event = head_2()
    assert store.log.create(NewTask(first, event, None, (), TICK_2)) is None
    taken = first._replace(lease_until=NOW + 30_000)
    assert store.log.append_chunk(taken, CHUNK_2)
    store.log.store_step(taken, "write/2", STEP_2, spent=7)
    store.pauses.add_pause(PAUSE, NOW)
    assert store.push.store_challenge_state(KEY_2, "hooks.example.com", ChallengeState(), CHALLENGES_2, EXPIRES)
    assert store.owners.count(WHO, UPLOADED, 20_000, DAY_MS, 5, 10)


READS: Final[dict[str, tuple[Callable[[Store], Any], Any]]] = {
    "head": (lambda store: store.log.read_head(KEY), head.CurrentHead(heads()[2].after, 5)),
    "log": (lambda store: store.log.read_log(KEY), (heads()[2].after, list(EVENTS))),
    "step": (lambda store: dict(store.log.read_steps(KEY)), {"write/1": STEP}),
    "config": (lambda store: store.push.get_config(KEY, "hook"), CONFIG),
    "cursor": (lambda store: store.push.get_cursor(KEY, "hook"), MOVED),
    "given up": (lambda store: list(store.push.list_exhausted()), [(KEY, "lost")]),
    "attempt": (lambda store: store.push.list_attempts(KEY), [ATTEMPT]),
    "receipt": (lambda store: store.log.find_idempotency(KEY, "document", "m-1"), RECEIPT),
    "list": (lambda store: [entry.task for entry in store.index.list_page(WHO, None, None, 0, 10)[0]], [KEY.task]),
    "breaker": (lambda store: store.hosts.get_open_breaker("hooks.example.com"), OPEN_BREAKER),
    "document": (lambda store: store.publications.get_document("jwks"), DOCUMENT),
    "API key": (lambda store: store.api_keys.find(API_KEY.digest), API_KEY),
    "callback": (lambda store: store.log.find_callback("callback"), (KEY, "call/1")),
    "webhook": (lambda store: store.log.has_webhook_come("https://far.example.com"), True),
    "stream": (lambda store: store.owners.count_streams(WHO, 10), 1),
    "second head": (lambda store: store.log.read_head(KEY_2), head.CurrentHead(head_2()[0], 2)),
    "second log": (lambda store: store.log.read_log(KEY_2), (head_2()[0], [head_2()[1], CHUNK_2])),
    "second step": (lambda store: dict(store.log.read_steps(KEY_2)), {"write/2": STEP_2}),
    "values": (lambda store: {scope: store.values.get_value(scope, "k") for scope in VALUES}, VALUES),
    "tick": (lambda store: store.log.find_last_tick(KEY_2, "document", "hourly"), TICK_2),
    "spent": (lambda store: store.log.read_spent(KEY_2, NOW), 7),
    "pauses": (lambda store: store.pauses.list_pauses(), {PAUSE: NOW}),
    "challenges": (lambda store: store.push.get_challenge_state(KEY_2, "hooks.example.com"), CHALLENGES_2),
}


def recorded() -> dict[str, str]:
    """What today's code stores, by the name of a file."""
    with mock_aws(), client_at(None) as client, dynamo(client, "recorded", lambda _: None) as store:
        write(store)
        items = sorted(client.scan(TableName="recorded")["Items"], key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
        blobs = {name: content.decode() for name, content in store.blobs.content.items()}
    return {
        "items.json": _text(items),
        "blobs.json": _text(blobs),
        "messages.json": _text([queue_messages.to_json(message) for message in MESSAGES]),
        "key_ring.json": dump_key_ring(RING) + "\n",
        "template.json": _text(deployed()),
    }


def deployed() -> Json:
    """What a deployment has of the template: its parameters, and what holds data or has an address of its own."""
    lasting = {name: one for name, one in template()["Resources"].items() if one["Type"] in LASTING}
    return {
        "parameters": sorted(template()["Parameters"]),
        "resources": {name: [one["Type"], one["Properties"].get("KeySchema")] for name, one in lasting.items()},
    }


def _text(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def record(folder: Path) -> bool:
    """Writes what today's code stores into a new folder; returns whether it has.

    Raises ValueError if the folder has a recording of something else.
    """
    files = recorded()
    if folder.exists():
        there = {file.name: file.read_text() for file in folder.iterdir()}
        if changed := sorted(name for name in {*there, *files} if there.get(name) != files.get(name)):
            raise ValueError(f"{folder.name} is recorded with other content: {', '.join(changed)}")
        return False
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return True
