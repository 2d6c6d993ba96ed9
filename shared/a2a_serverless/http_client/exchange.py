"""One exchange of the client: a connection of its own, through the environment's proxy if it names one."""

from __future__ import annotations

import re
import ssl
from base64 import b64encode
from contextlib import contextmanager
from functools import cache, partial
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import h11

from a2a_serverless.http_client.connections import Connection, HeaderRefused, TooLarge, write_head
from a2a_serverless.http_client.sockets import Deadline, ResolveHost, WaitLimit, connect, dial, look_up, resolve, secure
from a2a_serverless.http_client.transport import ClientResponse, ResponseTimeout, Unreachable, is_local

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from a2a_serverless.http_client.transport import ClientRequest

MOST_HEAD: Final = 64 * 1024
FRAMING: Final = 3
"""So many bytes may come for each byte of content. With more, the chunks are so short that parsing them costs much."""
_PORTS: Final = {"http": 80, "https": 443}
_URL: Final = re.compile(r"[^\x00-\x20\x7f]+")
_VISIBLE: Final = re.compile(r"[!-~]+")


class _Server(NamedTuple):
    """A server, or a proxy with the credentials of its URL."""

    scheme: str
    host: str
    port: int
    credentials: str = ""

    @property
    def name(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def authority(self) -> str:
        return self.name if self.port == _PORTS[self.scheme] else f"{self.name}:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """The header with the credentials for a proxy."""
        credentials = b64encode(self.credentials.encode()).decode()
        return {"Proxy-Authorization": f"Basic {credentials}"} if credentials else {}


@cache
def machine_tls_context() -> ssl.SSLContext:
    """Trusts whom this machine trusts, or its environment (``SSL_CERT_FILE``) names."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


@contextmanager
def exchange(
    call: ClientRequest,
    resolver: ResolveHost = resolve,
    tls_context: Callable[[], ssl.SSLContext] = machine_tls_context,
) -> Iterator[ClientResponse]:
    """Sends the request and yields the response; leaving the context closes the connection. Raises Unreachable."""
    deadline = (WaitLimit if call.waits else Deadline)(call.seconds, goes_on=call.goes_on)
    with _failing(call):
        server, proxy, head = _prepare(call)
        connection = Connection(_connect(server, proxy, deadline, resolver, tls_context), MOST_HEAD)
    try:
        with _failing(call):
            connection.send(head, call.body or b"", deadline)
            answer = _head_of(connection, deadline)
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in answer.headers}
        yield ClientResponse(answer.status_code, headers, _Body(call, connection, deadline))
    finally:
        connection.close()


class _Body:
    """The body of a response, read as it arrives."""

    def __init__(self, call: ClientRequest, connection: Connection, deadline: Deadline) -> None:
        self._call, self._connection, self._deadline = call, connection, deadline
        self._rest, self._size, self._is_over = bytearray(), 0, False

    def read(self, limit: int, /) -> bytes:
        body = BytesIO()
        while body.tell() < limit and (block := self.read1(limit - body.tell())):
            body.write(block)
        return body.getvalue()

    def read1(self, limit: int, /) -> bytes:
        with _failing(self._call):
            while not (self._rest or self._is_over):
                self._take(self._connection.next_event(self._deadline, 2 * MOST_HEAD + FRAMING * self._size))
            while len(self._rest) < limit and not self._is_over and (event := self._connection.event_at_hand()):
                self._take(event)
        block = bytes(self._rest[:limit])
        del self._rest[:limit]
        return block

    def _take(self, event: h11.Event) -> None:
        if isinstance(event, h11.Data):
            self._rest += event.data
            self._size += len(event.data)
        self._is_over = isinstance(event, h11.EndOfMessage)


@contextmanager
def _failing(call: ClientRequest) -> Iterator[None]:
    """Turns what goes wrong with the connection into Unreachable."""
    try:
        yield
    except TimeoutError as error:
        raise ResponseTimeout(call.url, f"no answer in {call.seconds:g} s") from error
    except h11.RemoteProtocolError as error:
        # After the colon are the peer's bytes: they may be long, and may repeat a secret of the request.
        raise Unreachable(call.url, str(error).partition(":")[0]) from error
    except (OSError, HeaderRefused, TooLarge) as error:
        text = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Unreachable(call.url, str(text)) from error


def _prepare(call: ClientRequest) -> tuple[_Server, _Server | None, bytes]:
    """The server, the proxy before it, and the head of the request."""
    try:
        server, target = _parse(call.url)
    except ValueError as error:
        raise OSError("not a valid URL") from error
    try:
        proxy = None if is_local(call.url) else _find_proxy(server)
    except ValueError as error:
        raise OSError("the proxy that the environment names is not an http URL") from error
    ours = {"Connection": "close"}
    if call.body is not None:
        ours["Content-Length"] = str(len(call.body))
    if proxy and server.scheme == "http":
        target, ours = f"http://{server.authority}{target}", ours | proxy.headers
    # Addresses of uploads come with the length that they are signed for.
    headers = {name: value for name, value in call.headers.items() if name.lower() != "content-length"}
    return server, proxy, write_head(call.verb, server.authority, target, headers, ours)


def _head_of(connection: Connection, deadline: Deadline) -> h11.Response:
    """The head of the answer, after interim answers."""
    while not isinstance(head := connection.next_event(deadline, MOST_HEAD), h11.Response):
        pass
    return head


def _parse(url: str) -> tuple[_Server, str]:
    """The server of a URL, and the target of a request to it. Raises ValueError."""
    parts = urlsplit(url)
    host = (parts.hostname or "").encode("idna").decode()
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # IDNA makes a blank of some characters.
    if not (_URL.fullmatch(url) and _VISIBLE.fullmatch(host) and _VISIBLE.fullmatch(target)) or "@" in parts.netloc:
        raise ValueError("not a URL that can be written in a request")
    return _Server(parts.scheme, host, parts.port or _PORTS[parts.scheme]), target


def _find_proxy(server: _Server) -> _Server | None:
    """The proxy that the environment names for a server. Raises ValueError."""
    from urllib.request import getproxies, proxy_bypass

    address = getproxies().get(server.scheme)
    if not address or proxy_bypass(server.authority):
        return None
    parts = urlsplit(address if "://" in address else f"http://{address}")
    if parts.scheme != "http" or not parts.hostname:  # over TLS the server's TLS could not be spoken within
        raise ValueError("not a proxy over HTTP")
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}" if parts.username else ""
    return _Server(parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme], pair)


def _connect(
    server: _Server,
    proxy: _Server | None,
    deadline: Deadline,
    resolver: ResolveHost,
    tls_context: Callable[[], ssl.SSLContext],
) -> socket.socket:
    near = proxy or server
    addresses = look_up(near.host, near.port, resolver, deadline)
    sock = dial(addresses, near.port, deadline, partial(connect, goes_on=deadline.goes_on))
    if server.scheme == "http":
        return sock
    if proxy:
        try:
            _ask_for_tunnel(Connection(sock, MOST_HEAD), server, proxy, deadline)
        except BaseException:
            sock.close()
            raise
    return secure(sock, server.host, tls_context(), deadline)


def _ask_for_tunnel(connection: Connection, server: _Server, proxy: _Server, deadline: Deadline) -> None:
    """Lets the proxy connect to the server: what then goes over the connection is the server's."""
    authority = f"{server.name}:{server.port}"
    head = write_head("CONNECT", authority, authority, {}, proxy.headers)
    connection.send(head, b"", deadline, connects=True)
    if (status := _head_of(connection, deadline).status_code) >= HTTPStatus.MULTIPLE_CHOICES:
        raise OSError(f"the proxy answered HTTP {status}")
