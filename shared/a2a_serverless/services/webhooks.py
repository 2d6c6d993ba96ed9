"""Webhook configurations: create, get, list, delete (specification 3.1.7 to 3.1.10), within the URL policy."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.circuit_breaker import host_of
from a2a_serverless.domain.cursors import Cursor, CursorState, Verification, replace_cursor, same_lease
from a2a_serverless.domain.decisions import GRACE_MS, mark_push
from a2a_serverless.domain.errors import FieldViolation, InvalidParams, TaskNotFound, TooManyRequests
from a2a_serverless.domain.model import DAY_MS
from a2a_serverless.domain.outbound import EgressPolicy, NameUnresolved, UrlNotAllowed, WebhookTarget, check_url
from a2a_serverless.domain.push_configs import PushConfig
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.protocol.v1 import AuthenticationInfo, TaskPushNotificationConfig
from a2a_serverless.services.circuit_breakers import ChallengeLimiter
from a2a_serverless.services.task_changes import check_written, read_existing_head, retry_on_conflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.push_configs import WebhookEvents
    from a2a_serverless.ports.system import Clock, Ids, Queues, Sealer
    from a2a_serverless.protocol.versions import ProtocolVersion
    from a2a_serverless.store.push_store import PushStore
    from a2a_serverless.store.task_log import TaskLog

CONFIGS_PER_TASK: Final = 20
PER_DAY: Final = 100_000
CLOSE_POLL_S: Final = 0.1
_TOKEN68: Final = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")
_SCHEME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_CONFIG_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
SECRET_LIMIT: Final = 4096
_SECRETS: Final = f"is printable ASCII, at most {SECRET_LIMIT} characters"
_SCHEMES: Final = (
    "is an HTTP authentication scheme. Without credentials only Bearer is served (we sign a JWT); "
    "with credentials any scheme is passed on as it is"
)
_AUDIENCES: Final = "is an address with the scheme, host and port of the url, or left out: then it is the url"


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The dependencies of the operations on configurations. If ``ownership`` is False, no URL gets a challenge.

    ``per_day`` is the number of configurations that an owner may register on one day (UTC). Existing ones are not
    counted: tasks expire by the table's TTL, which would not lower the count. ``own_urls`` gives this deployment's base
    URLs. ``resolver`` looks a host up; it raises UrlNotAllowed for a forbidden address, NameUnresolved without one.
    ``events`` are the events of a webhook for which neither its request nor its agent names others.
    """

    log: TaskLog
    store: PushStore
    queues: Queues
    sealer: Sealer
    clock: Clock
    ids: Ids
    policy: EgressPolicy
    resolver: Callable[[WebhookTarget], object]
    ownership: bool = True
    per_day: int = PER_DAY
    own_urls: Callable[[], tuple[str, ...]] = tuple
    enforce_ownership: bool = True
    challenges: ChallengeLimiter = field(default_factory=ChallengeLimiter)
    events: WebhookEvents = "all"


def add(
    webhooks: Webhooks,
    key: TaskKey,
    agent: str,
    request: TaskPushNotificationConfig,
    version: ProtocolVersion,
    events: WebhookEvents | None = None,
) -> PushConfig:
    """Creates a configuration, or replaces the one with its id, and enqueues its first delivery.

    Without ``events`` it is notified of the deployment's.
    """
    read_existing_head(webhooks.log, key, agent)
    _check_count(webhooks, key, request.id)
    config, cursor = new_config(webhooks, key, request, version, events)
    cursor = replace(cursor, due_at=webhooks.clock.now() + GRACE_MS)

    def attempt() -> Cursor:
        current = read_existing_head(webhooks.log, key, agent)
        _check_count(webhooks, key, config.config_id)
        replaced = webhooks.store.get_cursor(key, config.config_id)
        first = replace_cursor(replaced, replace(cursor, start=current.last), now=webhooks.clock.now())
        check_written(webhooks.store.add_config(current.head, mark_push(current.head), config, first, replaced))
        return first

    _wait_for_attempt(webhooks.store, webhooks.clock, key, retry_on_conflict(attempt))
    webhooks.queues.enqueue(DeliveryMessage(key, config.config_id))
    return config


def get(webhooks: Webhooks, key: TaskKey, agent: str, config_id: str | None) -> PushConfig:
    """Returns one configuration, the first if ``config_id`` is None (specification 3.1.8).

    Raises TaskNotFound if it or its task does not exist.
    """
    read_existing_head(webhooks.log, key, agent)
    config = (
        webhooks.store.get_config(key, config_id) if config_id else next(iter(webhooks.store.list_configs(key)), None)
    )
    if config is None:
        raise TaskNotFound("The push notification configuration was not found.")
    return config


def list_configs(webhooks: Webhooks, key: TaskKey, agent: str) -> list[PushConfig]:
    """Returns every configuration of the task; raises TaskNotFound."""
    read_existing_head(webhooks.log, key, agent)
    return webhooks.store.list_configs(key)


def delete(webhooks: Webhooks, key: TaskKey, agent: str, config_id: str) -> None:
    """Deletes a configuration, if there is one. After this returns, nothing more is sent to it."""
    read_existing_head(webhooks.log, key, agent)
    close(webhooks.store, webhooks.clock, key, config_id)


def show(task_id: str, config: PushConfig) -> TaskPushNotificationConfig:
    """Returns the configuration in its form for clients: without its secrets."""
    authentication = AuthenticationInfo(scheme=config.scheme) if config.scheme else None
    return TaskPushNotificationConfig(
        id=config.config_id, task_id=task_id, url=config.url, authentication=authentication
    )


def new_config(
    webhooks: Webhooks,
    key: TaskKey,
    request: TaskPushNotificationConfig,
    version: ProtocolVersion,
    events: WebhookEvents | None = None,
) -> tuple[PushConfig, Cursor]:
    """Makes a configuration in its stored form, with encrypted secrets, and its cursor.

    Raises InvalidParams, which names every wrong field, and TooManyRequests.
    """
    target = _vet(webhooks, request)
    trusted = not webhooks.ownership or target.own or webhooks.policy.trusts(target.host)
    if webhooks.enforce_ownership and not trusted:
        now, host = webhooks.clock.now(), host_of(request.url)
        retry_on_conflict(lambda: webhooks.challenges.count_webhook(webhooks.store, key, host, now))
    # The agents of a deployment call each other: a limit for strangers would hold up a task that calls many of them.
    # tests/services/test_challenges.py: test_agents_of_the_deployment_are_no_strangers_to_each_other_however_many_...
    if not target.own:
        _count_webhook(webhooks, key)
    config_id, incarnation = request.id or webhooks.ids.new(), webhooks.ids.new()
    context, credentials = sealing_context(key, config_id), _credentials(request)
    config = PushConfig(
        config_id=config_id,
        url=request.url,
        version=version,
        incarnation=incarnation,
        created_at=webhooks.clock.now(),
        scheme=_scheme(request),
        token=request.token and webhooks.sealer.seal(request.token, context),
        credentials=credentials and webhooks.sealer.seal(credentials, context),
        events=events or webhooks.events,
        audience=request.authentication.audience if request.authentication else None,
    )
    verification = Verification.TRUSTED if trusted else Verification.UNVERIFIED
    return config, Cursor(config_id, incarnation, verification=verification)


def sealing_context(key: TaskKey, config_id: str) -> str:
    """The context to which a configuration's encrypted secrets are bound."""
    return f"{key.tenant}\n{key.owner}\n{key.task}\n{config_id}"


def close(store: PushStore, clock: Clock, key: TaskKey, config_id: str) -> None:
    """Deletes the configuration, waits for an attempt in flight to end (at most its lease), deletes the cursor.

    A configuration that is registered under the same id meanwhile stays. If interrupted, this leaves a closed cursor
    without a configuration, which is not shown and for which nothing is sent.
    """
    deleted: str | None = None
    while cursor := store.get_cursor(key, config_id):
        deleted = deleted or cursor.incarnation
        if cursor.incarnation != deleted:
            _wait_for_attempt(store, clock, key, cursor)  # it has the lease of the replaced cursor
            return
        if cursor.state is not CursorState.CLOSED:
            store.close_config(key, cursor)
        elif cursor.lease_until > clock.now():
            clock.sleep(CLOSE_POLL_S)
        else:
            store.remove_config(key, config_id, cursor.incarnation)


def _wait_for_attempt(store: PushStore, clock: Clock, key: TaskKey, lease: Cursor) -> None:
    """Waits until the attempt under the cursor's ``lease`` has ended, at most until the lease expires."""
    while (
        (cursor := store.get_cursor(key, lease.config_id))
        and same_lease(cursor, lease)
        and cursor.lease_until > clock.now()
    ):
        clock.sleep(CLOSE_POLL_S)


def _count_webhook(webhooks: Webhooks, key: TaskKey) -> None:
    day, since = divmod(webhooks.clock.now(), DAY_MS)
    if not webhooks.store.count_webhook(key, day, webhooks.per_day):
        text = f"You may register {webhooks.per_day} push notification configurations a day."
        raise TooManyRequests(text, -(-(DAY_MS - since) // 1000))


def _check_count(webhooks: Webhooks, key: TaskKey, config_id: str | None) -> None:
    others = [config for config in webhooks.store.list_configs(key) if config.config_id != config_id]
    if len(others) >= CONFIGS_PER_TASK:
        raise InvalidParams(f"A task has at most {CONFIGS_PER_TASK} push notification configurations.")


def _vet(webhooks: Webhooks, request: TaskPushNotificationConfig) -> WebhookTarget:
    """Returns the checked target. A name without an address is accepted: it is resolved again at every attempt."""
    target = check(webhooks, request)
    try:
        with suppress(NameUnresolved):
            webhooks.resolver(target)
    except UrlNotAllowed as refused:
        field = f"{request.path}.url" if request.path else "url"
        raise InvalidParams(violations=(_refused(field, refused),)) from None
    return target


def check(webhooks: Webhooks, request: TaskPushNotificationConfig) -> WebhookTarget:
    """Returns the request's target; raises InvalidParams, which names every wrong field. Makes no DNS lookup."""
    wrong = {
        "id": (
            "is 1 to 128 printable ASCII characters",
            request.id is not None and not _CONFIG_ID.fullmatch(request.id),
        ),
        "token": (_SECRETS, _is_bad_secret(request.token)),
        "authentication.credentials": (_SECRETS, _is_bad_secret(_credentials(request))),
        "authentication.scheme": (_SCHEMES, _is_bad_scheme(request)),
    }
    below, own = f"{request.path}." if request.path else "", webhooks.own_urls()
    violations = [FieldViolation(below + name, text) for name, (text, bad) in wrong.items() if bad]
    policy = replace(webhooks.policy, own=own)
    try:
        target = check_url(request.url, policy)
    except UrlNotAllowed as refused:
        raise InvalidParams(violations=(*violations, _refused(below + "url", refused))) from None
    info = request.authentication
    if info and info.issuer and info.issuer not in own:
        issuers = " or ".join(own) or "not known before the first publication"
        violations.append(FieldViolation(f"{below}authentication.issuer", f"is {issuers}, which signs, or left out"))
    if info and info.audience and not _is_at(target, info.audience, policy):
        violations.append(FieldViolation(f"{below}authentication.audience", _AUDIENCES))
    if violations:
        raise InvalidParams(violations=tuple(violations))
    return target


def _is_at(target: WebhookTarget, audience: str, policy: EgressPolicy) -> bool:
    """Whether the audience is an address at the target's origin: a token for another one could be used there."""
    try:
        return check_url(audience, policy).origin == target.origin
    except UrlNotAllowed:
        return False


def _refused(field: str, refused: UrlNotAllowed) -> FieldViolation:
    return FieldViolation(field, f"is refused: {refused}")


def _is_bad_scheme(request: TaskPushNotificationConfig) -> bool:
    scheme, credentials = _scheme(request), _credentials(request)
    if scheme is None:
        return credentials is not None
    return not _SCHEME.fullmatch(scheme) or (credentials is None and scheme.lower() != "bearer")


def _scheme(request: TaskPushNotificationConfig) -> str | None:
    return (request.authentication.scheme or None) if request.authentication else None


def _credentials(request: TaskPushNotificationConfig) -> str | None:
    return request.authentication.credentials if request.authentication else None


def _is_bad_secret(secret: str | None) -> bool:
    return secret is not None and (len(secret) > SECRET_LIMIT or not _TOKEN68.fullmatch(secret))
