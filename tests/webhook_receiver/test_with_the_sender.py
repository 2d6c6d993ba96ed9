"""What our deployment signs is what a stranger's receiver accepts. The one place where both are known."""

import json
from collections.abc import Mapping

import pytest

from a2a_serverless.adapters.es256 import Es256Keys, KeyRingSigner
from a2a_serverless.domain.key_ring import KeyRing, RotationTimes, create_ring, rotate
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.notifications import challenge_claims, notification_claims
from a2a_serverless.domain.push_configs import PushConfig
from a2a_serverless.protocol.notification_bodies import notification
from a2a_serverless.protocol.v1 import Artifact, Part, Task, TaskState, TaskStatus
from a2a_serverless.protocol.versions import ProtocolVersion
from a2a_serverless.services.delivery_attempts import CHALLENGE_TYP, JWT_HEADER, NOTIFICATION_TYP, TOKEN_HEADER
from a2a_webhook_receiver.keys import parse_key_set
from a2a_webhook_receiver.verifier import VerifiedChallenge, VerifiedNotification, verify
from tests.webhook_receiver.sending import EXPECTED
from vectors.cases import AUDIENCE, ISSUER, NOW, TASK, TOKEN

KEY = TaskKey("tenant", "owner", TASK)
DAY = 86_400_000
WAITS = RotationTimes(publish_ms=360_000, retire_ms=420_000)


def config(version: ProtocolVersion) -> PushConfig:
    return PushConfig("my phone 手机", AUDIENCE, version, incarnation="i-1", created_at=NOW)


def task() -> Task:
    parts = (Part(text="Wind 风"), Part(data={"a": 1}), Part(raw="aGk=", media_type="text/plain", filename="hi.txt"))
    artifacts = (Artifact(artifact_id="a-1", parts=parts, name="document.md"),)
    return Task(
        id=TASK,
        context_id="ctx-1",
        status=TaskStatus(state=TaskState.INPUT_REQUIRED, timestamp=NOW),
        artifacts=artifacts,
    ).as_of(3)


def ring() -> KeyRing:
    keys = Es256Keys()
    return create_ring(keys.make(NOW), keys.make(NOW), now=NOW)


def accept(
    ring: KeyRing, published: KeyRing, typ: str, said: Mapping[str, str | int], headers: Mapping[str, str], body: bytes
) -> VerifiedNotification | VerifiedChallenge:
    signed = KeyRingSigner(lambda: ring).sign(typ, said)
    proof = {JWT_HEADER if "Authorization" in headers else "Authorization": signed.token}
    if "Authorization" in proof:
        proof["Authorization"] = f"Bearer {signed.token}"
    sent = {**headers, **proof, TOKEN_HEADER: TOKEN}
    keys = parse_key_set(json.dumps(published.jwks(NOW)).encode())
    return verify(sent.items(), body, keys, NOW, issuer=ISSUER, audience=AUDIENCE, expectations=[EXPECTED])


@pytest.mark.parametrize("own", [{}, {"Authorization": "Basic dXNlcjpzZWNyZXQ="}], ids=["ours", "the client's"])
@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_a_notification_of_either_version_is_accepted(version: ProtocolVersion, own: Mapping[str, str]) -> None:
    keys, body = ring(), notification(version, task())
    said = notification_claims(KEY, config(version), 3, body.content, issuer=ISSUER, now=NOW, jti="j-1")
    headers = {"Content-Type": body.content_type, "A2A-Version": body.version, **own}
    verified = accept(keys, keys, NOTIFICATION_TYP, said, headers, body.content)
    assert isinstance(verified, VerifiedNotification)
    assert (verified.subject.event_number, verified.subject.config_id) == (3, "my phone 手机")
    assert verified.content.state == "input-required"
    assert [part.kind for part in verified.content.artifacts[0].parts] == ["text", "data", "file"]


def test_the_receiver_accepts_a_challenge_of_the_sender() -> None:
    keys = ring()
    body = json.dumps({"type": "a2a.webhook.challenge", "challenge": "c-1"}).encode()
    said = challenge_claims(config("1.0"), body, issuer=ISSUER, now=NOW, jti="j-1")
    headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    verified = accept(keys, keys, CHALLENGE_TYP, said, headers, body)
    assert isinstance(verified, VerifiedChallenge)
    assert verified.challenge == "c-1"


def test_a_token_of_the_key_before_or_after_a_rotation_is_accepted() -> None:
    before = ring()
    after = rotate(before, Es256Keys().make(NOW), now=NOW + DAY, waits=WAITS)
    body = notification("1.0", task())
    said = notification_claims(KEY, config("1.0"), 3, body.content, issuer=ISSUER, now=NOW, jti="j-1")
    headers = {"Content-Type": body.content_type, "A2A-Version": body.version}
    for signing, published in ((before, after), (after, before), (after, after)):
        verified = accept(signing, published, NOTIFICATION_TYP, said, headers, body.content)
        assert isinstance(verified, VerifiedNotification)
