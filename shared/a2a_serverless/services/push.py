"""Webhook configurations: create, get, list, delete (specification 3.1.7 to 3.1.10), within what the policy allows."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import challenges
from a2a_serverless.domain.bells import DeliveryBell
from a2a_serverless.domain.breaker import host_of
from a2a_serverless.domain.delivery import in_place_of, same_lease
from a2a_serverless.domain.errors import FieldViolation, InvalidParams, Overloaded, TaskNotFound, TooManyRequests
from a2a_serverless.domain.head import GRACE_MS, with_push
from a2a_serverless.domain.push import Cursor, CursorState, PushConfig, Verification, WireVersion
from a2a_serverless.domain.url_policy import EgressPolicy, NameUnresolved, UrlRefused, WebhookTarget, check_url
from a2a_serverless.services.changes import found
from a2a_serverless.services.hosts import Answered

if TYPE_CHECKING:
    from a2a_serverless.domain.model import PushRequest, TaskKey
    from a2a_serverless.ports import Bells, Clock, Ids, Names, PushStore, Sealer, TaskLog

CONFIGS_PER_TASK: Final = 20
PER_DAY: Final = 100_000
DAY_MS: Final = 86_400_000
TRIES: Final = 20
CLOSE_POLL_S: Final = 0.1
_TOKEN68: Final = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")
_SCHEME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_CONFIG_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
SECRET_LIMIT: Final = 4096


@dataclass(frozen=True, slots=True)
class Webhooks:
    """What the configuration use cases need. ``ownership`` False: no challenge is asked of anybody.

    ``per_day`` is how many an owner may register on one day (UTC). A number of those that stand would have to be given
    back when a task expires, and storage does that in silence. ``own`` gives the base URLs of this deployment.
    """

    log: TaskLog
    store: PushStore
    bells: Bells
    sealer: Sealer
    clock: Clock
    ids: Ids
    policy: EgressPolicy
    names: Names
    ownership: bool = True
    per_day: int = PER_DAY
    own: Callable[[], tuple[str, ...]] = tuple
    enforce_ownership: bool = True
    answered: Answered = field(default_factory=Answered)

    def vetted(self, request: PushRequest) -> WebhookTarget:
        """The target that the request names; InvalidParams names every field that is wrong. No lookup."""
        return check(replace(self.policy, own=self.own()), request)

    def add(self, key: TaskKey, agent: str, request: PushRequest, wire: WireVersion) -> PushConfig:
        """Creates or replaces a configuration; it is due at once."""
        return add(self, key, agent, request, wire)


def add(hooks: Webhooks, key: TaskKey, agent: str, request: PushRequest, wire: WireVersion) -> PushConfig:
    """Creates a configuration, or replaces the one with its id, and rings for its first notification."""
    found(hooks.log, key, agent)
    _check_count(hooks, key, request.config_id)
    config, cursor = new_config(hooks, key, request, wire)
    cursor = replace(cursor, due_at=hooks.clock.now() + GRACE_MS)
    for _ in range(TRIES):
        look = found(hooks.log, key, agent)
        _check_count(hooks, key, config.config_id)
        replaced = hooks.store.cursor(key, config.config_id)
        first = in_place_of(replaced, replace(cursor, start=look.last), now=hooks.clock.now())
        if hooks.store.add_config(look.head, with_push(look.head), config, first, replaced):
            _wait_out(hooks.store, hooks.clock, key, first)
            hooks.bells.ring(DeliveryBell(key, config.config_id))
            return config
    raise Overloaded


def get(hooks: Webhooks, key: TaskKey, agent: str, config_id: str | None) -> PushConfig:
    """One configuration, the first for None; raises TaskNotFound when it or its task is not there (3.1.8)."""
    found(hooks.log, key, agent)
    config = hooks.store.config(key, config_id) if config_id else next(iter(hooks.store.configs(key)), None)
    if config is None:
        raise TaskNotFound("The push notification configuration was not found.")
    return config


def all_of(hooks: Webhooks, key: TaskKey, agent: str) -> list[PushConfig]:
    """Every configuration of the task."""
    found(hooks.log, key, agent)
    return hooks.store.configs(key)


def delete(hooks: Webhooks, key: TaskKey, agent: str, config_id: str) -> None:
    """Deletes a configuration; absent is fine. When this returns, nothing more is sent to it."""
    found(hooks.log, key, agent)
    close(hooks.store, hooks.clock, key, config_id)


def new_config(hooks: Webhooks, key: TaskKey, request: PushRequest, wire: WireVersion) -> tuple[PushConfig, Cursor]:
    """A configuration as it is stored, its secrets sealed.

    Raises InvalidParams naming every field that is wrong, and TooManyRequests.
    """
    target = _vet(hooks, request)
    verification = _verification(hooks, target)
    if verification is Verification.UNVERIFIED and hooks.enforce_ownership:
        _ask_for(hooks, key, host_of(request.url))
    _count(hooks, key)
    config_id, incarnation = request.config_id or hooks.ids.new(), hooks.ids.new()
    context = sealing_context(key, config_id)
    config = PushConfig(
        config_id=config_id,
        url=request.url,
        wire=wire,
        incarnation=incarnation,
        created_at=hooks.clock.now(),
        scheme=request.scheme,
        token=request.token and hooks.sealer.seal(request.token, context),
        credentials=request.credentials and hooks.sealer.seal(request.credentials, context),
    )
    return config, Cursor(config_id, incarnation, verification=verification)


def sealing_context(key: TaskKey, config_id: str) -> str:
    """What a configuration's secrets are bound to."""
    return f"{key.tenant}\n{key.owner}\n{key.task}\n{config_id}"


def _verification(hooks: Webhooks, target: WebhookTarget) -> Verification:
    trusted = not hooks.ownership or target.local or hooks.policy.trusts(target.host)
    return Verification.TRUSTED if trusted else Verification.UNVERIFIED


def close(store: PushStore, clock: Clock, key: TaskKey, config_id: str) -> None:
    """Deletes the configuration, waits for an attempt in flight to end (its lease bounds that), deletes the cursor.

    Whoever dies in between leaves a closed cursor without a configuration: nobody sees it and nothing is sent for it.
    """
    while cursor := store.cursor(key, config_id):
        if cursor.state is not CursorState.CLOSED:
            store.close_config(key, cursor)
        elif cursor.lease_until > clock.now():
            clock.sleep(CLOSE_POLL_S)
        else:
            store.remove(key, config_id, cursor.incarnation)


def _wait_out(store: PushStore, clock: Clock, key: TaskKey, lease: Cursor) -> None:
    """Returns when the attempt that ``lease`` was taken for has ended; the lease bounds that."""
    while (kept := store.cursor(key, lease.config_id)) and same_lease(kept, lease) and kept.lease_until > clock.now():
        clock.sleep(CLOSE_POLL_S)


def _count(hooks: Webhooks, key: TaskKey) -> None:
    day, since = divmod(hooks.clock.now(), DAY_MS)
    if not hooks.store.admit(key, day, hooks.per_day):
        text = f"You may register {hooks.per_day} push notification configurations a day."
        raise TooManyRequests(text, (DAY_MS - since) // 1000)


def _ask_for(hooks: Webhooks, key: TaskKey, host: str) -> None:
    """Counts one more webhook at a host that has not answered a challenge of the owner's; raises TooManyRequests."""
    now = hooks.clock.now()
    if hooks.answered.knows(key, host, now):
        return
    for _ in range(TRIES):
        before = hooks.store.asked(key, host)
        if before.answered:
            hooks.answered.learn(key, host, now)
            return
        after = challenges.registered(before)
        if after is None:
            text = (
                f"{challenges.WEBHOOKS} webhooks at {host} have not answered their challenge yet. "
                "More can be registered there once one of them has."
            )
            raise TooManyRequests(text, challenges.AGAIN_MS // 1000)
        if hooks.store.keep_asked(key, host, before, after, now // 1000 + challenges.UNANSWERED_S):
            return
    raise Overloaded


def _check_count(hooks: Webhooks, key: TaskKey, config_id: str | None) -> None:
    others = [config for config in hooks.store.configs(key) if config.config_id != config_id]
    if len(others) >= CONFIGS_PER_TASK:
        raise InvalidParams(f"A task has at most {CONFIGS_PER_TASK} push notification configurations.")


def _vet(hooks: Webhooks, request: PushRequest) -> WebhookTarget:
    """The vetted target. A name that has no address now is no refusal: every attempt asks again."""
    target = hooks.vetted(request)
    try:
        with suppress(NameUnresolved):
            hooks.names.check(target)
    except UrlRefused as refused:
        field = f"{request.at}.url" if request.at else "url"
        raise InvalidParams(violations=(_refused(field, refused),)) from None
    return target


def check(policy: EgressPolicy, request: PushRequest) -> WebhookTarget:
    """The target that the request names; InvalidParams names every field that is wrong. No lookup."""
    wrong = {
        "id": ("is 1 to 128 printable ASCII characters", _bad_id(request.config_id)),
        "token": (_SECRETS, _bad_secret(request.token)),
        "authentication.credentials": (_SECRETS, _bad_secret(request.credentials)),
        "authentication.scheme": (_SCHEMES, _bad_scheme(request)),
    }
    below = f"{request.at}." if request.at else ""
    violations = [FieldViolation(below + name, text) for name, (text, bad) in wrong.items() if bad]
    try:
        target = check_url(request.url, policy)
    except UrlRefused as refused:
        raise InvalidParams(violations=(*violations, _refused(below + "url", refused))) from None
    if violations:
        raise InvalidParams(violations=tuple(violations))
    return target


def _refused(field: str, refused: UrlRefused) -> FieldViolation:
    return FieldViolation(field, f"is refused: {refused}")


_SECRETS: Final = f"is printable ASCII, at most {SECRET_LIMIT} characters"
_SCHEMES: Final = (
    "is an HTTP authentication scheme. Without credentials only Bearer is served (we sign a JWT); "
    "with credentials any scheme is passed on as it is"
)


def _bad_id(config_id: str | None) -> bool:
    return config_id is not None and not _CONFIG_ID.fullmatch(config_id)


def _bad_scheme(request: PushRequest) -> bool:
    if request.scheme is None:
        return request.credentials is not None
    return not _SCHEME.fullmatch(request.scheme) or (request.credentials is None and request.scheme.lower() != "bearer")


def _bad_secret(secret: str | None) -> bool:
    return secret is not None and (len(secret) > SECRET_LIMIT or not _TOKEN68.fullmatch(secret))
