"""Webhook deliveries per second of one core: our sender beside raw `http.client`, over loopback TLS (N9).

Ours checks the URL, resolves the name in a thread, checks the address, sets a deadline for every read and signs a new
JWT for each delivery, as the notifier does; raw `http.client` posts the same bytes with one JWT, and checks nothing.
The receiver is a separate process; only the sender's processor time counts. On a kept connection most of a delivery is
OpenSSL's signature, so there the goal is for a JWT that was made before, and making one has a goal of its own.
"""

from __future__ import annotations

import asyncio
import http.client
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

sys.path.insert(0, str(Path(__file__).parents[1]))

from a2a_serverless.adapters.es256 import Es256Keys, KeyRingSigner
from a2a_serverless.adapters.webhook_sender import WebhookSender
from a2a_serverless.domain.key_ring import create_ring
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.notifications import notification_claims
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.push_configs import PushConfig
from a2a_serverless.http_client.sockets import connect
from measuring import Report, figure, goal, main, ratios, side_by_side
from notifying import serving
from tests.adapters.strangers import NAME, authority, server_context

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable
    from multiprocessing.connection import Connection

URL: Final = f"https://{NAME}/a2a"
ADDRESS: Final = "93.184.215.14"
BODY: Final = b"x" * 800
HEADERS: Final = {"Content-Type": "application/a2a+json", "A2A-Version": "1.0", "X-A2A-Notification-Token": "t" * 32}
ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
OURS: Final = "a2a-serverless"
SIGNED_BEFORE: Final = "a2a-serverless, an old JWT"
GOALS: Final = {"new": (OURS, 0.6), "kept": (SIGNED_BEFORE, 0.85)}
SIGNATURE: Final = 2
SIGNATURES: Final = 2_000
TIMES: Final = {"new": 150, "kept": 600}


class Receiver(asyncio.Protocol):
    """Answers 200 to each request as soon as it is complete."""

    def __init__(self) -> None:
        self._got = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport if isinstance(transport, asyncio.Transport) else None

    def data_received(self, data: bytes) -> None:
        self._got += data
        _, end, body = self._got.partition(b"\r\n\r\n")
        if end and len(body) >= len(BODY) and self._transport:
            self._got = body[len(BODY) :]
            self._transport.write(ANSWER)


def receive(parent: Connection) -> None:
    """Runs the receiver process: sends its port and its authority's certificate, then serves until it is terminated."""

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Receiver, "127.0.0.1", 0, ssl=server_context(), backlog=1024)
        parent.send((server.sockets[0].getsockname()[1], authority().pem))
        await server.serve_forever()

    asyncio.run(serve())


def raw(port: int, context: ssl.SSLContext, token: str, *, kept: bool) -> Callable[[], None]:
    """Makes one POST by plain ``http.client``."""
    headers = {**HEADERS, "Authorization": f"Bearer {token}"}
    connection = http.client.HTTPConnection(NAME)

    def post() -> None:
        if connection.sock is None:
            connection.sock = context.wrap_socket(connect("127.0.0.1", port, 10), server_hostname=NAME)
        connection.request("POST", "/a2a", BODY, headers)
        connection.getresponse().read()
        if not kept:
            connection.close()

    return post


def ours(port: int, context: ssl.SSLContext, sign: Callable[[], str], *, kept: bool) -> Callable[[], None]:
    """Makes one delivery by our sender, with a token of ``sign``."""

    def lead(_address: str, _port: int, seconds: float) -> socket.socket:
        return connect("127.0.0.1", port, seconds)

    sender = WebhookSender(EgressPolicy(), resolver=lambda *_: [ADDRESS], connector=lead, ssl_context=context)

    def post() -> None:
        outcome = sender.post(URL, {**HEADERS, "Authorization": f"Bearer {sign()}"}, BODY, 10_000)
        if not outcome.accepted:
            raise SystemExit(f"a delivery failed: {outcome}")
        if not kept:
            sender.close()

    return post


def signer() -> Callable[[], str]:
    """Signs notifications with one cached key."""
    keys = Es256Keys()
    ring = create_ring(keys.make(0), keys.make(0), now=0)
    signs = KeyRingSigner(lambda: ring)
    key, config = TaskKey("tenant", "owner", "t" * 36), PushConfig("c" * 36, URL, "1.0", "i" * 36, 0)

    def sign() -> str:
        said = notification_claims(key, config, 7, BODY, issuer="https://agents.example.com", now=2**40, jti="j" * 36)
        return signs.sign("a2a-notification+jwt", said).token

    return sign


def per_second(post: Callable[[], object], times: int) -> float:
    """Returns calls per second of this process's processor time."""
    start = time.process_time()
    for _ in range(times):
        post()
    return times / (time.process_time() - start)


def bare_signatures() -> float:
    """Returns signatures per second of this process's processor time, as `cryptography` makes them."""
    key, kind = ec.generate_private_key(ec.SECP256R1()), ec.ECDSA(hashes.SHA256())
    return per_second(lambda: key.sign(BODY, kind), SIGNATURES)


def measure(rounds: int) -> Report:
    """Measures all senders on both kinds of connection."""
    figures, goals, sign = [], [], signer()
    with serving(receive) as (_, port, context):
        for name, times in TIMES.items():
            token, kept = sign(), name == "kept"
            posts = {
                "raw http.client": raw(port, context, token, kept=kept),
                SIGNED_BEFORE: ours(port, context, lambda token=token: token, kept=kept),  # type: ignore[misc]
                OURS: ours(port, context, sign, kept=kept),
            }
            candidates = {principal: partial(per_second, post, times) for principal, post in posts.items()}
            values = side_by_side(candidates, rounds)
            figures += [
                figure(f"{principal}, {name} connections", "deliveries/s", speeds, ours=principal != "raw http.client")
                for principal, speeds in values.items()
            ]
            sender, limit = GOALS[name]
            both = ratios(values[sender], values["raw http.client"])
            goals.append(goal("N9", f"{sender}: deliveries on {name} connections, by raw's", ">=", limit, both))
    making = side_by_side({"ours": partial(per_second, sign, SIGNATURES), "bare": bare_signatures}, rounds)
    figures.append(figure("JWTs made", "/s", making["ours"], ours=True))
    figures.append(figure("signatures of OpenSSL", "/s", making["bare"], ours=False))
    goals.append(goal("N9", "a JWT, by OpenSSL's signature", "<=", SIGNATURE, ratios(making["bare"], making["ours"])))
    return Report(
        "Sending webhooks",
        __doc__ or "",
        figures,
        goals,
        ["Not measured: storage, of which each delivery has four calls."],
    )


if __name__ == "__main__":
    main(measure, rounds=11)
