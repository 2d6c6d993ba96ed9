"""Deliveries: what a webhook gets, in which order, and what becomes of one that fails."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain import cursors, decisions
from a2a_serverless.domain.circuit_breaker import FAILURE_THRESHOLD
from a2a_serverless.domain.cursors import CursorState, Verification
from a2a_serverless.domain.events import ArtifactEvent
from a2a_serverless.domain.notifications import notification_id
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.domain.push_configs import Attempt
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.protocol.v1 import Artifact, Part, TaskPushNotificationConfig, TaskState
from a2a_serverless.services import webhooks
from a2a_serverless.services.circuit_breakers import IN_FLIGHT
from a2a_serverless.services.deliver import BUSY_S, ROUND_MS, DeliveryOutcome, deliver
from a2a_serverless.testing.simulated_loop import START
from tests.echo import Writer, agent_of
from tests.faults.plans import At, Count, NoFaults
from tests.world import HOOK, ME, World, accepting, webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.cursors import Cursor
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.push_configs import PushConfig, WebhookEvents
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.ports.system import Clock, Signed, Signer
    from a2a_serverless.protocol.versions import ProtocolVersion
    from a2a_serverless.services.delivery_context import DeliveryContext
    from tests.faults.plans import Faults

TRUSTING = EgressPolicy(trusted_domains=("example.com",))
ENDED = 7  # submitted, working, three sections, three chunks, completed: what a Writer's log holds


class Scene:
    """A task that has run, and a webhook that has heard nothing of it yet."""

    def __init__(
        self,
        version: ProtocolVersion = "1.0",
        policy: EgressPolicy = TRUSTING,
        *,
        ran: bool = True,
        events: WebhookEvents | None = None,
        **fields: Any,
    ) -> None:
        self.world = World([Writer(seconds=0).agent], policy=policy)
        task = self.world.send("hello", push=False)
        self.key: TaskKey = ME.key(task.id)
        request = webhook(HOOK, id="hook", **fields)
        self.given: PushConfig = webhooks.add(self.world.service.webhooks(), self.key, "echo", request, version, events)
        self.message = DeliveryMessage(self.key, "hook")
        self.world.queue.clear()
        if ran:
            self.world.run(self.key)
            self.world.queue.clear()

    def deliver(self, time_ms: int = 60_000) -> DeliveryOutcome:
        until = self.world.now + time_ms
        return deliver(self.world.post, self.message, lambda: until - self.world.now)

    @property
    def cursor(self) -> Cursor:
        cursor: Cursor = self.world.table.get_cursor(self.key, "hook")
        return cursor

    @property
    def config(self) -> PushConfig:
        config: PushConfig = self.world.table.get_config(self.key, "hook")
        return config

    @property
    def attempts(self) -> list[Attempt]:
        attempts: list[Attempt] = self.world.table.list_attempts(self.key)
        return attempts

    @property
    def heard(self) -> list[int]:
        return [got.n for got in self.world.receiver.posts]

    @property
    def delays_ms(self) -> list[int]:
        """In how many ms the enqueued messages will arrive."""
        return [at - self.world.now for at, _ in self.world.queue.waiting]

    def answer(self, *outcomes: Outcome) -> None:
        """The webhook gives these answers, and accepts everything after them."""
        given = [*outcomes]
        self.world.receiver.answers = lambda tried: given.pop(0) if given else accepting(tried)

    def chunks(self, count: int, size: int = 1) -> None:
        """So many chunks are appended by whoever runs the task."""
        snapshot = self.world.table.read_head(self.key)
        fence = snapshot.head.fence
        for n in range(snapshot.last + 1, snapshot.last + 1 + count):
            artifact = Artifact(artifact_id="big", parts=(Part(text=f"{n} " * size),))
            chunk = ArtifactEvent(
                n,
                self.world.now,
                self.world.ids.new(),
                artifact,
                n > snapshot.last + 1,
                last_chunk=False,
                emits=(n, n),
                fence=fence,
            )
            assert self.world.table.append_chunk(snapshot.head, chunk)

    def take(self) -> None:
        """Somebody runs the task, and says no more about it."""
        snapshot = self.world.table.read_head(self.key)
        assert self.world.table.append(decisions.start_run(snapshot, now=self.world.now, by=self.world.ids.new()))

    def end(self) -> None:
        snapshot = self.world.table.read_head(self.key)
        done = decisions.report_status(
            snapshot, snapshot.head.fence, TaskState.COMPLETED, None, now=self.world.now, by=self.world.ids.new()
        )
        assert self.world.table.append(done)


# ---- What is sent


@pytest.mark.requirement(58, 74)
def test_a_webhook_hears_everything_from_its_registration_on_in_order() -> None:
    scene = Scene()
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert scene.heard == [1, 3, 4, 5, 6, 7], "the plain working may be left out"
    kinds = [next(iter(got.body)) for got in scene.world.receiver.posts]
    assert kinds == ["task", "statusUpdate", *["artifactUpdate"] * 3, "statusUpdate"]
    assert (scene.cursor.position, scene.cursor.lease_until, scene.cursor.attempt) == (ENDED, 0, 0)
    assert scene.delays_ms == []


def test_the_first_notification_is_the_task_as_it_was_when_the_webhook_came() -> None:
    scene = Scene()
    scene.deliver()
    task: Any = scene.world.receiver.posts[0].body["task"]
    assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert [message["parts"][0]["text"] for message in task["history"]] == ["hello"]
    assert "artifacts" not in task


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_rule_08_a_webhook_far_behind_gets_a_snapshot_and_the_end_by_itself(version: ProtocolVersion) -> None:
    scene = Scene(version, ran=False)
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    scene.take()
    scene.chunks(150)
    scene.end()
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert scene.heard == [1, 152, 153]
    bodies: list[Any] = [got.body for got in scene.world.receiver.posts]
    _, behind, end = bodies
    (artifact,) = (behind["task"] if version == "1.0" else behind)["artifacts"]
    assert "".join(part["text"] for part in artifact["parts"]) == "".join(f"{n} " for n in range(3, 153))
    assert ("statusUpdate" in end) == (version == "1.0")


def test_a_large_task_is_told_event_by_event_however_far_behind_its_webhook_is() -> None:
    scene = Scene(ran=False)
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    scene.take()
    scene.chunks(150, size=800)
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert scene.heard == [*range(1, 153)]


def test_a_webhook_of_0_3_hears_whole_tasks_at_statuses_and_finished_artifacts() -> None:
    scene = Scene(version="0.3")
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert scene.heard == [1, 3, 6, 7]
    bodies: list[Any] = [got.body for got in scene.world.receiver.posts]
    assert [body["kind"] for body in bodies] == ["task"] * 4
    assert [body["status"]["state"] for body in bodies] == ["submitted", "working", "working", "completed"]
    texts = [part["text"] for part in bodies[2]["artifacts"][0]["parts"]]
    assert texts == ["one: hello. two: hello. three: hello. "]


@pytest.mark.parametrize(("events", "artifacts"), [("states", False), ("results", True)])
def test_a_webhook_of_states_or_results_is_notified_of_no_chunk(events: WebhookEvents, *, artifacts: bool) -> None:
    scene = Scene(events=events)
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    first, *states, end = [got.body for got in scene.world.receiver.posts]
    assert scene.heard == [1, 3, ENDED]
    assert [next(iter(body)) for body in (first, *states)] == ["task", "statusUpdate"]
    shown: Any = end["task"] if events == "results" else end["statusUpdate"]
    assert (shown["status"]["state"], "artifacts" in shown) == ("TASK_STATE_COMPLETED", artifacts)
    assert (scene.cursor.position, scene.delays_ms) == (ENDED, [])


@pytest.mark.parametrize(("events", "artifacts"), [("states", 0), ("results", 1)])
def test_a_0_3_webhook_of_states_or_results_gets_whole_tasks_at_states(events: WebhookEvents, artifacts: int) -> None:
    scene = Scene("0.3", events=events)
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    bodies: list[Any] = [got.body for got in scene.world.receiver.posts]
    assert scene.heard == [1, 3, ENDED]
    assert [len(body.get("artifacts", ())) for body in bodies] == [0, 0, artifacts]


def test_a_webhook_of_states_moves_past_chunks_without_a_post() -> None:
    scene = Scene(ran=False, events="states")
    scene.take()
    scene.chunks(150)
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert (scene.heard, scene.cursor.position) == ([1, 2], 152)
    scene.chunks(150)
    scene.end()
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert scene.heard == [1, 2, 303], "chunks are no backlog of it"


def test_a_webhook_of_results_that_comes_after_the_end_gets_the_whole_task() -> None:
    scene = Scene(ran=False)
    scene.take()
    scene.chunks(2)
    scene.end()
    for events in ("states", "results"):
        webhooks.add(scene.world.service.webhooks(), scene.key, "echo", webhook(HOOK, id="hook"), "1.0", events)
        assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    bodies: list[Any] = [got.body["task"] for got in scene.world.receiver.posts]
    assert [len(body.get("artifacts", ())) for body in bodies] == [0, 1]


@pytest.mark.parametrize(("version", "kind"), [("1.0", "application/a2a+json"), ("0.3", "application/json")])
def test_a_notification_says_which_version_it_is(version: ProtocolVersion, kind: str) -> None:
    scene = Scene(version=version)
    scene.deliver()
    headers = scene.world.receiver.posts[0].headers
    assert (headers["A2A-Version"], headers["Content-Type"]) == (version, kind)


JWT = "X-A2A-Notification-JWT"
TOKEN = "X-A2A-Notification-Token"


@pytest.mark.parametrize("scheme", [None, "Bearer", "bearer"])
def test_the_jwt_is_the_bearer_token_if_a_client_gave_no_credentials(scheme: str | None) -> None:
    scene = Scene(scheme=scheme)
    scene.deliver()
    headers = scene.world.receiver.posts[0].headers
    assert json.loads(headers["Authorization"].removeprefix("Bearer "))["sub"] == scene.key.task
    assert JWT not in headers
    assert TOKEN not in headers


@pytest.mark.requirement(70)
@pytest.mark.parametrize(
    ("scheme", "credentials"), [("Basic", "dXNlcjpwYXNz"), ("Bearer", "theirs"), ("ApiKey", "id=1, key=2")]
)
def test_a_client_s_own_credentials_own_the_header_and_our_token_has_another(scheme: str, credentials: str) -> None:
    scene = Scene(scheme=scheme, credentials=credentials, token="given")
    scene.deliver()
    headers = scene.world.receiver.posts[0].headers
    assert headers["Authorization"] == f"{scheme} {credentials}"
    assert json.loads(headers[JWT])["sub"] == scene.key.task
    assert headers[TOKEN] == "given"


def test_each_attempt_is_signed_afresh_for_the_same_notification() -> None:
    scene = Scene(ran=False)
    scene.answer(Outcome(status=500))
    scene.deliver()
    scene.world.now += 10_000
    scene.deliver()
    first, second = (json.loads(got.headers["Authorization"][7:]) for got in scene.world.receiver.tried)
    assert first["jti"] != second["jti"]
    assert second["iat"] - first["iat"] == 10
    assert first["notificationId"] == second["notificationId"] == notification_id(scene.key, scene.given, 1)
    assert (first["iss"], first["eventNumber"], first["typ"]) == (
        "https://api.example.com",
        1,
        "a2a-notification+jwt",
    )


def test_a_second_message_for_what_is_delivered_already_writes_nothing() -> None:
    scene = Scene()
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    before = scene.cursor
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert scene.cursor == before


# ---- Ownership


def test_a_url_that_echoes_the_challenge_is_verified_once_and_then_told() -> None:
    scene = Scene(policy=EgressPolicy(), ran=False)
    assert [found.verification for found in scene.world.table.list_cursors(scene.key)] == [Verification.UNVERIFIED]
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert scene.cursor.verification is Verification.VERIFIED
    scene.world.run(scene.key)
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert len(scene.world.receiver.challenges) == 1
    assert scene.heard == [1, 3, 4, 5, 6, 7]


def test_a_challenge_carries_the_client_s_credentials_and_its_own_kind_of_token() -> None:
    scene = Scene(policy=EgressPolicy(), ran=False, scheme="Basic", credentials="abc", token="given")
    scene.deliver()
    (headers,) = scene.world.receiver.challenges
    claims = json.loads(headers[JWT])
    assert (headers["Authorization"], headers[TOKEN], claims["typ"]) == ("Basic abc", "given", "a2a-challenge+jwt")
    assert "taskId" not in claims


WRONG_ECHOES = {
    "another challenge": b'{"challenge":"other"}',
    "no challenge": b"{}",
    "no object": b'["x"]',
    "no json": b"ok",
    "no body": b"",
    "deep json": b"[" * 100_000,
    "no text": b"\xff\xfe",
}


@pytest.mark.parametrize("body", WRONG_ECHOES.values(), ids=WRONG_ECHOES)
def test_a_url_that_does_not_echo_gets_no_event_and_is_given_up_after_five_tries(body: bytes) -> None:
    scene = Scene(policy=EgressPolicy())
    scene.world.receiver.echoes = lambda _: Outcome(status=200, body=body)
    states = []
    for _ in range(5):
        assert scene.deliver() is DeliveryOutcome.FAILED
        states.append(scene.cursor.state)
        scene.world.now = scene.cursor.next_at
    assert states == [CursorState.ACTIVE] * 4 + [CursorState.EXHAUSTED]
    assert scene.heard == []
    assert scene.cursor.position == 0
    assert scene.cursor.verification is Verification.REFUSED
    assert [(attempt.n, attempt.k, attempt.status) for attempt in scene.attempts] == [(0, k, 200) for k in range(1, 6)]


def test_a_url_that_cannot_be_reached_is_challenged_again_on_schedule() -> None:
    scene = Scene(policy=EgressPolicy(), ran=False)
    echoes = scene.world.receiver.echoes
    scene.world.receiver.echoes = lambda _: Outcome(error=OutboundError.DNS, reason="no such name")
    assert scene.deliver() is DeliveryOutcome.FAILED
    assert (scene.cursor.state, scene.cursor.attempt) == (CursorState.ACTIVE, 1)
    scene.world.receiver.echoes = echoes
    scene.world.now = scene.cursor.next_at
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert (scene.heard, scene.cursor.attempt) == ([1], 0)


def test_a_url_that_says_gone_to_a_challenge_is_gone() -> None:
    scene = Scene(policy=EgressPolicy())
    scene.world.receiver.echoes = lambda _: Outcome(status=410)
    scene.deliver()
    assert (scene.cursor.state, scene.cursor.verification) == (CursorState.GONE, Verification.REFUSED)


def test_events_go_out_unverified_if_ownership_is_only_warned_about() -> None:
    scene = Scene(policy=EgressPolicy())
    scene.world.post = replace(scene.world.post, enforce_ownership=False)
    scene.world.receiver.echoes = lambda _: Outcome(status=200, body=b"what?")
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert scene.heard == [1, 3, 4, 5, 6, 7]
    assert scene.cursor.verification is Verification.UNVERIFIED


# ---- Failures


def test_a_failure_is_written_down_and_enqueued_at_its_next_time() -> None:
    scene = Scene()
    scene.answer(Outcome(status=503, address="192.0.2.7", elapsed_ms=12))
    begun = scene.world.now
    assert scene.deliver() is DeliveryOutcome.FAILED
    next_at = begun + 5_500
    assert scene.attempts == [Attempt("hook", 1, 1, begun, 12, 503, "192.0.2.7", None, "kid-1", next_at)]
    assert (scene.cursor.position, scene.cursor.attempt, scene.cursor.next_at) == (0, 1, next_at)
    assert scene.cursor.lease_until == 0
    assert scene.delays_ms == [6_000]


def test_each_attempt_is_in_the_log_and_measured_with_its_ids(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    scene = Scene()
    metrics, ids = scene.world.metrics, {"task": scene.key.task, "config": "hook"}
    metrics.measured.clear()
    scene.answer(Outcome(status=503, elapsed_ms=12))
    scene.deliver()
    ended = scene.world.events(scene.key.task)[-1]
    scene.world.now = ended.at + 70_000
    scene.deliver()
    lines = [line.__dict__ for line in caplog.records if line.getMessage() == "webhook tried"]
    seen = [(line["event"], line["attempt"], line["status"], line["error"], line["ms"]) for line in lines]
    assert seen[:3] == [(1, 1, 503, None, 12), (1, 2, 200, None, 0), (3, 1, 200, None, 0)]
    assert {(line["task"], line["config"], line["kid"], line["trace"]) for line in lines} == {
        (scene.key.task, "hook", "kid-1", "")
    }
    assert metrics.measured[:5] == [
        ("DeliverySuccess", 0, {**ids, "event": 1}),
        ("DeliverySuccess", 1, {**ids, "event": 1}),
        ("DeliveryAttempts", 2, {**ids, "event": 1}),
        ("QueueAge", scene.world.now - scene.world.events(scene.key.task)[2].at, {"queue": "delivery", **ids}),
        ("DeliverySuccess", 1, {**ids, "event": 3}),
    ]


def test_a_lease_that_a_notifier_has_left_behind_is_counted() -> None:
    scene = Scene()
    scene.world.metrics.counted.clear()
    scene.world.table.move_cursor(
        scene.key, scene.cursor, cursors.claim_lease(scene.cursor, "gone", now=scene.world.now)
    )
    scene.world.now += cursors.CURSOR_LEASE_MS
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert scene.world.metrics.counted == [("LeaseLost", {"of": "notifier", "task": scene.key.task, "config": "hook"})]


def test_an_attempt_without_an_answer_is_written_down_with_its_kind_of_error() -> None:
    scene = Scene()
    scene.answer(Outcome(error=OutboundError.TLS, reason="certificate of somebody else"))
    scene.deliver()
    assert [(attempt.status, attempt.error) for attempt in scene.attempts] == [(None, "tls")]


def test_a_delivery_waits_as_long_as_retry_after_says() -> None:
    scene = Scene()
    scene.answer(Outcome(status=429, retry_after="60"))
    scene.deliver()
    assert scene.cursor.next_at == scene.world.now + 66_000


def test_retry_after_as_a_date_is_honoured() -> None:
    scene = Scene()
    at = datetime.fromtimestamp(scene.world.now // 1000 + 600, UTC)
    scene.answer(Outcome(status=429, retry_after=format_datetime(at, usegmt=True)))
    scene.deliver()
    assert 599_000 <= scene.cursor.next_at - scene.world.now <= 661_000


@pytest.mark.parametrize("text", ["soon", "", "-5", "1.5", "Wed, 21 Oct 2015 07:28:00 GMT", "٣", "9" * 40])
def test_a_retry_after_that_is_no_number_of_seconds_does_not_break_the_schedule(text: str) -> None:
    scene = Scene()
    scene.answer(Outcome(status=503, retry_after=text))
    scene.deliver()
    wait = scene.cursor.next_at - scene.world.now
    assert wait in {5_500, 3_960_000}


def test_a_message_before_the_next_try_does_not_jump_the_wait() -> None:
    scene = Scene()
    scene.answer(Outcome(status=500))
    scene.deliver()
    assert scene.deliver() is DeliveryOutcome.NOT_YET
    assert len(scene.world.receiver.tried) == 1


@pytest.mark.requirement(58)
def test_rule_08_a_failed_event_is_sent_again_before_later_events() -> None:
    scene = Scene()
    scene.answer(accepting(0), accepting(1), Outcome(status=500))
    scene.deliver()
    scene.world.now = scene.cursor.next_at
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert [got.n for got in scene.world.receiver.tried] == [1, 3, 4, 4, 5, 6, 7]


def test_a_success_forgets_the_failures_before_it() -> None:
    scene = Scene()
    scene.answer(*[Outcome(status=500)] * 3)
    for _ in range(4):
        scene.deliver()
        scene.world.now = max(scene.world.now, scene.cursor.next_at)
    assert (scene.cursor.attempt, scene.cursor.position, scene.cursor.next_at) == (0, ENDED, 0)
    failed = [(attempt.n, attempt.k) for attempt in scene.attempts if attempt.status == 500]
    assert failed == [(1, 1), (1, 2), (1, 3)]


def test_an_answer_410_ends_the_configuration_and_its_deliveries() -> None:
    scene = Scene()
    scene.answer(Outcome(status=410))
    scene.deliver()
    assert (scene.cursor.state, scene.delays_ms) == (CursorState.GONE, [])
    assert scene.deliver() is DeliveryOutcome.NOTHING
    assert len(scene.world.receiver.tried) == 1


@pytest.mark.parametrize(("status", "tries"), [(404, 5), (401, 5), (302, 5), (500, 12), (429, 12)])
def test_a_webhook_that_never_answers_well_is_given_up_sooner_or_later(status: int, tries: int) -> None:
    scene = Scene()
    scene.answer(*[Outcome(status=status)] * 50)
    scene.world.queue.enqueue(scene.message)
    scene.world.settle(200 * 3_600_000)
    assert len(scene.world.receiver.tried) == tries
    assert (scene.cursor.state, scene.cursor.attempt) == (CursorState.EXHAUSTED, tries)
    assert len(scene.attempts) == tries


def test_long_waits_are_the_sweeper_s_and_short_ones_a_message_s() -> None:
    scene = Scene()
    scene.answer(*[Outcome(status=500)] * 50)
    enqueued = []
    for _ in range(7):
        scene.world.queue.clear()
        scene.deliver()
        enqueued.append(bool(scene.delays_ms))
        scene.world.now = scene.cursor.next_at
    assert enqueued == [True, True, True, True, False, False, False]
    assert scene.cursor.due_at is not None


# ---- Leases and time


def test_a_notifier_that_runs_short_of_time_hands_on_in_order() -> None:
    scene = Scene()
    world = scene.world
    scene.world.receiver.takes = 10_000
    endings: list[object] = []
    while not endings or endings[-1] is DeliveryOutcome.HANDED_OVER:
        scene.world.queue.clear()
        endings += world.together(world.notifier(scene.message, time_ms=50_000))
        assert scene.cursor.lease_until == 0
        assert scene.delays_ms == ([0] if endings[-1] is DeliveryOutcome.HANDED_OVER else [])
    assert len(endings) > 1
    assert endings[-1] is DeliveryOutcome.CAUGHT_UP
    assert scene.heard == [1, 3, 4, 5, 6, 7]


def test_rule_08_two_notifiers_are_never_under_way_for_one_configuration() -> None:
    scene = Scene()
    world = scene.world
    scene.world.receiver.takes = 12_000
    notifiers = [world.later(ms, world.notifier(scene.message)) for ms in (0, 1, 11_000, 21_000, 33_000)]
    endings = world.together(*notifiers)
    assert endings.count(DeliveryOutcome.NOT_YET) == 4
    assert scene.world.receiver.crowded == []
    assert [got.n for got in scene.world.receiver.tried] == sorted(got.n for got in scene.world.receiver.tried)


def test_rule_05_a_message_that_meets_a_lease_is_sent_again_past_it() -> None:
    scene = Scene()
    cursor = cursors.claim_lease(scene.cursor, "other", now=scene.world.now)
    scene.world.table.move_cursor(scene.key, scene.cursor, cursor)
    assert scene.deliver() is DeliveryOutcome.NOT_YET
    assert scene.delays_ms == [cursors.CURSOR_LEASE_MS]


def test_rule_08_a_slow_challenge_leaves_the_first_notification_a_whole_lease() -> None:
    scene = Scene(policy=EgressPolicy())
    world = scene.world
    scene.world.receiver.takes = 14_000
    world.together(world.notifier(scene.message), world.later(21_000, world.notifier(scene.message)))
    assert scene.world.receiver.crowded == []


def test_a_message_without_a_pending_event_does_nothing() -> None:
    scene = Scene()
    scene.deliver()
    before = scene.cursor
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert len(scene.world.receiver.tried) == 6
    assert replace(scene.cursor, lease_no=0, holder="") == replace(before, lease_no=0, holder="")


def test_a_message_for_what_is_not_there_does_nothing() -> None:
    scene = Scene()
    for message in (scene.message._replace(config_id="other"), scene.message._replace(key=ME.key("other"))):
        assert deliver(scene.world.post, message, lambda: 60_000) is DeliveryOutcome.NOTHING


def test_an_event_that_is_appended_as_a_notifier_lets_go_is_delivered() -> None:
    scene = Scene(ran=False)
    ids = iter(["one more"])

    def answered(tried: int) -> Outcome:
        if next(ids, None):
            scene.world.cancel(scene.key.task)
        return accepting(tried)

    scene.world.receiver.answers = answered
    assert scene.deliver() is DeliveryOutcome.CAUGHT_UP
    assert scene.heard == [1, 2]


# ---- Connections and hosts

RESET_BEFORE = Outcome(error=OutboundError.RESET, reused=True, connected=True, request_sent=True)


@pytest.mark.parametrize("error", [error for error in OutboundError if error is not OutboundError.RESET])
def test_on_a_kept_connection_only_what_was_closed_before_is_sent_once_more_at_once(error: OutboundError) -> None:
    scene = Scene()
    scene.answer(Outcome(error=error, reused=True, connected=True, request_sent=True))
    assert scene.deliver() is DeliveryOutcome.FAILED
    assert (len(scene.world.receiver.tried), scene.cursor.attempt) == (1, 1)


@pytest.mark.parametrize(("left_ms", "tried"), [(ROUND_MS, 2), (ROUND_MS - 1, 1)])
def test_no_event_is_sent_again_when_the_time_is_too_short(left_ms: int, tried: int) -> None:
    scene = Scene()
    scene.world.receiver.takes = 10_000
    scene.answer(RESET_BEFORE, Outcome(status=500))
    assert scene.deliver(left_ms + 10_000) is DeliveryOutcome.FAILED
    assert len(scene.world.receiver.tried) == tried


def test_a_kept_connection_that_was_closed_says_nothing_about_the_host() -> None:
    scene = Scene()
    for _ in range(FAILURE_THRESHOLD - 1):
        scene.answer(RESET_BEFORE, Outcome(error=OutboundError.TIMEOUT))
        scene.deliver()
        scene.world.now = scene.cursor.next_at
    assert scene.world.table.get_open_breaker("hooks.example.com") is None
    scene.answer(RESET_BEFORE, Outcome(error=OutboundError.TIMEOUT))
    scene.deliver()
    assert scene.world.table.get_open_breaker("hooks.example.com") is not None


# ---- Clocks: two instances' differ by two seconds at most (docs/internals.md)

SKEW_MS = 2_000


class Ahead:
    """The clock of an instance that is ahead of the others."""

    def __init__(self, clock: Clock, ms: int) -> None:
        self._clock = clock
        self._ms = ms

    def now(self) -> int:
        return self._clock.now() + self._ms

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


class Slow:
    """A signer that takes its time, between the claim and the POST."""

    def __init__(self, signer: Signer, clock: Clock, ms: int) -> None:
        self._signer = signer
        self._clock = clock
        self._ms = ms

    def sign(self, typ: str, claims: Mapping[str, str | int]) -> Signed:
        self._clock.sleep(self._ms / 1000)
        return self._signer.sign(typ, claims)


@pytest.mark.parametrize(("ahead_ms", "crowds"), [(SKEW_MS, False), (SKEW_MS + 1, True)], ids=["assumed", "more"])
@pytest.mark.parametrize("signs_ms", [2_999, 3_000, 3_001])
def test_rule_08_a_notifier_whose_clock_is_ahead_meets_no_attempt_under_way(
    ahead_ms: int,
    signs_ms: int,
    crowds: bool,  # noqa: FBT001
) -> None:
    """The slowest attempt that a lease allows; then another notifier takes the lease for over as early as it can."""
    scene = Scene()
    world = scene.world
    scene.world.receiver.takes = cursors.POST_DEADLINE_MS
    slow = replace(world.post, signer=Slow(scene.world.post.signer, world.clock, signs_ms))
    ahead = replace(scene.world.post, clock=Ahead(world.clock, ahead_ms))

    def notify(post: DeliveryContext) -> DeliveryOutcome:
        return deliver(post, scene.message, lambda: 30_000)

    over = cursors.CURSOR_LEASE_MS - ahead_ms + 1
    world.together(lambda: notify(slow), world.later(over, lambda: notify(ahead)))
    assert bool(scene.world.receiver.crowded) is (crowds and signs_ms == 3_000)


class LateAnswers(NoFaults):
    """Answers of a call that arrive late: one for each of ``late_ms``."""

    def __init__(self, call: str, *late_ms: int) -> None:
        self.call = call
        self.late_ms = [*late_ms]
        self.wait: Callable[[int], None] = lambda _: None

    def after(self, port: str, call: str) -> None:
        if f"{port}.{call}" == self.call and self.late_ms and (late_ms := self.late_ms.pop(0)):
            self.wait(late_ms)


@pytest.mark.parametrize("late_ms", [3_001, 19_000, cursors.CURSOR_LEASE_MS + 1, 10 * cursors.CURSOR_LEASE_MS])
def test_rule_08_a_renewal_that_is_answered_late_sends_nothing_under_an_old_lease(late_ms: int) -> None:
    late = LateAnswers("table.move_cursor", 0, late_ms)  # the claim is answered at once, its renewal late
    world, key, message = world_to_tell(late)
    late.wait = world.wait
    world.receiver.takes = cursors.POST_DEADLINE_MS
    slow = replace(world.post, signer=Slow(world.post.signer, world.clock, 4_000))
    other = world.notifier(message, 600_000)
    world.together(
        lambda: deliver(slow, message, lambda: 600_000),
        world.later(4_000 + cursors.CURSOR_LEASE_MS + 1, other),
        world.later(4_000 + late_ms, lambda: None),
    )
    assert world.receiver.crowded == []
    assert world.receiver.effects()[-1].n == ENDED
    assert world.table.get_cursor(key, "hook").position == ENDED


def test_a_notifier_whose_renewals_are_all_answered_late_sends_nothing() -> None:
    late = LateAnswers("table.move_cursor", 0, *[cursors.CURSOR_LEASE_MS] * 9)
    world, _, message = world_to_tell(late)
    late.wait = world.wait
    slow = replace(world.post, signer=Slow(world.post.signer, world.clock, 4_000))
    (ending,) = world.together(lambda: deliver(slow, message, lambda: 60_000 + START - world.now))
    assert (ending, world.receiver.tried) == (DeliveryOutcome.HANDED_OVER, [])


def test_a_notifier_whose_time_runs_out_during_a_renewal_hands_over_to_the_next_message() -> None:
    late = LateAnswers("table.move_cursor", 0, 10_000)
    world, key, message = world_to_tell(late)
    late.wait = world.wait
    slow = replace(world.post, signer=Slow(world.post.signer, world.clock, 4_000))
    world.together(lambda: deliver(slow, message, lambda: 28_000 + START - world.now))
    assert world.receiver.tried == []
    assert world.table.get_cursor(key, "hook").lease_until == 0
    assert world.queue.waiting == [(world.now, message)]
    assert deliver(world.post, message, lambda: 60_000) is DeliveryOutcome.CAUGHT_UP


class Interrupted:
    """A signer before whose signatures something happens, to each a thing of its own."""

    def __init__(self, signer: Signer, *before: Callable[[], object]) -> None:
        self._signer = signer
        self._before = iter(before)

    def sign(self, typ: str, claims: Mapping[str, str | int]) -> Signed:
        next(self._before, lambda: None)()
        return self._signer.sign(typ, claims)


def test_a_host_that_is_busy_after_a_renewal_gets_the_next_message() -> None:
    """The connection was closed, so the event is sent once more; meanwhile others have taken all requests."""
    scene = Scene()
    scene.answer(RESET_BEFORE)
    post = scene.world.post
    with ExitStack() as others:

        def pass_time() -> None:
            scene.world.now += 4_000

        def take_all_slots() -> None:
            for _ in range(IN_FLIGHT):
                others.enter_context(post.breakers.request_slot("hooks.example.com", scene.world.now))

        late = replace(post, signer=Interrupted(post.signer, pass_time, take_all_slots))
        assert deliver(late, scene.message, lambda: 60_000) is DeliveryOutcome.NOT_YET
    assert len(scene.world.receiver.tried) == 1
    assert scene.cursor.lease_until == 0
    assert BUSY_S * 1000 in scene.delays_ms


def test_a_post_waits_until_another_request_to_its_host_has_ended() -> None:
    scene = Scene()
    world = scene.world
    begun = world.now
    post = world.post
    with ExitStack() as others:
        for _ in range(IN_FLIGHT):
            others.enter_context(post.breakers.request_slot("hooks.example.com", begun))
        outcome, _ = world.together(
            lambda: deliver(post, scene.message, lambda: 60_000), world.later(1_000, others.close)
        )
    assert outcome is DeliveryOutcome.CAUGHT_UP
    assert begun + 1_000 <= scene.world.receiver.tried[0].at <= begun + 1_000 + 20


@pytest.mark.parametrize("act", [webhooks.delete, webhooks.add])
def test_rule_08_a_client_s_instance_whose_clock_is_ahead_waits_for_the_attempt_under_way(act: object) -> None:
    scene = Scene()
    world = scene.world
    scene.world.receiver.takes = cursors.POST_DEADLINE_MS
    slow = replace(scene.world.post, signer=Slow(scene.world.post.signer, world.clock, 3_000), clock=world.clock)
    hooks = replace(scene.world.service.webhooks(), clock=Ahead(world.clock, SKEW_MS))
    answered: list[int] = []
    begun = world.now

    def change() -> None:
        if act is webhooks.delete:
            webhooks.delete(hooks, scene.key, "echo", "hook")
        else:
            webhooks.add(hooks, scene.key, "echo", TaskPushNotificationConfig(url=HOOK + "/new", id="hook"), "1.0")
        answered.append(world.now)

    world.together(lambda: deliver(slow, scene.message, lambda: 30_000), world.later(1_000, change))
    ended = begun + 3_000 + cursors.POST_DEADLINE_MS
    assert ended <= answered[0] <= ended + 200
    assert [got.at for got in scene.world.receiver.tried] == [begun + 3_000]


@pytest.mark.parametrize(("early_ms", "delays_ms"), [(SKEW_MS, [SKEW_MS]), (SKEW_MS + 1, [])])
def test_a_message_that_is_early_by_what_clocks_may_differ_is_sent_again_and_a_stray_one_is_not(
    early_ms: int, delays_ms: list[int]
) -> None:
    scene = Scene()
    scene.answer(Outcome(status=500))
    scene.deliver()
    scene.world.queue.clear()
    scene.world.now = scene.cursor.next_at - early_ms
    assert scene.deliver() is DeliveryOutcome.NOT_YET
    assert scene.delays_ms == delays_ms
    assert len(scene.world.receiver.tried) == 1


# ---- Meanwhile


def test_a_configuration_that_is_replaced_during_an_attempt_goes_on_as_the_new_one() -> None:
    scene = Scene()
    world = scene.world
    scene.world.receiver.takes = 5_000
    hooks = world.service.webhooks()

    def act() -> None:
        webhooks.add(hooks, scene.key, "echo", TaskPushNotificationConfig(url=HOOK + "/new", id="hook"), "1.0")

    (ending, _) = world.together(world.notifier(scene.message), world.later(1_000, act))
    assert ending is DeliveryOutcome.NOTHING
    assert (scene.cursor.position, scene.cursor.start) == (0, ENDED)
    scene.world.receiver.takes = 0
    scene.deliver()
    assert scene.heard == [1, ENDED]
    assert scene.world.receiver.posts[1].notification_id == notification_id(scene.key, scene.config, ENDED)


@pytest.mark.parametrize("outcome", [accepting(1), Outcome(status=500)], ids=["accepted", "failed"])
def test_rule_05_a_sweep_during_a_post_changes_nothing_of_the_delivery(outcome: Outcome) -> None:
    scene, swept = Scene(), list[bool]()
    scene.world.now = scene.cursor.due_at or 0

    def answer(_: int) -> Outcome:
        if not swept:
            swept.append(scene.world.sweep_due())
        return outcome

    scene.world.receiver.answers = answer
    scene.deliver()
    assert swept == [True]
    assert (scene.cursor.lease_until, scene.attempts[-1].at > 0) == (0, True)
    assert scene.cursor.attempt == (0 if outcome == accepting(1) else 1)


def test_rule_08_a_notifier_that_lost_its_lease_moves_nothing() -> None:
    scene = Scene()
    taken: list[Cursor] = []

    def overtaken(tried: int) -> Outcome:
        if not taken:
            taken.append(cursors.claim_lease(scene.cursor, "other", now=scene.world.now))
            scene.world.table.move_cursor(scene.key, scene.cursor, taken[0])
        return accepting(tried)

    scene.world.receiver.answers = overtaken
    assert scene.deliver() is DeliveryOutcome.NOTHING
    assert [scene.cursor] == taken
    assert len(scene.world.receiver.tried) == 1


@pytest.mark.parametrize("stop", [CursorState.PAUSED, CursorState.CLOSED])
def test_rule_08_a_slow_notifier_leaves_a_stopped_webhook_that_another_one_is_sending_to(stop: CursorState) -> None:
    """What it has found out is old news: the other's lease, for which a delete waits, stays."""
    scene = Scene()
    taken: list[Cursor] = []

    def overtaken(tried: int) -> Outcome:
        if not taken:
            claimed = cursors.claim_lease(scene.cursor, "other", now=scene.world.now)
            taken.append(replace(claimed, state=stop, due_at=None))
            assert scene.world.table.move_cursor(scene.key, scene.cursor, taken[0])
        return accepting(tried)

    scene.world.receiver.answers = overtaken
    assert scene.deliver() is DeliveryOutcome.NOTHING
    assert [scene.cursor] == taken


@pytest.mark.parametrize("stop", [CursorState.PAUSED, CursorState.CLOSED])
def test_rule_08_a_webhook_that_is_stopped_during_a_failed_attempt_is_free_and_not_due(stop: CursorState) -> None:
    scene = Scene()

    def stopped(_: int) -> Outcome:
        assert scene.world.table.move_cursor(scene.key, scene.cursor, replace(scene.cursor, state=stop, due_at=None))
        return Outcome(status=500)

    scene.world.receiver.answers = stopped
    assert scene.deliver() is DeliveryOutcome.NOTHING
    assert (scene.cursor.state, scene.cursor.lease_until, scene.cursor.due_at) == (stop, 0, None)
    assert scene.cursor.attempt == 1


def calls_of_a_delivery() -> int:
    """How many calls of the table a delivery makes."""
    count = Count(frozenset({"table"}))
    world, _, message = world_to_tell(count)
    before = len(count.calls)
    deliver(world.post, message, lambda: 60_000)
    return len(count.calls) - before


def world_to_tell(faults: Faults) -> tuple[World, TaskKey, DeliveryMessage]:
    """A task that has run, and its webhook, which has heard nothing yet."""
    world = World([Writer(seconds=0).agent], policy=TRUSTING, faults=faults)
    key = ME.key(world.send("hello", push=False).id)
    webhooks.add(world.service.webhooks(), key, "echo", TaskPushNotificationConfig(url=HOOK, id="hook"), "1.0")
    world.run(key)
    world.queue.clear()
    return world, key, DeliveryMessage(key, "hook")


@pytest.mark.parametrize("number", range(1, calls_of_a_delivery() + 1))
def test_rule_08_no_event_goes_to_a_url_that_was_replaced_during_a_delivery(number: int) -> None:
    def meanwhile() -> None:
        webhooks.add(
            world.service.webhooks(), key, "echo", TaskPushNotificationConfig(url=HOOK + "/new", id="hook"), "1.0"
        )
        posts.append(len(world.receiver.tried))

    posts: list[int] = []
    faults = At(late=False, what=meanwhile, ports=frozenset({"table"}))
    world, key, message = world_to_tell(faults)
    faults.after_now(number)
    deliver(world.post, message, lambda: 60_000)
    world.settle()
    later = [json.loads(got.headers["Authorization"][7:])["aud"] for got in world.receiver.tried[posts[0] :]]
    assert set(later) <= {HOOK + "/new"}
    cursor = world.table.get_cursor(key, "hook")
    assert (cursor.position, cursor.incarnation) == (ENDED, world.table.get_config(key, "hook").incarnation)
    assert world.receiver.effects()[-1].n == ENDED


def test_a_task_that_has_expired_has_no_deliveries() -> None:
    scene = Scene()
    scene.world.now += 40 * 86_400_000
    assert scene.deliver() is DeliveryOutcome.NOTHING
    assert scene.world.receiver.tried == []


def test_rule_10_deliveries_log_no_content_and_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    scene = Scene(policy=EgressPolicy(), token="the-token", scheme="Basic", credentials="the-credentials")
    scene.answer(Outcome(status=500), Outcome(error=OutboundError.RESET, reason="…"))
    scene.world.queue.enqueue(scene.message)
    scene.world.settle()
    assert scene.world.get(scene.key.task).status.state is TaskState.COMPLETED
    assert scene.cursor.position == ENDED
    for secret in ("the-token", "the-credentials", "hello"):
        assert secret not in caplog.text


def test_a_backlog_is_read_once_a_page_and_not_once_an_event() -> None:
    world = World([agent_of(chapters)], policy=TRUSTING, faults=(count := Count(frozenset({"table"}))))
    task = world.send("hello", push=False)
    key = ME.key(task.id)
    webhooks.add(world.service.webhooks(), key, "echo", TaskPushNotificationConfig(url=HOOK, id="hook"), "1.0")
    world.queue.clear()
    world.run(key)
    count.calls.clear()
    assert deliver(world.post, DeliveryMessage(key, "hook"), lambda: 60_000) is DeliveryOutcome.CAUGHT_UP
    assert len(world.receiver.effects()) == 12  # all but the "working" that says nothing
    assert count.calls.count("table.read") == 1


async def chapters(task: TaskContext) -> None:
    for number in range(10):
        await task.report_progress(f"chapter {number}")
        await asyncio.sleep(0.3)
