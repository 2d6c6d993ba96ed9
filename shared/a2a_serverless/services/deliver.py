"""Walks the log for one webhook, from its cursor: sign, POST, move on (ARCHITECTURE.md, webhooks).

One delivery is in flight per configuration, by the lease on its cursor. What fails is data: the next try's time. A
notifier that dies leaves a lease that ends by itself and a cursor that did not move, so the event is sent again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import delivery
from a2a_serverless.domain.bells import DeliveryBell
from a2a_serverless.domain.delivery import DEADLINE_MS, DUE_SLACK_MS, Next, Verdict
from a2a_serverless.domain.events import Event, Fold
from a2a_serverless.domain.push import Attempt, Cursor, CursorState, PushConfig, Verification
from a2a_serverless.services.push import sealing_context
from a2a_serverless.wire.notification import Body, notification

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Json, Task, TaskKey
    from a2a_serverless.domain.outbound import Outcome
    from a2a_serverless.ports import Bells, Clock, Ids, PushStore, Sealer, Sender, Signed, Signer, TaskLog

NOTIFICATION_TYP: Final = "a2a-notification+jwt"
CHALLENGE_TYP: Final = "a2a-challenge+jwt"
JWT_HEADER: Final = "X-A2A-Notification-JWT"
TOKEN_HEADER: Final = "X-A2A-Notification-Token"  # noqa: S105 - a name, not a token
DELAY_LIMIT_S: Final = 900
PAGE: Final = 200
TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class Post:
    """What the notifier needs. ``issuer`` is the deployment's base URL; ``chance`` gives numbers in [0, 1)."""

    log: TaskLog
    store: PushStore
    bells: Bells
    sender: Sender
    signer: Signer
    sealer: Sealer
    clock: Clock
    ids: Ids
    issuer: str
    chance: Callable[[], float]
    enforce_ownership: bool = True


class Ending(Enum):
    """How a walk ended."""

    CAUGHT_UP = "caught up"
    MORE_CAME = "more came"
    FAILED = "failed"
    NOT_YET = "not yet"
    NOTHING = "nothing"
    HANDED_ON = "handed on"


@dataclass(frozen=True, slots=True)
class _Walk:
    """One claim of one cursor: all that stays the same while it lasts."""

    key: TaskKey
    head: Head
    config: PushConfig


def deliver(post: Post, bell: DeliveryBell, remaining_ms: Callable[[], int]) -> Ending:
    """Delivers what is pending for one configuration, in order, until it has caught up, fails, or time runs out."""
    while (ending := _claim_and_walk(post, bell, remaining_ms)) is Ending.MORE_CAME:
        pass
    return ending


def _claim_and_walk(post: Post, bell: DeliveryBell, remaining_ms: Callable[[], int]) -> Ending:
    cursor = _claim(post, bell)
    if not isinstance(cursor, Cursor):
        return cursor
    loaded = post.log.look(bell.key)
    config = post.store.config(bell.key, bell.config_id)
    if loaded is None or config is None or config.incarnation != cursor.incarnation:
        return Ending.NOTHING
    walk = _Walk(bell.key, loaded.head, config)
    if config.verification is Verification.UNVERIFIED:
        checked = _challenge(post, walk, cursor)
        if isinstance(checked, Ending):
            return checked
        walk, cursor = checked
    return _walk(post, walk, cursor, remaining_ms)


def _claim(post: Post, bell: DeliveryBell) -> Cursor | Ending:
    for _ in range(TRIES):
        cursor, now = post.store.cursor(bell.key, bell.config_id), post.clock.now()
        if cursor is None or cursor.state is not CursorState.ACTIVE:
            return Ending.NOTHING
        wait_until = max(cursor.lease_until, cursor.next_at)
        if wait_until > now:
            _ring_at(post, bell, wait_until)
            return Ending.NOT_YET
        held = delivery.claimed(cursor, post.ids.new(), now=now)
        if post.store.move(bell.key, cursor, held):
            return held
    return Ending.NOT_YET


def _walk(post: Post, walk: _Walk, cursor: Cursor, remaining_ms: Callable[[], int]) -> Ending:
    while True:
        events = post.log.read(walk.key, cursor.position, PAGE)
        upcoming = delivery.next_of(cursor, walk.config.wire, events)
        if upcoming is None:
            return _release(post, walk, cursor)
        if remaining_ms() < DEADLINE_MS + DUE_SLACK_MS:
            return _hand_on(post, walk, cursor)
        moved = _tell(post, walk, cursor, upcoming)
        if moved is None:
            return Ending.NOTHING
        if moved.position == cursor.position:
            return Ending.FAILED
        cursor = moved


def _tell(post: Post, walk: _Walk, cursor: Cursor, upcoming: Next) -> Cursor | None:
    """Sends one notification and moves the cursor by what came of it; None when the configuration is no longer ours."""
    if upcoming.event is None and upcoming.skipped:
        return _settle(post, walk, cursor, delivery.after_success(cursor, upcoming.n, now=post.clock.now()))
    body = _body(post, walk, upcoming)
    signed = _sign(post, walk.config, upcoming.n, body, walk.key)
    headers = _headers(post, walk, body, signed)
    held = _hold(post, walk, cursor)
    if held is None:
        return None
    started = post.clock.now()
    outcome = post.sender.post(walk.config.url, headers, body.content, DEADLINE_MS)
    verdict = delivery.judge(outcome)
    after = _after(post, held, upcoming.n, verdict, outcome)
    _record(post, walk, held, upcoming.n, started, outcome, signed, after)
    return _settle(post, walk, held, after)


def _hold(post: Post, walk: _Walk, cursor: Cursor) -> Cursor | None:
    """The cursor with enough of its lease left for one attempt; None when it is no longer ours.

    Asked right before each attempt: what came before it (storage, keys, a challenge) may have taken any time.
    """
    now = post.clock.now()
    if cursor.lease_until - now >= DEADLINE_MS:
        return cursor
    longer = delivery.renewed(cursor, now=now)
    return longer if _move(post, walk, cursor, longer) else None


def _after(post: Post, cursor: Cursor, n: int, verdict: Verdict, outcome: Outcome) -> Cursor:
    now = post.clock.now()
    if verdict is Verdict.DELIVERED:
        return delivery.after_success(cursor, n, now=now)
    return delivery.after_failure(cursor, verdict, _seconds(outcome.retry_after), now=now, chance=post.chance())


def _settle(post: Post, walk: _Walk, before: Cursor, after: Cursor) -> Cursor | None:
    """Moves the cursor by what came of an attempt; after a failure a bell brings the next try."""
    if not _move(post, walk, before, after):
        return None
    if after.attempt and after.state is CursorState.ACTIVE:
        _ring_at(post, DeliveryBell(walk.key, after.config_id), after.next_at)
    return after


def _move(post: Post, walk: _Walk, before: Cursor, after: Cursor) -> bool:
    """Moves the cursor. A configuration that was closed meanwhile gets its lease back, so that its deleter goes on."""
    if post.store.move(walk.key, before, after):
        return True
    closed = post.store.cursor(walk.key, before.config_id)
    if closed and closed.state is CursorState.CLOSED and closed.lease_no == before.lease_no:
        post.store.move(walk.key, closed, delivery.released(closed))
    return False


def _release(post: Post, walk: _Walk, cursor: Cursor) -> Ending:
    """Lets go, and looks once more: what was appended since has rung a bell that may have met our lease."""
    if _move(post, walk, cursor, delivery.released(cursor)):
        look = post.log.look(walk.key)
        if look and look.last > cursor.position:
            return Ending.MORE_CAME
    return Ending.CAUGHT_UP


def _hand_on(post: Post, walk: _Walk, cursor: Cursor) -> Ending:
    if _move(post, walk, cursor, delivery.released(cursor)):
        post.bells.ring(DeliveryBell(walk.key, cursor.config_id))
    return Ending.HANDED_ON


def _body(post: Post, walk: _Walk, upcoming: Next) -> Body:
    """An event by itself for 1.0; the task as of that event for snapshots and for 0.3."""
    item: Task | Event | None = upcoming.event
    if item is None or walk.config.wire == "0.3":
        loaded = post.log.load(walk.key)
        item = _fold_to(walk, loaded[1] if loaded else [], upcoming.n).task()
    return notification(walk.config.wire, item, walk.key.task, walk.head.context_id)


def _fold_to(walk: _Walk, events: list[Event], n: int) -> Fold:
    folded = Fold(walk.key.task, walk.head.context_id)
    for event in events[:n]:
        folded.apply(event)
    return folded


def _sign(post: Post, config: PushConfig, n: int, body: Body, key: TaskKey) -> Signed:
    claims = delivery.claims(key, config, n, body.content, issuer=post.issuer, now=post.clock.now(), jti=post.ids.new())
    return post.signer.sign(NOTIFICATION_TYP, claims)


def _headers(post: Post, walk: _Walk, body: Body, signed: Signed) -> dict[str, str]:
    """The client's own credentials own ``Authorization`` when there are some; the JWT then has its own header."""
    config = walk.config
    context = sealing_context(walk.key, config.config_id)
    headers = {"Content-Type": body.content_type, "A2A-Version": config.wire}
    if config.token is not None:
        headers[TOKEN_HEADER] = post.sealer.open(config.token, context)
    if config.credentials is None:
        return headers | {"Authorization": f"Bearer {signed.token}"}
    own = f"{config.scheme} {post.sealer.open(config.credentials, context)}"
    return headers | {"Authorization": own, JWT_HEADER: signed.token}


def _record(  # noqa: PLR0913 - the facts of an attempt
    post: Post, walk: _Walk, cursor: Cursor, n: int, at: int, outcome: Outcome, signed: Signed, after: Cursor
) -> None:
    failed = after.position == cursor.position
    attempt = Attempt(
        config_id=cursor.config_id,
        n=n,
        k=cursor.attempt + 1,
        at=at,
        ms=outcome.elapsed_ms,
        status=outcome.status,
        address=outcome.address,
        error=outcome.error and outcome.error.value,
        kid=signed.kid,
        next_at=after.next_at if failed and after.state is CursorState.ACTIVE else None,
    )
    post.store.record(walk.key, attempt, walk.head.expires)


def _challenge(post: Post, walk: _Walk, cursor: Cursor) -> tuple[_Walk, Cursor] | Ending:
    """Asks the URL whether it wants our events: a 2xx that echoes the challenge. Warn-only delivers all the same."""
    challenge = post.ids.new()
    body = Body("application/json", walk.config.wire, _challenge_body(challenge))
    signed = _sign_challenge(post, walk.config, body)
    headers = _headers(post, walk, body, signed)
    held = _hold(post, walk, cursor)
    if held is None:
        return Ending.NOTHING
    started = post.clock.now()
    outcome = post.sender.post(walk.config.url, headers, body.content, DEADLINE_MS)
    if outcome.accepted and _echoes(outcome.body, challenge):
        verified = replace(walk.config, verification=Verification.VERIFIED)
        return (replace(walk, config=verified), held) if post.store.verify(walk.key, verified) else Ending.NOTHING
    if not post.enforce_ownership:
        return walk, held
    verdict = Verdict.HOPELESS if delivery.judge(outcome) is Verdict.DELIVERED else delivery.judge(outcome)
    after = _after(post, held, held.position, verdict, outcome)
    _record(post, walk, held, 0, started, outcome, signed, after)
    return Ending.FAILED if _settle(post, walk, held, after) else Ending.NOTHING


def _challenge_body(challenge: str) -> bytes:
    return json.dumps({"type": "a2a.webhook.challenge", "challenge": challenge}).encode()


def _sign_challenge(post: Post, config: PushConfig, body: Body) -> Signed:
    claims = delivery.challenge_claims(
        config, body.content, issuer=post.issuer, now=post.clock.now(), jti=post.ids.new()
    )
    return post.signer.sign(CHALLENGE_TYP, claims)


def _echoes(body: bytes, challenge: str) -> bool:
    try:
        answer: Json = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and answer.get("challenge") == challenge


def _seconds(retry_after: str | None) -> int | None:
    """``Retry-After`` as seconds; its date form is not honoured (our own schedule is bounded anyway)."""
    return int(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None


def _ring_at(post: Post, bell: DeliveryBell, at: int) -> None:
    """Rings after ``at`` (ms) when a queue can hold the bell that long; the sweeper rings the later ones."""
    delay_s = max(0, -(-(at - post.clock.now()) // 1000))
    if delay_s <= DELAY_LIMIT_S:
        post.bells.ring(bell, delay_s)
