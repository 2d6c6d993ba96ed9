"""The rotator makes the signing keys, and publishes key set and agent cards: by schedule, by command, at a deployment.

Each command raises the errors of the settings, so that CloudFormation gets an answer and does not wait.
"""

import os
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from a2a_serverless.aws.process import uncollected

if TYPE_CHECKING:
    from a2a_serverless.domain.key_ring import KeyRing
    from a2a_serverless.services.key_rotation import KeyRotation

with uncollected():
    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.adapters.clock import SystemClock
    from a2a_serverless.adapters.es256 import Es256Keys
    from a2a_serverless.adapters.key_ring_secret import SecretKeyRingStore, UnreadableKeyRing, rotation_times
    from a2a_serverless.aws.custom_resource import UnknownCommand, make_rotator_handler, put_answer
    from a2a_serverless.aws.process import make_metrics, start_handler
    from a2a_serverless.aws.resources import deployed_agents, public_table
    from a2a_serverless.domain.model import DAY_MS
    from a2a_serverless.services import key_rotation
    from a2a_serverless.services.publish import CardPublisher
    from a2a_serverless.settings import SettingsError, read
    from a2a_serverless.store.stores import Publications

    environment, metrics = {**os.environ}, make_metrics(os.environ)

    @cache
    def rotation() -> "KeyRotation":
        """Return the rotation of the key ring. Raises SettingsError."""
        settings, aws = read(environment), Aws()
        publisher = CardPublisher(
            Publications(public_table(settings, aws)),
            SystemClock(),
            deployed_agents(settings),
            settings.need("PUBLIC_BASE_URL"),
            schemes=settings.schemes,
            issuer=settings.trusted_issuer,
        )
        store = SecretKeyRingStore(aws.secrets, settings.need("KEY_RING_SECRET_ID"))
        times = rotation_times(settings.jwks_max_age_seconds)
        return key_rotation.KeyRotation(store, Es256Keys(), publisher, times, settings.key_ring_rotation_days * DAY_MS)

    def summary(ring: "KeyRing") -> dict[str, Any]:
        """Return the ids of the current and the next key; record the current one's age."""
        age_ms = rotation().publisher.clock.now() - ring.promoted_at
        metrics.record({"KeyAge": round(100 * age_ms / rotation().age_ms, 1)})
        return {"current": ring.current.kid, "next": ring.next.kid}

    commands = {
        "ensure": lambda _: summary(key_rotation.ensure_ring(rotation())),
        "show": lambda _: key_rotation.describe(rotation()),
        "schedule": lambda _: summary(key_rotation.rotate_when_old(rotation())),
        "rotate": lambda _: summary(key_rotation.rotate_ring(rotation())),
        "revoke": lambda event: summary(key_rotation.revoke_key(rotation(), str(event["kid"]))),
    }
    errors = (key_rotation.KeyRingError, SettingsError, UnknownCommand, UnreadableKeyRing)
    handler = start_handler(make_rotator_handler(commands, put_answer), os.environ, metrics, "rotator", errors)
    with suppress(Exception):
        rotation()
