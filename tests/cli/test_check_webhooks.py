"""``check`` with a receiver: ours, in the same process, to which a deployment delivers webhooks, really signed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import pytest

from a2a_serverless.adapters.es256 import KeyRingSigner
from a2a_serverless.aws.custom_resource import make_rotator_handler
from a2a_serverless.client import ClientRequest, ClientResponse
from a2a_serverless.domain.key_ring import KeyRing, RotationTimes, create_ring
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.services.key_rotation import KeyRotation, describe, ensure_ring, rotate_ring
from a2a_serverless.services.publish import CardPublisher
from a2a_serverless.testing.memory import MemoryKeyRingStore
from a2a_serverless_tools.operators.deliveries import Operations
from a2a_webhook_receiver.expectations import digest
from a2a_webhook_receiver.http import create_app
from a2a_webhook_receiver.inbox import Inbox
from a2a_webhook_receiver.jwks import JwksCache
from a2a_webhook_receiver.receive import Receiver, WebhookRequest
from a2a_webhook_receiver.relay_inbox import InboxRelay
from a2a_webhook_receiver.settings import read_settings
from a2a_webhook_receiver.store_sqlite import SqliteStore
from a2a_webhook_receiver.tasks import JsonRpcTasks
from tests.cli.shell import Done, Shell
from tests.cli.test_check import ALICE, BOB, KEYS, SIGN_IN, Site, failed
from tests.client.deployment import BASE
from tests.webhook_receiver import asgi
from tests.world import HOUR_MS

if TYPE_CHECKING:
    from fastapi import FastAPI

HOOKS = "https://hooks.example.com"
PASSWORD = "receiver-password"
INSIDE = ("--stack", "agents", "--receiver", HOOKS, "--timeout", "60")
LOST = Outcome(error=OutboundError.CONNECT)
Deliver = Callable[[WebhookRequest], WebhookRequest | None]


def as_it_is(request: WebhookRequest) -> WebhookRequest | None:
    return request


def lost(request: WebhookRequest) -> WebhookRequest | None:
    """A receiver whose address nobody answers at."""
    del request
    return None


def another_body(request: WebhookRequest) -> WebhookRequest | None:
    """A proxy that writes into webhooks, though not into challenges."""
    return replace(request, body=request.body.replace(b"WORKING", b"working"))


@dataclass
class Signing(Site):
    """A deployment with a key ring, and a receiver of ours that ``deliver`` stands in front of.

    ``notifier`` is the ring that signs, given the one that is kept; ``issuer`` is whom the receiver believes.
    """

    deliver: Deliver = as_it_is
    notifier: Callable[[MemoryKeyRingStore], Callable[[], KeyRing | None]] = lambda store: store.load
    issuer: str = BASE
    environment: Mapping[str, str] = field(
        default_factory=lambda: {
            "A2A_AUTHORIZATION": ALICE,
            "A2A_OTHER_AUTHORIZATION": BOB,
            "A2A_RECEIVER_AUTHORIZATION": f"Bearer {PASSWORD}",
        }
    )
    alarms: Mapping[str, str] = field(default_factory=lambda: {"lost": "OK"})

    def __post_init__(self) -> None:
        super().__post_init__()
        world, store = self.deployment.world, MemoryKeyRingStore()
        publisher = CardPublisher(world.table, world.clock, self.deployment.edge.agents, BASE, schemes=SIGN_IN)
        self.rotation = KeyRotation(
            store, KEYS, publisher, RotationTimes(publish_ms=HOUR_MS, retire_ms=HOUR_MS), 1_000 * HOUR_MS
        )
        ensure_ring(self.rotation)
        signer = KeyRingSigner(self.notifier(store))
        world.post = replace(world.post, sender=self, signer=signer, issuer=BASE)
        self.receiver = self._receiver()

    def _receiver(self) -> FastAPI:
        told = {"ISSUER": self.issuer, "AUDIENCE": f"{HOOKS}/webhook", "ADMIN_TOKEN_SHA256": digest(PASSWORD)}
        settings, store, inbox = read_settings(told), SqliteStore(":memory:"), Inbox(first=1)
        receiver = Receiver(
            issuer=settings.issuer,
            audience=settings.audience,
            keys=JwksCache(self._key_set, spawn=lambda work: work()),
            expectations=store,
            replays=store,
            tasks=JsonRpcTasks(settings.issuer, None),
            relays=(InboxRelay(inbox),),
            inbox=inbox,
            clock=self.deployment.world.clock.now,
        )
        return create_app(receiver, settings)

    def _key_set(self) -> bytes:
        with self.deployment.transport(ClientRequest(f"{BASE}/.well-known/jwks.json")) as answer:
            return answer.body.read(1 << 20)

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        """What the notifier sends."""
        del deadline_ms
        request = self.deliver(WebhookRequest(tuple(headers.items()), body))
        if request is None:
            return LOST
        answer = self._receives(asgi.Call("POST", urlsplit(url).path, request.headers, (request.body,)))
        return Outcome(status=answer.status, body=answer.body, connected=True, request_sent=True)

    def _receives(self, call: asgi.Call) -> asgi.Answer:
        """The receiver has a loop of its own, in a thread of its own."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asgi.call, self.receiver, call).result()

    @contextmanager
    def transport(self, call: ClientRequest) -> Iterator[ClientResponse]:
        if not call.url.startswith(f"{HOOKS}/"):
            with super().transport(call) as answer:
                yield answer
            return
        at = urlsplit(call.url)
        asked = asgi.Call(call.verb, at.path, tuple(call.headers.items()), (call.body or b"",), at.query, "192.0.2.7")
        told = self._receives(asked)
        yield ClientResponse(told.status, told.headers, io.BytesIO(told.body))

    def check(self, *arguments: str) -> Done:
        shell = Shell(self.deployment, transport=self.transport)
        shell.environment = self.environment
        shell.alarms = lambda _: self.alarms
        shell.operations = lambda _: Operations(cast("Any", None), self._command, *[cast("Any", None)] * 5)
        return shell.run("check", BASE, *INSIDE, *arguments)

    def _command(self, command: Mapping[str, str]) -> dict[str, Any]:
        def said(ring: KeyRing) -> dict[str, Any]:
            return {"current": ring.current.kid}

        commands: dict[str, Callable[[Any], dict[str, Any]]] = {
            "show": lambda _: describe(self.rotation),
            "rotate": lambda _: said(rotate_ring(self.rotation)),
        }
        return make_rotator_handler(commands, lambda _, __: None)(dict(command), cast("Any", None))

    def line(self, name: str, *arguments: str) -> dict[str, str]:
        lines = json.loads(self.check("--json", *arguments).out)["checks"]
        return next(line for line in lines if line["name"] == name)


def test_webhooks_before_and_after_a_rotation_are_verified_and_nothing_is_skipped() -> None:
    site = Signing()
    first = ensure_ring(site.rotation)
    site.deployment.world.wait(HOUR_MS)  # the next key has been public for as long as it takes
    verdicts = site.verdicts("--rotate")
    assert set(verdicts.values()) == {"PASS"}, verdicts
    assert ensure_ring(site.rotation).current.kid == first.next.kid


def test_the_check_names_the_signing_keys_before_and_after_a_rotation() -> None:
    site = Signing()
    first = ensure_ring(site.rotation)
    site.deployment.world.wait(HOUR_MS)
    said = site.line("rotation", "--rotate")["text"]
    assert said.startswith(f"{first.next.kid} signs now, after {first.current.kid}")


def test_a_key_that_has_not_been_public_for_long_enough_is_not_rotated_to_and_that_is_no_failure() -> None:
    line = Signing().line("rotation", "--rotate")
    assert (line["verdict"], "keys show" in line["remedy"]) == ("SKIP", True)


def test_a_notifier_that_goes_on_with_the_old_key_fails_the_rotation_and_nothing_else() -> None:
    def forever(store: MemoryKeyRingStore) -> Callable[[], KeyRing | None]:
        ring = store.load()
        return lambda: ring

    site = Signing(notifier=forever)
    site.deployment.world.wait(HOUR_MS)
    assert failed(site.verdicts("--rotate")) == {"rotation"}


def unpublished(store: MemoryKeyRingStore) -> Callable[[], KeyRing | None]:
    """Somebody else's keys."""
    del store
    other = create_ring(KEYS.make(0), KEYS.make(0), now=0)
    return lambda: other


@pytest.mark.parametrize(
    ("site", "why"),
    [
        (lambda: Signing(deliver=lost), "none was refused either"),
        (lambda: Signing(notifier=unpublished), "unknown-key"),
        (lambda: Signing(deliver=another_body), "wrong-body"),
        (lambda: Signing(issuer="https://agents.example.com"), "wrong-issuer"),
    ],
    ids=["never arrives", "another's signature", "an altered body", "another issuer"],
)
def test_a_webhook_that_is_not_verified_fails_its_line_and_says_why_and_what_to_do(
    site: Callable[[], Signing], why: str
) -> None:
    broken = site()
    assert failed(broken.verdicts()) == {"webhook"}
    line = broken.line("webhook")
    assert why in line["text"]
    assert "deliveries AGENT TASK" in line["remedy"]
    assert f"ISSUER has to be {BASE}" in line["remedy"]


def test_a_receiver_that_does_not_let_us_look_fails_with_the_name_of_what_it_wants() -> None:
    site = Signing(environment={"A2A_AUTHORIZATION": ALICE, "A2A_OTHER_AUTHORIZATION": BOB})
    line = site.line("webhook")
    assert (line["verdict"], "A2A_RECEIVER_AUTHORIZATION" in line["remedy"]) == ("FAIL", True)
