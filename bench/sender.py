"""Webhook deliveries per second of one core: our sender beside raw ``http.client``, over loopback TLS (N9).

Ours checks the URL, looks the name up in a thread, vets the answer and holds every read to a deadline; raw posts the
same bytes and checks nothing. The third column signs a fresh JWT for each delivery as well, as the notifier does. The
other side is a process of its own, and what counts is the processor time of this one. Rounds alternate between the
three, medians are printed, and the goal is the quotient of the goals and measurements that the project began with.
"""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
import sys
import time
from collections.abc import Callable
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

sys.path.insert(0, str(Path(__file__).parents[1]))

from a2a_serverless.adapters.egress import connect, strict_ssl_context
from a2a_serverless.adapters.webhook_sender import WebhookSender
from a2a_serverless.domain.url_policy import EgressPolicy
from tests.adapters.strangers import NAME, authority, server_context

URL: Final = f"https://{NAME}/a2a"
ADDRESS: Final = "93.184.215.14"
BODY: Final = b"x" * 800
HEADERS: Final = {"Content-Type": "application/a2a+json", "A2A-Version": "1.0", "X-A2A-Notification-Token": "t" * 32}
ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
ROUNDS: Final = 7
GOALS: Final = {"new": 500 / 860, "kept": 1500 / 2800}


class Receiver(asyncio.Protocol):
    """Answers 200 to each request as soon as it is whole."""

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
    """The other process: tells its port and its authority's certificate, then serves until it is ended."""

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Receiver, "127.0.0.1", 0, ssl=server_context(), backlog=1024)
        parent.send((server.sockets[0].getsockname()[1], authority().pem))
        await server.serve_forever()

    asyncio.run(serve())


def raw(port: int, context: ssl.SSLContext, *, kept: bool) -> Callable[[], None]:
    """One POST by ``http.client`` and nothing else."""
    headers = {**HEADERS, "Authorization": "Bearer " + signer()()}
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
    """One delivery by our sender, with what ``sign`` gives for a token."""

    def lead(_address: str, _port: int, seconds: float) -> socket.socket:
        return connect("127.0.0.1", port, seconds)

    sender = WebhookSender(EgressPolicy(), resolver=lambda *_: [ADDRESS], connector=lead, ssl_context=context)

    def post() -> None:
        outcome = sender.post(URL, {**HEADERS, "Authorization": "Bearer " + sign()}, BODY, 10_000)
        if not outcome.accepted:
            raise SystemExit(f"a delivery failed: {outcome}")
        if not kept:
            sender.close()

    return post


def signer() -> Callable[[], str]:
    """Makes ES256 tokens with one cached key."""
    key = ec.generate_private_key(ec.SECP256R1())
    claims = {"iss": "https://agents.example.com", "aud": URL, "sub": "t" * 36, "jti": "j" * 36, "exp": 2**31}
    return lambda: jwt.encode({**claims, "request_body_sha256": "0" * 64}, key, "ES256", headers={"kid": "k" * 43})


def per_second(post: Callable[[], None], times: int) -> float:
    """Calls per second of this process's processor time."""
    post()
    start = time.process_time()
    for _ in range(times):
        post()
    return times / (time.process_time() - start)


def row(name: str, posts: list[Callable[[], None]], times: int) -> str:
    """A line of the table: medians of each column, and of each round's quotients."""
    rounds = [[per_second(post, times) for post in posts] for _ in range(ROUNDS)]
    speeds = [f"{median(column):.0f}" for column in zip(*rounds, strict=True)]
    ratios = [f"{median(line[column] / line[0] for line in rounds):.2f}" for column in (1, 2)]
    return f"| {name} | {speeds[0]} | {speeds[1]} ({ratios[0]}) | {speeds[2]} ({ratios[1]}) | >= {GOALS[name]:.2f} |"


def main() -> None:
    """Prints the table."""
    here, there = Pipe()
    receiver = Process(target=receive, args=(there,), daemon=True)
    receiver.start()
    port, pem = here.recv()
    context = strict_ssl_context()
    context.load_verify_locations(cadata=pem)
    token = signer()()
    print("| connections | raw http.client /s | ours /s (ratio) | ours with a fresh JWT /s (ratio) | goal |")
    print("|---|---|---|---|---|")
    for name, times in (("new", 150), ("kept", 600)):
        kept = name == "kept"
        posts = [ours(port, context, sign, kept=kept) for sign in (lambda: token, signer())]
        print(row(name, [raw(port, context, kept=kept), *posts], times))
    receiver.terminate()


if __name__ == "__main__":
    main()
