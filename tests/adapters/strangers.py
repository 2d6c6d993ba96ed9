"""Strangers on loopback: servers that do to a connection what a script says, with real TLS and made-up certificates."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID, ObjectIdentifier

NAME = "hooks.example.com"


@dataclass(frozen=True)
class Authority:
    """A certificate authority of our own."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()


@cache
def authority() -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
    builder = _certificate(name, name, key.public_key(), days=1)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return Authority(key, builder.sign(key, hashes.SHA256()))


@cache
def server_context(name: str = NAME, *, days: int = 1, padding: int = 0) -> ssl.SSLContext:
    """A server's TLS with a certificate for ``name`` that ends in ``days``, with ``padding`` bytes of nothing in it."""
    issuer, key = authority(), ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stranger")])
    builder = _certificate(subject, issuer.certificate.subject, key.public_key(), days=days)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    if padding:
        nothing = x509.UnrecognizedExtension(ObjectIdentifier("1.3.6.1.4.1.99999.1"), bytes(padding))
        builder = builder.add_extension(nothing, critical=False)
    pem = builder.sign(issuer.key, hashes.SHA256()).public_bytes(Encoding.PEM)
    pem += key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as folder:  # the ssl module reads a key from a file only
        (Path(folder) / "chain.pem").write_bytes(pem)
        context.load_cert_chain(Path(folder) / "chain.pem")
    return context


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, days: int
) -> x509.CertificateBuilder:
    today = datetime.now(UTC)
    return (
        x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - timedelta(days=30))
        .not_valid_after(today + timedelta(days=days))
    )


@dataclass
class Stranger:
    """A server and what it saw. ``requests`` are whole: head and body as they came."""

    port: int
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    written: int = 0
    hung_up: Event = field(default_factory=Event)
    """Set when the script of a connection has ended and its socket is closed."""
    over: Event = field(default_factory=Event)
    """Set when the server goes."""


class Line:
    """A stranger's end of one connection."""

    def __init__(self, sock: socket.socket, stranger: Stranger) -> None:
        self.sock = sock
        self.stranger = stranger

    def read_request(self) -> bytes:
        """A whole request; raises EOFError when the client has closed."""
        got = b""
        while b"\r\n\r\n" not in got or len(got) < _whole(got):
            chunk = self.sock.recv(65536)
            if not chunk:
                raise EOFError
            got += chunk
        self.stranger.requests.append(got)
        return got

    def write(self, data: bytes) -> None:
        self.sock.sendall(data)
        self.stranger.written += len(data)

    def write_for_ever(self, data: bytes) -> None:
        """Until the client closes."""
        while True:
            self.write(data)

    def drip(self, data: bytes) -> None:
        """The same bytes every 5 ms until the client closes."""
        while not self.stranger.over.wait(0.005):
            self.write(data)

    def wait_for_close(self) -> None:
        while self.sock.recv(65536):
            pass

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.sock.close()


Script: TypeAlias = Callable[[Line], None]


def _whole(got: bytes) -> int:
    head = got.partition(b"\r\n\r\n")[0]
    lengths = [int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return len(head) + 4 + sum(lengths)


def once(data: bytes) -> Script:
    """Answers one request, then waits for the client to close."""

    def script(line: Line) -> None:
        line.read_request()
        line.write(data)
        line.wait_for_close()

    return script


def answer(data: bytes) -> Script:
    """Answers every request on the connection with the same bytes, and leaves it open."""

    def script(line: Line) -> None:
        while True:
            line.read_request()
            line.write(data)

    return script


ENOUGH = 2000
"""Bytes that a drip has, a few seconds of them: nobody who keeps a short deadline takes so many."""


def dripping(begin: bytes, drop: bytes) -> Script:
    """Begins an answer, and goes on by a few bytes every 5 ms: no single wait is long, and the answer does not end."""

    def script(line: Line) -> None:
        line.read_request()
        line.write(begin)
        while line.stranger.written < ENOUGH and not line.stranger.over.wait(0.005):
            line.write(drop)

    return script


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
DRIPS = {
    "status": dripping(b"HTTP/1.1 200 ", b"O"),
    "head": dripping(b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
    "interim answers": dripping(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 ", b"C"),
    "body": dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" "),
    "body without a length": dripping(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b" "),
    "size of a chunk": dripping(CHUNKED, b"0"),
    "chunks": dripping(CHUNKED, b"1\r\n \r\n"),
    "trailer": dripping(CHUNKED + b"1\r\n \r\n0\r\nX-Long: ", b"x"),
}
"""Where an answer can be slow."""


@contextmanager
def serve(script: Script, context: ssl.SSLContext | None = None) -> Iterator[Stranger]:
    """A stranger on a free port of 127.0.0.1; its connections are closed and its threads ended on the way out."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)  # where shutdown does not wake accept
    stranger = Stranger(listener.getsockname()[1])
    talks: list[Thread] = []
    socks: list[socket.socket] = []

    def accept() -> None:
        while not stranger.over.is_set():
            with suppress(OSError):
                sock, _ = listener.accept()
                stranger.connections += 1
                socks.append(sock)
                talks.append(Thread(target=talk, args=(sock,)))
                talks[-1].start()

    def talk(sock: socket.socket) -> None:
        with suppress(OSError, EOFError), sock:
            if context is None:
                script(Line(sock, stranger))
            else:
                with context.wrap_socket(sock, server_side=True) as secured:
                    socks.append(secured)
                    script(Line(secured, stranger))
        stranger.hung_up.set()

    accepting = Thread(target=accept)
    accepting.start()
    try:
        yield stranger
    finally:
        stranger.over.set()
        _shut_down(listener)
        accepting.join()
        listener.close()
        for sock in socks:
            _shut_down(sock)
        for thread in talks:
            thread.join()


def _shut_down(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
