"""When a webhook is tried again, when it is given up, and what it is told next."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_serverless.domain import cursors, notifications
from a2a_serverless.domain.cursors import (
    DELAYS_S,
    DUE_SLACK_MS,
    GIVE_UP_MS,
    Cursor,
    CursorState,
    Verdict,
    Verification,
    classify_outcome,
    postpone,
    record_failure,
    record_success,
    redrive,
)
from a2a_serverless.domain.events import ArtifactEvent, Event, StatusEvent
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.notifications import BACKLOG, Chunks, NextNotification, find_next, snapshot_for_backlog
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.domain.push_configs import PushConfig
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Role, TaskState

NOW = 1_790_000_000_000
MANY = settings(deadline=None, max_examples=200)
CURSOR = Cursor("hook", "first", position=4, lease_until=NOW + 9_000, lease_no=3, holder="me")
HELD = replace(CURSOR, unanswered=3, redriven_at=NOW - 1)
KEY = TaskKey("tenant", "owner", "task")
CONFIG = PushConfig("hook", "https://hooks.example.com/a?b=c", "1.0", "first", NOW)


# ---- What an outcome means


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        *((status, Verdict.DELIVERED) for status in (200, 201, 202, 204, 299)),
        *((status, Verdict.PERMANENT) for status in (300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 405, 422, 451)),
        *((status, Verdict.RETRY) for status in (408, 409, 425, 429, 500, 502, 503, 504, 599, 101)),
        (410, Verdict.GONE),
    ],
)
def test_a_status_decides_what_becomes_of_a_delivery(status: int, verdict: Verdict) -> None:
    assert classify_outcome(Outcome(status=status)) is verdict


@pytest.mark.parametrize("error", OutboundError)
def test_a_delivery_without_an_answer_is_tried_again(error: OutboundError) -> None:
    assert classify_outcome(Outcome(error=error, reason="…")) is Verdict.RETRY


def test_a_broken_body_behind_a_good_status_is_delivered_all_the_same() -> None:
    assert classify_outcome(Outcome(status=200, error=OutboundError.TOO_LARGE)) is Verdict.DELIVERED


# ---- After a failure


def failures(count: int, chance: float = 0.0, verdict: Verdict = Verdict.RETRY) -> list[Cursor]:
    """The cursor after each failure in a row; each try is made at the moment that it was due."""
    cursor, now, seen = CURSOR, NOW, list[Cursor]()
    for _ in range(count):
        cursor = record_failure(cursor, verdict, None, now=now, chance=chance)
        now = cursor.next_at or now
        seen.append(cursor)
    return seen


@pytest.mark.requirement(76)
def test_tries_are_made_at_the_times_of_the_schedule_and_then_no_more() -> None:
    tried = failures(12)
    starts = [NOW, *(cursor.next_at for cursor in tried[:-1])]
    waits = [(later - earlier) // 1000 for earlier, later in pairwise(starts)]
    minute, hour = 60, 3600
    assert waits == [5, 30, 2 * minute, 10 * minute, 30 * minute, *(n * hour for n in (1, 2, 4, 8, 12, 20))]
    assert [cursor.state for cursor in tried] == [CursorState.ACTIVE] * 11 + [CursorState.EXHAUSTED]
    assert [cursor.attempt for cursor in tried] == list(range(1, 13))


def test_a_failure_frees_the_cursor_and_leaves_it_where_it_was() -> None:
    at = NOW + 5_000
    assert record_failure(HELD, Verdict.RETRY, None, now=NOW, chance=0.0) == replace(
        CURSOR, attempt=1, next_at=at, due_at=at + DUE_SLACK_MS, lease_until=0, failing_since=NOW
    )


def test_failures_in_a_row_have_one_beginning_and_a_success_ends_them() -> None:
    tried = failures(4)
    assert {cursor.failing_since for cursor in tried} == {NOW}
    assert record_success(tried[-1], 1, now=NOW).failing_since == 0


def test_a_host_that_is_left_alone_costs_no_attempt() -> None:
    after = postpone(replace(CURSOR, attempt=3), NOW + 30_000, 3, now=NOW, chance=0.5)
    assert (after.attempt, after.next_at, after.due_at) == (3, NOW + 33_000, NOW + 33_000 + DUE_SLACK_MS)
    assert (after.lease_until, after.failing_since, after.unanswered) == (0, NOW, 3)


def test_a_host_that_is_left_alone_for_longer_than_all_tries_take_is_given_up() -> None:
    since = replace(CURSOR, failing_since=NOW)
    assert postpone(since, NOW + GIVE_UP_MS, 3, now=NOW + GIVE_UP_MS - 1, chance=0.0).state is CursorState.ACTIVE
    late = postpone(since, NOW + GIVE_UP_MS + 30_000, 3, now=NOW + GIVE_UP_MS, chance=0.0)
    assert (late.state, late.due_at) == (CursorState.EXHAUSTED, NOW + GIVE_UP_MS)


@pytest.mark.parametrize("state", [CursorState.EXHAUSTED, CursorState.GONE, CursorState.PAUSED])
def test_a_redriven_cursor_begins_anew_where_it_stood(state: CursorState) -> None:
    ended = replace(HELD, position=7, attempt=12, failing_since=NOW, next_at=NOW, state=state)
    again = redrive(ended, now=NOW + 1)
    assert again == replace(CURSOR, position=7, due_at=NOW + 1 + DUE_SLACK_MS, redriven_at=NOW + 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Verification.REFUSED, Verification.UNVERIFIED),
        (Verification.UNVERIFIED, Verification.UNVERIFIED),
        (Verification.VERIFIED, Verification.VERIFIED),
    ],
)
def test_a_redriven_cursor_whose_challenge_was_refused_is_challenged_again(
    before: Verification, after: Verification
) -> None:
    assert redrive(replace(CURSOR, verification=before), now=NOW).verification is after


@MANY
@given(st.integers(0, 10), st.floats(0, 1, exclude_max=True), st.none() | st.integers(0, 10**9))
def test_jitter_and_retry_after_only_add_and_only_within_bounds(
    attempt: int, chance: float, retry_after_s: int | None
) -> None:
    cursor = replace(CURSOR, attempt=attempt)
    after = record_failure(cursor, Verdict.RETRY, retry_after_s, now=NOW, chance=chance)
    least = max(DELAYS_S[attempt + 1], min(retry_after_s or 0, 3600)) * 1000
    assert least <= after.next_at - NOW <= least * 12 // 10


def test_chance_spreads_the_times_of_the_attempts() -> None:
    waits = {record_failure(CURSOR, Verdict.RETRY, None, now=NOW, chance=n / 10).next_at - NOW for n in range(10)}
    assert len(waits) == 10


@pytest.mark.parametrize(("retry_after_s", "wait_s"), [(None, 5), (1, 5), (7, 7), (3600, 3600), (3601, 3600)])
def test_retry_after_lengthens_the_wait_up_to_an_hour(retry_after_s: int | None, wait_s: int) -> None:
    after = record_failure(CURSOR, Verdict.RETRY, retry_after_s, now=NOW, chance=0.0)
    assert after.next_at == NOW + wait_s * 1000


def test_a_retry_after_longer_than_the_last_wait_does_not_shorten_it() -> None:
    late = replace(CURSOR, attempt=10)
    assert record_failure(late, Verdict.RETRY, 60, now=NOW, chance=0.0).next_at == NOW + 72_000_000


def test_a_permanent_failure_gets_five_tries() -> None:
    states = [cursor.state for cursor in failures(5, verdict=Verdict.PERMANENT)]
    assert states == [CursorState.ACTIVE] * 4 + [CursorState.EXHAUSTED]


def test_one_permanent_failure_late_in_a_row_of_failures_ends_it() -> None:
    late = replace(CURSOR, attempt=4)
    assert record_failure(late, Verdict.PERMANENT, None, now=NOW, chance=0.0).state is CursorState.EXHAUSTED


def test_gone_ends_the_configuration_at_once() -> None:
    after = record_failure(CURSOR, Verdict.GONE, 60, now=NOW, chance=0.5)
    assert after == replace(CURSOR, attempt=1, lease_until=0, state=CursorState.GONE, due_at=None, failing_since=NOW)


def test_an_exhausted_cursor_is_due_at_the_time_of_its_last_attempt() -> None:
    tried = failures(12)
    assert tried[-1].due_at == tried[-2].next_at


# ---- After a success, and around it


def test_a_success_moves_the_cursor_forgets_the_failures_and_keeps_the_lease() -> None:
    failing = replace(HELD, attempt=3, next_at=NOW - 1, due_at=NOW, failing_since=NOW - 9)
    assert cursors.record_success(failing, 6, now=NOW) == replace(
        CURSOR, position=6, attempt=0, next_at=0, due_at=None, lease_until=NOW + cursors.CURSOR_LEASE_MS
    )


def test_rule_08_each_claim_has_a_number_and_a_holder_of_its_own() -> None:
    claimed = cursors.claim_lease(HELD, "other", now=NOW)
    assert claimed == replace(CURSOR, lease_no=4, holder="other", lease_until=NOW + cursors.CURSOR_LEASE_MS)
    assert cursors.release_lease(claimed) == replace(claimed, lease_until=0)
    later = NOW + 5_000
    assert cursors.renew_lease(claimed, now=later) == replace(claimed, lease_until=later + cursors.CURSOR_LEASE_MS)


def test_rule_08_a_post_begins_only_if_the_lease_lasts_for_it_and_for_clocks_that_differ() -> None:
    until = NOW + cursors.POST_DEADLINE_MS + cursors.CLOCK_SKEW_MS
    assert cursors.covers_attempt(replace(CURSOR, lease_until=until), NOW)
    assert not cursors.covers_attempt(replace(CURSOR, lease_until=until - 1), NOW)


def test_rule_08_a_replacement_takes_over_a_lease_that_lasts() -> None:
    first = Cursor("hook", "second")
    taken = replace(first, lease_until=CURSOR.lease_until, lease_no=3, holder="me")
    assert cursors.replace_cursor(CURSOR, first, now=CURSOR.lease_until - 1) == taken
    assert cursors.replace_cursor(CURSOR, first, now=CURSOR.lease_until) == first
    assert cursors.replace_cursor(None, first, now=NOW) == first
    assert cursors.same_lease(taken, CURSOR)
    for other in ({"lease_no": 4}, {"holder": "you"}, {"lease_until": NOW}):
        assert not cursors.same_lease(taken, replace(CURSOR, **other))


def test_a_redriven_cursor_may_try_a_silent_host_for_two_minutes() -> None:
    assert cursors.passes_breaker(replace(CURSOR, redriven_at=NOW), NOW + cursors.REDRIVE_MS - 1)
    assert not cursors.passes_breaker(replace(CURSOR, redriven_at=NOW), NOW + cursors.REDRIVE_MS)
    assert not cursors.passes_breaker(CURSOR, NOW)


@pytest.mark.requirement(75)
def test_a_webhook_has_ten_to_thirty_seconds_to_answer() -> None:
    assert 10_000 <= cursors.POST_DEADLINE_MS <= 30_000


def test_rule_08_a_lease_outlives_an_attempt() -> None:
    assert cursors.CURSOR_LEASE_MS > cursors.POST_DEADLINE_MS


# ---- What comes next

SAID = Message(message_id="m", role=Role.AGENT, parts=(Part(text="on it"),))


def status(n: int, state: TaskState = TaskState.WORKING, message: Message | None = None) -> StatusEvent:
    return StatusEvent(n, NOW, "a", state, message=message)


def chunk(n: int, *, last: bool = False) -> ArtifactEvent:
    return ArtifactEvent(n, NOW, "a", Artifact(artifact_id="doc", parts=(Part(text="x"),)), last_chunk=last)


KINDS = st.sampled_from(["working", "progress", "chunk", "last", "question", "completed"])


def event_of(kind: str, n: int) -> Event:
    made: dict[str, Event] = {
        "working": status(n),
        "progress": status(n, message=SAID),
        "chunk": chunk(n),
        "last": chunk(n, last=True),
        "question": status(n, TaskState.INPUT_REQUIRED, SAID),
        "completed": status(n, TaskState.COMPLETED),
    }
    return made[kind]


LOGS = st.lists(KINDS, max_size=14).map(lambda kinds: [event_of(kind, n) for n, kind in enumerate(kinds, 1)])
ALLOWED: list[Chunks] = ["all", "last", "none"]


def walked(chunks: Chunks, log: list[Event], page: int) -> list[NextNotification]:
    """Every step of a cursor over the log, page by page, as a notifier makes them."""
    cursor, steps = replace(CURSOR, position=0, start=1), list[NextNotification]()
    while upcoming := find_next(cursor, log[cursor.position : cursor.position + page], chunks):
        assert upcoming.n > cursor.position, "every step goes forward"
        steps.append(upcoming)
        cursor = cursors.record_success(cursor, upcoming.n, now=NOW)
    return steps


def may_be_skipped(event: Event, chunks: Chunks, log: list[Event]) -> bool:
    """The allowance of section 6, over the whole log."""
    if isinstance(event, ArtifactEvent):
        return chunks == "none" or (chunks == "last" and not event.last_chunk)
    plain = event.state is TaskState.WORKING and event.message is None
    return plain and any(isinstance(later, StatusEvent) and later.n > event.n for later in log)


@MANY
@given(LOGS, st.sampled_from(ALLOWED))
def test_rule_08_a_webhook_hears_everything_in_order_but_for_what_may_be_skipped(
    log: list[Event], chunks: Chunks
) -> None:
    steps = walked(chunks, log, page=200)
    told = [step.event.n for step in steps if step.event]
    expected = [event.n for event in log[1:] if not may_be_skipped(event, chunks, log)]
    assert told == expected
    assert steps[:1] == ([NextNotification(1, None)] if log else [])


@MANY
@given(LOGS, st.sampled_from(ALLOWED), st.integers(1, 4))
def test_rule_08_a_short_page_skips_nothing_that_a_long_one_would_tell(
    log: list[Event], chunks: Chunks, page: int
) -> None:
    told = [step.event.n for step in walked(chunks, log, page) if step.event]
    assert told == sorted(set(told))
    skipped = [event for event in log[1:] if event.n not in told]
    assert all(may_be_skipped(event, chunks, log) for event in skipped)


def test_the_first_notification_is_a_snapshot_as_of_the_registration() -> None:
    fresh = Cursor("hook", "first", start=3)
    assert find_next(fresh, [status(1), status(2), status(3), status(4)]) == NextNotification(3, None)
    assert find_next(replace(fresh, position=1), [status(2, message=SAID)]) == NextNotification(
        2, status(2, message=SAID)
    )


def test_a_cursor_at_the_end_of_the_log_has_no_next_event() -> None:
    assert find_next(CURSOR, []) is None


def test_a_cursor_moves_over_what_needs_no_notification() -> None:
    assert find_next(CURSOR, [chunk(5), chunk(6)], "last") == NextNotification(6, None, 2)
    assert find_next(CURSOR, [chunk(5), chunk(6, last=True)], "none") == NextNotification(6, None, 2)
    assert find_next(CURSOR, [chunk(5), chunk(6)]) == NextNotification(5, chunk(5))


def test_the_last_working_is_told_though_it_says_nothing() -> None:
    assert find_next(CURSOR, [status(5), status(6)]) == NextNotification(6, status(6), 1)


# ---- A long backlog

BEHIND = replace(CURSOR, position=4)
CHUNKS: list[Event] = [chunk(n) for n in range(5, 5 + BACKLOG)]
HERE = CHUNKS[-1].n


def test_a_snapshot_stands_for_a_long_backlog_and_for_no_short_one() -> None:
    assert snapshot_for_backlog(BEHIND, CHUNKS) == NextNotification(HERE, None)
    assert snapshot_for_backlog(BEHIND, CHUNKS[:-1]) is None
    assert snapshot_for_backlog(BEHIND, []) is None
    assert snapshot_for_backlog(replace(BEHIND, position=1), CHUNKS) == NextNotification(HERE, None)
    assert snapshot_for_backlog(BEHIND, CHUNKS, "last") == NextNotification(HERE, None)
    assert snapshot_for_backlog(BEHIND, CHUNKS, "none") is None


def test_the_first_notification_is_as_of_the_registration_also_with_a_long_backlog() -> None:
    assert snapshot_for_backlog(replace(BEHIND, position=0), [status(1), *CHUNKS]) is None


@pytest.mark.parametrize("state", sorted(INTERRUPTED | TERMINAL))
def test_rule_08_a_snapshot_never_jumps_a_status_that_ends_the_task_or_needs_its_client(state: TaskState) -> None:
    told = status(HERE + 1, state)
    assert snapshot_for_backlog(
        BEHIND, [*CHUNKS, told, *(chunk(n) for n in range(HERE + 2, HERE + 300))]
    ) == NextNotification(HERE, None)
    assert snapshot_for_backlog(BEHIND, [told, *CHUNKS]) is None
    assert snapshot_for_backlog(BEHIND, [*CHUNKS[:50], told, *CHUNKS[50:]]) is None


# ---- Tokens


def test_the_claims_are_exactly_those_of_the_contract() -> None:
    body = b'{"task":{}}'
    text = "tenant\nowner\ntask\nhook\nfirst\n7"
    assert notifications.notification_claims(
        KEY, CONFIG, 7, body, issuer="https://api.example.com", now=NOW + 999, jti="j"
    ) == {
        "iss": "https://api.example.com",
        "aud": "https://hooks.example.com/a?b=c",
        "iat": NOW // 1000,
        "exp": NOW // 1000 + 300,
        "jti": "j",
        "sub": "task",
        "taskId": "task",
        "configId": "hook",
        "notificationId": sha256(text.encode()).hexdigest()[:32],
        "eventNumber": 7,
        "request_body_sha256": sha256(body).hexdigest(),
    }


def test_a_challenge_names_no_task() -> None:
    claims = notifications.challenge_claims(CONFIG, b"{}", issuer="https://api.example.com", now=NOW, jti="j")
    assert sorted(claims) == ["aud", "exp", "iat", "iss", "jti", "request_body_sha256"]


def test_a_notification_keeps_its_id_over_attempts_and_no_two_share_one() -> None:
    others = [
        (KEY, CONFIG, 8),
        (KEY._replace(task="other"), CONFIG, 7),
        (KEY._replace(owner="other"), CONFIG, 7),
        (KEY._replace(tenant="other"), CONFIG, 7),
        (KEY, replace(CONFIG, config_id="other"), 7),
        (KEY, replace(CONFIG, incarnation="second"), 7),
    ]
    ids = {notifications.notification_id(*facts) for facts in others}
    ours = notifications.notification_id(KEY, CONFIG, 7)
    assert ours == notifications.notification_id(KEY, replace(CONFIG, created_at=1), 7)
    assert len(ids - {ours}) == len(others)


@pytest.mark.parametrize("verdict", [Verdict.RETRY, Verdict.PERMANENT])
def test_a_cursor_that_waits_for_its_next_attempt_is_due_for_the_sweeper(verdict: Verdict) -> None:
    """So a message that comes early may be dropped."""
    waiting = [cursors.postpone(CURSOR, NOW + 30_000, 3, now=NOW, chance=0.5)]
    waiting += [
        cursors.record_failure(replace(CURSOR, attempt=attempt), verdict, None, now=NOW, chance=0.5)
        for attempt in range(len(cursors.DELAYS_S))
    ]
    assert all(cursor.due_at is not None for cursor in waiting if cursor.next_at > NOW)
