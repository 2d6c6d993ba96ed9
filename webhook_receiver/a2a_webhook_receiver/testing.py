"""For tests of your application: an issuer whose webhooks you send to it, without a deployment or a network.

::

    issuer = StubIssuer()
    install(app, issuer.receiver, issuer.settings)
    request = issuer.notification("task-1", "completed")
    answer = TestClient(app).post("/webhook", content=request.body, headers=dict(request.headers))
"""

import json
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from a2a_webhook_receiver.receive import Receiver, WebhookRequest
from a2a_webhook_receiver.settings import Settings, read_settings
from a2a_webhook_receiver.verifier import CHALLENGE_TYPE, NOTIFICATION_TYPE
from a2a_webhook_receiver.wiring import build_receiver

ISSUER = "https://agents.example.com"
AUDIENCE = "https://app.example.net/webhook"
TOKEN = "token-of-the-stub-issuer"  # noqa: S105 - of tests
_KEY_ID = "stub"


class StubIssuer:
    """Signs webhooks with a key of its own.

    ``receiver`` knows the key, keeps its memory in this process, and expects ``token`` with any task. ``settings`` are
    those of ``receiver``; ``environment`` has further variables for them.
    """

    def __init__(self, audience: str = AUDIENCE, token: str = TOKEN, **environment: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._token = token
        variables = {"ISSUER": ISSUER, "AUDIENCE": audience, "WEBHOOK_TOKEN": token, "REPLAY_DB": ":memory:"}
        self.settings: Settings = read_settings(variables | environment)
        self.receiver: Receiver = build_receiver(self.settings, self.fetch_keys)

    def build(self) -> tuple[Receiver, Settings]:
        """What ``make_handler`` of ``aws_lambda`` wants."""
        return self.receiver, self.settings

    def fetch_keys(self) -> bytes:
        """The key set, as it is published."""
        jwk = ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return json.dumps({"keys": [{**jwk, "kid": _KEY_ID, "use": "sig", "alg": "ES256"}]}).encode()

    def notification(
        self, task_id: str, state: str = "completed", *, number: int = 1, token: str | None = None
    ) -> WebhookRequest:
        """A webhook of A2A 1.0: event ``number`` of the task is a change to ``state``, such as ``input-required``.

        A second call with the same arguments is a further attempt at the same notification.
        """
        status = {"state": f"TASK_STATE_{state.upper().replace('-', '_')}", "timestamp": "2026-01-01T00:00:00Z"}
        body = {"statusUpdate": {"taskId": task_id, "contextId": "context-1", "status": status}}
        identity = {"notificationId": f"{task_id}-{number}", "eventNumber": number, "configId": "config-1"}
        claims = {"sub": task_id, "taskId": task_id, **identity}
        return self._signed(body, NOTIFICATION_TYPE, claims, self._token if token is None else token)

    def challenge(self) -> WebhookRequest:
        """The challenge that comes before the first notification: answer ``{"challenge": "stub"}``."""
        return self._signed({"type": "a2a.webhook.challenge", "challenge": "stub"}, CHALLENGE_TYPE, {}, self._token)

    def _signed(self, body: object, typ: str, more: Mapping[str, object], token: str) -> WebhookRequest:
        raw, now = json.dumps(body).encode(), int(time.time())
        claims = {"iss": self.settings.issuer, "aud": self.settings.audience, "iat": now, "exp": now + 300, **more}
        claims |= {"jti": uuid4().hex, "request_body_sha256": sha256(raw).hexdigest()}
        jws = jwt.encode(claims, self._key, "ES256", {"typ": typ, "kid": _KEY_ID})
        headers = {
            "Content-Type": "application/a2a+json",
            "A2A-Version": "1.0",
            "Authorization": f"Bearer {jws}",
        }
        return WebhookRequest((*headers.items(), ("X-A2A-Notification-Token", token)), raw)


def lambda_event(request: WebhookRequest) -> dict[str, Any]:
    """The event of a function URL or an HTTP API for a webhook."""
    return {
        "version": "2.0",
        "rawPath": "/webhook",
        "requestContext": {"http": {"method": "POST", "path": "/webhook"}},
        "headers": {name.lower(): value for name, value in request.headers},
        "body": request.body.decode(),
        "isBase64Encoded": False,
    }
