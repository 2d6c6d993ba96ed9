"""Walks the log for one webhook, from its cursor: sign, POST, move on (ARCHITECTURE.md, webhooks).

One delivery is in flight per configuration, by the lease on its cursor. What fails is data: the next try's time. A
notifier that dies leaves a lease that ends by itself and a cursor that did not move, so the event is sent again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import challenges, delivery, trace
from a2a_serverless.domain.bells import DeliveryBell
from a2a_serverless.domain.breaker import host_of
from a2a_serverless.domain.delivery import CLOCKS_MS, DEADLINE_MS, DUE_SLACK_MS, Next, Verdict
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.failures import described
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.outbound import OutboundError, Outcome
from a2a_serverless.domain.push import Attempt, Cursor, CursorState, PushConfig, Verification
from a2a_serverless.services.contents import shown
from a2a_serverless.services.hosts import Answered, Busy, Hosts, LeftAlone
from a2a_serverless.services.push import sealing_context
from a2a_serverless.services.telling import Telling
from a2a_serverless.wire.notification import Body, notification

if TYPE_CHECKING:
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Json, Task, TaskKey
    from a2a_serverless.ports import (
        Bells,
        Clock,
        Contents,
        Ids,
        Metrics,
        PushStore,
        Sealer,
        Sender,
        Signed,
        Signer,
        TaskLog,
    )

logger = logging.getLogger(__name__)

NOTIFICATION_TYP: Final = "a2a-notification+jwt"
CHALLENGE_TYP: Final = "a2a-challenge+jwt"
JWT_HEADER: Final = "X-A2A-Notification-JWT"
TOKEN_HEADER: Final = "X-A2A-Notification-Token"  # noqa: S105 - a name, not a token
DELAY_LIMIT_S: Final = 900
CHALLENGE: Final = 0  # in place of an event's number
PAGE: Final = 200
TRIES: Final = 10
STOPPED: Final = frozenset({CursorState.CLOSED, CursorState.PAUSED})
ROUND_MS: Final = DEADLINE_MS + DUE_SLACK_MS
BUSY_S: Final = 2
SLOT_WAIT_MS: Final = 2_000
SLOT_POLL_S: Final = 0.01


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
    hosts: Hosts
    metrics: Metrics
    enforce_ownership: bool = True
    contents: Contents | None = None
    answered: Answered = field(default_factory=Answered)


class Ending(Enum):
    """How a walk ended."""

    CAUGHT_UP = "caught up"
    MORE_CAME = "more came"
    FAILED = "failed"
    NOT_YET = "not yet"
    LEFT_ALONE = "left alone"
    NOTHING = "nothing"
    HANDED_ON = "handed on"


@dataclass(frozen=True, slots=True)
class _Walk:
    """One claim of one cursor: all that stays the same while it lasts."""

    key: TaskKey
    head: Head
    config: PushConfig
    host: str
    remaining_ms: Callable[[], int]
    verification: Verification
    telling: Telling
    warned: bool = False
    large: bool = False


@dataclass(frozen=True, slots=True)
class _Letter:
    """What is signed and sent: the number of its event or ``CHALLENGE``."""

    n: int
    typ: str
    body: Body


@dataclass(frozen=True, slots=True)
class _Tried:
    """One POST: what became of it, when (ms) it began, and the key that signed it (None: nothing could be sent)."""

    outcome: Outcome
    at: int
    kid: str | None


class _Lost(Exception):
    """The cursor is no longer ours: deleted, replaced, paused, or our lease ran out."""


class _Unreadable(Exception):
    """What is to be told cannot be read: damaged, gone, or of a newer release. The cause says why."""


@contextmanager
def _reading() -> Iterator[None]:
    """What fails here is raised as _Unreadable; but a store that has too much to do says nothing of what it holds."""
    try:
        yield
    except Overloaded:
        raise
    except Exception as error:
        raise _Unreadable from error


def deliver(post: Post, bell: DeliveryBell, remaining_ms: Callable[[], int]) -> Ending:
    """Delivers what is pending for one configuration, in order, until it has caught up, fails, or time runs out."""
    while (ending := _claim_and_walk(post, bell, remaining_ms)) is Ending.MORE_CAME:
        pass
    return ending


def _claim_and_walk(post: Post, bell: DeliveryBell, remaining_ms: Callable[[], int]) -> Ending:
    walk: _Walk | None = None
    held = Cursor(bell.config_id, "")
    try:
        claimed = _claim(post, bell, remaining_ms)
        if isinstance(claimed, Ending):
            return claimed
        walk, held = claimed
        return _walk(post, walk, held)
    except _Lost:
        return Ending.NOTHING
    except _Unreadable as unreadable:
        return _fail_unread(post, bell, walk, held, unreadable)


def _fail_unread(post: Post, bell: DeliveryBell, walk: _Walk | None, held: Cursor, unreadable: _Unreadable) -> Ending:
    """What cannot be read is a failed attempt: it is tried again on schedule, and given up in the end."""
    ids = {"task": bell.key.task, "config": bell.config_id}
    logger.error("webhook not sent: unreadable", extra=described(unreadable) | ids)
    cursor, now = post.store.cursor(bell.key, bell.config_id), post.clock.now()
    if walk and cursor and (cursor.incarnation, cursor.lease_no) == (held.incarnation, held.lease_no):
        n = cursor.position + 1 if cursor.position else cursor.start
        tried = _Tried(Outcome(error=OutboundError.UNREADABLE), now, None)
        return _fail(post, replace(walk, verification=cursor.verification), cursor, n, tried, Verdict.RETRY)
    if walk or cursor is None or cursor.state is not CursorState.ACTIVE or cursor.lease_until > now:
        return Ending.NOTHING
    after = delivery.after_failure(cursor, Verdict.RETRY, None, now=now, chance=post.chance())
    if not post.store.move(bell.key, cursor, after):
        return Ending.NOTHING
    _count_exhausted(post, bell.key, after)
    _ring_for_next(post, bell.key, after)
    return Ending.FAILED


def _claim(post: Post, bell: DeliveryBell, remaining_ms: Callable[[], int]) -> tuple[_Walk, Cursor] | Ending:
    for _ in range(TRIES):
        cursor, now = post.store.cursor(bell.key, bell.config_id), post.clock.now()
        if cursor is None or cursor.state is not CursorState.ACTIVE:
            return Ending.NOTHING
        if max(cursor.lease_until, cursor.next_at) > now:
            return _come_again(post, bell, cursor, now)
        walk = _begun(post, bell.key, cursor, remaining_ms)
        if isinstance(walk, Ending):
            return walk
        try:
            post.hosts.check(walk.host, now)
        except LeftAlone as alone:
            return _leave_alone(post, walk, cursor, alone.until)
        held = delivery.claimed(cursor, post.ids.new(), now=now)
        if post.store.move(bell.key, cursor, held):
            if cursor.lease_until:
                post.metrics.count("LeaseLost", of="notifier", task=bell.key.task, config=bell.config_id)
            return walk, held
    return Ending.NOT_YET


def _begun(post: Post, key: TaskKey, cursor: Cursor, remaining_ms: Callable[[], int]) -> _Walk | Ending:
    """What the cursor walks, if there is anything to tell: a second bell for the same event costs no claim."""
    with _reading():
        look = post.log.look(key)
        if look is None:
            return Ending.NOTHING
        if look.last <= cursor.position:
            return Ending.CAUGHT_UP
        config = post.store.config(key, cursor.config_id)
    if config is None:
        return Ending.NOTHING
    telling = Telling(post.log, look.head)
    return _Walk(key, look.head, config, host_of(config.url), remaining_ms, cursor.verification, telling)


def _come_again(post: Post, bell: DeliveryBell, cursor: Cursor, now: int) -> Ending:
    """A bell that meets a lease rings again after it. One that is early is dropped: the next try has its own bell."""
    wait_until = max(cursor.lease_until, cursor.next_at)
    if cursor.lease_until > now or wait_until - now <= CLOCKS_MS:
        _ring_at(post, bell, wait_until)
    return Ending.NOT_YET


def _leave_alone(post: Post, walk: _Walk, cursor: Cursor, until: int) -> Ending:
    """Tries again when the host may be back. Nobody else is asked: the cursor is either ours or nobody's."""
    after = delivery.postponed(cursor, until, now=post.clock.now(), chance=post.chance())
    if _move(post, walk, cursor, after):
        _ring_for_next(post, walk.key, after)
    return Ending.LEFT_ALONE


def _walk(post: Post, walk: _Walk, cursor: Cursor) -> Ending:
    """Delivers until nothing is left. A page is read once, whatever number of deliveries it takes."""
    events: list[Event] = []
    whole = True
    while True:
        events = [event for event in events if event.n > cursor.position]
        if not events:
            with _reading():
                events = post.log.read(walk.key, cursor.position, PAGE)
            whole = len(events) < PAGE
        upcoming = delivery.next_of(cursor, walk.config.wire, events)
        if upcoming is None:
            return _release(post, walk, cursor)
        if walk.remaining_ms() < ROUND_MS:
            return _hand_on(post, walk, cursor)
        if _unasked(post, walk, cursor):
            walked = _ask(post, walk, cursor)
            if isinstance(walked, Ending):
                return walked
            walk, cursor = walked
            continue
        walk, upcoming = _shortened(post, walk, cursor, events, upcoming)
        told = _tell(post, walk, cursor, upcoming, events, last=whole and upcoming.n >= events[-1].n)
        if isinstance(told, Ending):
            return told
        cursor = told


def _shortened(post: Post, walk: _Walk, cursor: Cursor, events: list[Event], upcoming: Next) -> tuple[_Walk, Next]:
    """A snapshot in place of a long backlog; not of a large task, which is found out once in a walk."""
    in_place = None if walk.large else delivery.next_in_place(cursor, events)
    if in_place is None:
        return walk, upcoming
    large = len(_body(post, walk, in_place, events).content) > delivery.SNAPSHOT_LIMIT
    return (replace(walk, large=True), upcoming) if large else (walk, in_place)


def _tell(
    post: Post, walk: _Walk, cursor: Cursor, upcoming: Next, events: list[Event], *, last: bool
) -> Cursor | Ending:
    """Sends one notification and moves the cursor by what came of it. The ``last`` one lets go of it in one move."""
    if upcoming.event is None and upcoming.skipped:
        return _moved(post, walk, cursor, delivery.after_success(cursor, upcoming.n, now=post.clock.now()))
    letter = _Letter(upcoming.n, NOTIFICATION_TYP, _body(post, walk, upcoming, events))
    if upcoming.event and not cursor.failing_since:
        waited = post.clock.now() - upcoming.event.at
        post.metrics.measure({"QueueAge": waited}, queue="delivery", task=walk.key.task, config=cursor.config_id)
    try:
        cursor, tried = _send(post, walk, cursor, letter)
    except (Busy, LeftAlone) as wait:
        return _put_off(post, walk, cursor, wait)
    if not tried.outcome.accepted:
        return _fail(post, walk, cursor, upcoming.n, tried, delivery.judge(tried.outcome))
    _record(post, walk, cursor, upcoming.n, tried, None)
    if walk.verification is Verification.UNVERIFIED:
        _count(post, walk.key, "DeliveryUnverified", walk.config.config_id)
    after = delivery.after_success(cursor, upcoming.n, now=post.clock.now())
    return _release(post, walk, cursor, after) if last else _moved(post, walk, cursor, after)


def _fail(post: Post, walk: _Walk, cursor: Cursor, n: int, tried: _Tried, verdict: Verdict) -> Ending:
    """Writes a failure down; a bell brings the next try, the sweeper should the bell get lost."""
    now, retry_after = post.clock.now(), _seconds(tried.outcome.retry_after)
    after = delivery.after_failure(cursor, verdict, retry_after, now=now, chance=post.chance())
    _record(post, walk, cursor, n, tried, after.next_at if after.state is CursorState.ACTIVE else None)
    if n == CHALLENGE and after.state is not CursorState.ACTIVE:
        walk = replace(walk, verification=Verification.REFUSED)
    if not _move(post, walk, cursor, after):
        return Ending.NOTHING
    _ring_for_next(post, walk.key, after)
    return Ending.FAILED


def _put_off(post: Post, walk: _Walk, cursor: Cursor, wait: Busy | LeftAlone) -> Ending:
    if isinstance(wait, LeftAlone):
        return _leave_alone(post, walk, cursor, wait.until)
    if _move(post, walk, cursor, delivery.released(cursor)):
        post.bells.ring(DeliveryBell(walk.key, cursor.config_id), BUSY_S)
    return Ending.NOT_YET


def _send(post: Post, walk: _Walk, cursor: Cursor, letter: _Letter) -> tuple[Cursor, _Tried]:
    """POSTs, within the host's limits; raises LeftAlone or Busy.

    A kept connection that the host had closed already is no failure of the host's: then once more, at once.
    """
    cursor, tried = _post(post, walk, cursor, letter)
    outcome = tried.outcome
    gone = outcome.status is None and outcome.reused and outcome.error is OutboundError.RESET
    if gone and walk.remaining_ms() >= ROUND_MS:
        _record(post, walk, cursor, letter.n, tried, post.clock.now())
        cursor, tried = _post(post, walk, cursor, letter)
    return cursor, tried


def _post(post: Post, walk: _Walk, cursor: Cursor, letter: _Letter) -> tuple[Cursor, _Tried]:
    jti = post.ids.new()
    signed = _sign(post, walk, letter, jti)
    with _reading():
        headers = _headers(post, walk, letter.body, signed) | _traced(walk, jti)
    with _slot(post, walk.host):
        cursor, at = _covered(post, walk, cursor), post.clock.now()
        outcome = post.sender.post(walk.config.url, headers, letter.body.content, DEADLINE_MS)
    if not (outcome.status is None and outcome.reused):
        post.hosts.learn(walk.host, outcome, post.clock.now())
    return cursor, _Tried(outcome, at, signed.kid)


@contextmanager
def _slot(post: Post, host: str) -> Iterator[None]:
    """A place among the host's requests; waits a moment for one, then raises Busy."""
    until = post.clock.now() + SLOT_WAIT_MS
    while True:
        with ExitStack() as visits:
            try:
                visits.enter_context(post.hosts.visit(host, post.clock.now()))
            except Busy:
                if post.clock.now() >= until:
                    raise
            else:
                yield
                return
        post.clock.sleep(SLOT_POLL_S)


def _covered(post: Post, walk: _Walk, cursor: Cursor) -> Cursor:
    """The cursor with a lease that outlasts a POST; raises _Lost. So nothing is sent after a deletion has returned.

    Asked right before each attempt: what came before it (storage, keys, a challenge) may have taken any time.
    """
    now = post.clock.now()
    if delivery.covers_a_post(cursor, now):
        return cursor
    return _moved(post, walk, cursor, delivery.renewed(cursor, now=now))


def _moved(post: Post, walk: _Walk, before: Cursor, after: Cursor) -> Cursor:
    """The cursor, moved; raises _Lost."""
    if not _move(post, walk, before, after):
        raise _Lost
    return replace(after, verification=walk.verification)


def _move(post: Post, walk: _Walk, before: Cursor, after: Cursor) -> bool:
    """Moves the cursor, with what the walk has found out of the URL's owner.

    One that was stopped meanwhile gets what was found out and is let go of, but stays stopped. One that was replaced
    stands under our lease, for which its replacement waits: it is let go of too.
    """
    key, after = walk.key, replace(after, verification=walk.verification)
    if post.store.move(key, before, after):
        _count_exhausted(post, key, after)
        return True
    kept = post.store.cursor(key, before.config_id)
    if kept and kept.state in STOPPED and (kept.incarnation, kept.lease_no) == (before.incarnation, before.lease_no):
        post.store.move(key, kept, replace(after, state=kept.state, lease_until=0, due_at=None))
    elif kept and kept.incarnation != before.incarnation and delivery.same_lease(kept, before):
        post.store.move(key, kept, delivery.released(kept))
    return False


def _count_exhausted(post: Post, key: TaskKey, after: Cursor) -> None:
    if after.state is CursorState.EXHAUSTED:
        _count(post, key, "DeliveryExhausted", after.config_id)


def _release(post: Post, walk: _Walk, before: Cursor, after: Cursor | None = None) -> Ending:
    """Lets go, and looks once more: what was appended since has rung a bell that may have met our lease."""
    after = delivery.released(after or before)
    _moved(post, walk, before, after)
    look = post.log.look(walk.key)
    return Ending.MORE_CAME if look and look.last > after.position else Ending.CAUGHT_UP


def _hand_on(post: Post, walk: _Walk, cursor: Cursor) -> Ending:
    if _move(post, walk, cursor, delivery.released(cursor)):
        post.bells.ring(DeliveryBell(walk.key, cursor.config_id))
    return Ending.HANDED_ON


def _body(post: Post, walk: _Walk, upcoming: Next, events: list[Event]) -> Body:
    """An event by itself for 1.0; the task as of that event for snapshots and for 0.3."""
    with _reading():
        item: Task | Event | None = upcoming.event
        if item is None or walk.config.wire == "0.3":
            item = walk.telling.at(upcoming.n, events)
        item = shown(post.contents, Principal(walk.key.tenant, walk.key.owner), item)
        return notification(walk.config.wire, item, walk.key.task, walk.head.context_id)


def _traced(walk: _Walk, span: str) -> dict[str, str]:
    return {trace.HEADER: trace.child(walk.head.trace, span)} if walk.head.trace else {}


def _sign(post: Post, walk: _Walk, letter: _Letter, jti: str) -> Signed:
    """Signs afresh, for one attempt."""
    now, content = post.clock.now(), letter.body.content
    if letter.typ == CHALLENGE_TYP:
        said = delivery.challenge_claims(walk.config, content, issuer=post.issuer, now=now, jti=jti)
    else:
        said = delivery.claims(walk.key, walk.config, letter.n, content, issuer=post.issuer, now=now, jti=jti)
    return post.signer.sign(letter.typ, said)


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


def _record(post: Post, walk: _Walk, cursor: Cursor, n: int, tried: _Tried, next_at: int | None) -> None:
    outcome = tried.outcome
    attempt = Attempt(
        config_id=cursor.config_id,
        n=n,
        k=cursor.attempt + 1,
        at=tried.at,
        ms=outcome.elapsed_ms,
        status=outcome.status,
        address=outcome.address,
        error=outcome.error and outcome.error.value,
        kid=tried.kid,
        next_at=next_at,
    )
    post.store.record(walk.key, attempt, walk.head.expires)
    _note_tried(post, walk, attempt, accepted=outcome.accepted)


def _note_tried(post: Post, walk: _Walk, attempt: Attempt, *, accepted: bool) -> None:
    """One log line for a POST, and its metrics: ids, numbers and the kind of error; the URL may hold secrets."""
    ids: dict[str, str | int] = {"task": walk.key.task, "config": attempt.config_id, "event": attempt.n}
    said = {"status": attempt.status, "error": attempt.error, "ms": attempt.ms, "kid": attempt.kid}
    logger.info("webhook tried", extra={**ids, "attempt": attempt.k, **said, "trace": trace.trace_id(walk.head.trace)})
    if accepted and attempt.n:
        post.metrics.measure({"DeliverySuccess": 1, "DeliveryAttempts": attempt.k}, **ids)
    else:
        post.metrics.measure({"DeliverySuccess": int(accepted)}, **ids)


def _count(post: Post, key: TaskKey, name: str, config_id: str) -> None:
    post.metrics.count(name, tenant=key.tenant, owner=key.owner, task=key.task, config=config_id)


def _unasked(post: Post, walk: _Walk, cursor: Cursor) -> bool:
    """Whether the URL has to be asked. When it is only warned of, that happens before the first notification."""
    unverified = walk.verification is Verification.UNVERIFIED
    return unverified and (post.enforce_ownership or not (walk.warned or cursor.position))


def _ask(post: Post, walk: _Walk, cursor: Cursor) -> tuple[_Walk, Cursor] | Ending:
    """Asks the URL whether it wants our events: a 2xx that echoes the challenge. Warn-only delivers all the same."""
    if post.enforce_ownership and (until := _asked_enough(post, walk)):
        return _leave_alone(post, walk, cursor, until)
    challenge = post.ids.new()
    content = json.dumps({"type": "a2a.webhook.challenge", "challenge": challenge}).encode()
    letter = _Letter(CHALLENGE, CHALLENGE_TYP, Body("application/json", walk.config.wire, content))
    try:
        cursor, tried = _send(post, walk, cursor, letter)
    except (Busy, LeftAlone) as wait:
        return _put_off(post, walk, cursor, wait)
    if tried.outcome.accepted and _echoes(tried.outcome.body, challenge):
        _record(post, walk, cursor, CHALLENGE, tried, None)
        _note_answered(post, walk)
        return replace(walk, verification=Verification.VERIFIED), cursor
    if not post.enforce_ownership:
        _record(post, walk, cursor, CHALLENGE, tried, None)
        return replace(walk, warned=True), cursor
    return _refuse(post, walk, cursor, tried)


def _asked_enough(post: Post, walk: _Walk) -> int:
    """0 when a challenge may be sent, or when (ms). It is counted while the host has answered none of the owner's."""
    for _ in range(TRIES):
        now = post.clock.now()
        if post.answered.knows(walk.key, walk.host, now):
            return 0
        before = post.store.asked(walk.key, walk.host)
        if before.answered:
            post.answered.learn(walk.key, walk.host, now)
            return 0
        after = challenges.sending(before, now)
        if after is None:
            return challenges.again_at(before, now)
        if post.store.keep_asked(walk.key, walk.host, before, after, now // 1000 + challenges.UNANSWERED_S):
            return 0
    return post.clock.now() + BUSY_S * 1000


def _note_answered(post: Post, walk: _Walk) -> None:
    """The owner's webhooks at the host are bound no longer. Should this get lost, the next answer says it too."""
    now = post.clock.now()
    expires = now // 1000 + challenges.ANSWERED_S
    for _ in range(TRIES):
        if post.answered.knows(walk.key, walk.host, now):
            return
        before = post.store.asked(walk.key, walk.host)
        if before.answered or post.store.keep_asked(walk.key, walk.host, before, challenges.ANSWERED, expires):
            post.answered.learn(walk.key, walk.host, now)


def _refuse(post: Post, walk: _Walk, cursor: Cursor, tried: _Tried) -> Ending:
    """An answer that does not echo is as hopeless as a 4xx; with the last try the URL counts as refused."""
    verdict = delivery.judge(tried.outcome)
    return _fail(post, walk, cursor, CHALLENGE, tried, Verdict.HOPELESS if verdict is Verdict.DELIVERED else verdict)


def _echoes(body: bytes, challenge: str) -> bool:
    try:
        answer: Json = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and answer.get("challenge") == challenge


def _seconds(retry_after: str | None) -> int | None:
    """``Retry-After`` as seconds; its date form is not honoured (our own schedule is bounded anyway)."""
    return int(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None


def _ring_for_next(post: Post, key: TaskKey, cursor: Cursor) -> None:
    if cursor.state is CursorState.ACTIVE:
        _ring_at(post, DeliveryBell(key, cursor.config_id), cursor.next_at)


def _ring_at(post: Post, bell: DeliveryBell, at: int) -> None:
    """Rings after ``at`` (ms) when a queue can hold the bell that long; the sweeper rings the later ones."""
    delay_s = max(0, -(-(at - post.clock.now()) // 1000))
    if delay_s <= DELAY_LIMIT_S:
        post.bells.ring(bell, delay_s)
