"""The rotator function."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from a2a_serverless.adapters.key_ring import KEY_RING_CACHE_MS, Es256Keys, SecretKeyRingStore
from a2a_serverless.adapters.system import SystemClock
from a2a_serverless.domain.delivery import TOKEN_LIFE_S
from a2a_serverless.domain.key_ring import KeyRing, RotationTimes
from a2a_serverless.domain.times import DAY_MS
from a2a_serverless.handlers.schedules import UnknownCommand, make_rotator_handler
from a2a_serverless.services.key_rotation import (
    KeyRingError,
    KeyRotation,
    describe,
    ensure_ring,
    revoke_key,
    rotate_ring,
    rotate_when_old,
)
from a2a_serverless.services.publish import CardPublisher, without_scopes
from a2a_serverless.settings import SettingsError, read
from a2a_serverless.store.stores import Publications
from a2a_serverless.wiring.process import make_metrics, start_handler
from a2a_serverless.wiring.stores import deployed_agents, make_aws, public_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.handlers.invocations import Handler

SKEW_S: Final = 120


def make_rotator(
    environment: Mapping[str, str] = os.environ, answer: Callable[[str, bytes], None] | None = None
) -> Handler:
    """The handler of the rotator function. ``answer`` PUTs to CloudFormation's URL, by default over HTTP.

    Each command raises the errors of the settings, so that CloudFormation gets an answer and does not wait.
    """
    metrics, rotation = make_metrics(environment), cache(partial(_key_rotation, environment))
    with suppress(Exception):
        rotation()

    def said(ring: KeyRing) -> dict[str, Any]:
        age_ms = rotation().publisher.clock.now() - ring.promoted_at
        metrics.record({"KeyAge": round(100 * age_ms / rotation().age_ms, 1)})
        return {"current": ring.current.kid, "next": ring.next.kid}

    commands: dict[str, Callable[[Any], dict[str, Any]]] = {
        "ensure": lambda _: said(ensure_ring(rotation())),
        "show": lambda _: describe(rotation()),
        "schedule": lambda _: said(rotate_when_old(rotation())),
        "rotate": lambda _: said(rotate_ring(rotation())),
        "revoke": lambda event: said(revoke_key(rotation(), str(event["kid"]))),
    }
    handler = make_rotator_handler(commands, answer or _put_answer)
    return start_handler(handler, environment, metrics, "rotator", (KeyRingError, SettingsError, UnknownCommand))


def _put_answer(url: str, body: bytes) -> None:
    """PUTs the answer to the presigned URL of CloudFormation's request."""
    from a2a_serverless.http_client.transport import ClientRequest, Unreachable, over_urllib

    with over_urllib(ClientRequest(url, {"content-type": ""}, body, seconds=20, put=True)) as answer:
        if answer.status != HTTPStatus.OK:
            raise Unreachable(urlsplit(url).netloc, f"HTTP {answer.status}")  # without the signature


def _key_rotation(environment: Mapping[str, str]) -> KeyRotation:
    settings, aws, clock = read(environment), make_aws(), SystemClock()
    public = Publications(public_table(settings, aws))
    base_url = settings.need("PUBLIC_BASE_URL")
    scopes = settings.trusted_issuer.scopes_for if settings.trusted_issuer else without_scopes
    agents = deployed_agents(settings)
    publisher = CardPublisher(public, clock, agents, base_url, settings.card_shape, settings.schemes, scopes)
    store = SecretKeyRingStore(aws.secrets, settings.need("KEY_RING_SECRET_ID"))
    times = rotation_times(settings.jwks_max_age_seconds)
    return KeyRotation(store, Es256Keys(), publisher, times, settings.key_ring_rotation_days * DAY_MS)


def rotation_times(max_age_s: int) -> RotationTimes:
    """How long keys are published, if receivers may cache the key set for ``max_age_s`` seconds."""
    publish_ms = (max_age_s + SKEW_S) * 1000
    return RotationTimes(publish_ms, publish_ms + TOKEN_LIFE_S * 1000 + KEY_RING_CACHE_MS)
