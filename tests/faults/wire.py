"""A POST as bytes on a wire, in memory: the real sender writes them, and a process may die at any of them.

The moments are those at which something has happened that another process could tell: a name looked up, a connection
made, TLS agreed on, some or all of the request written, some or all of the answer read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.adapters.webhook_sender import WebhookSender
from a2a_serverless.domain.outbound import EgressPolicy
from tests.simulated import Killed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.outcomes import Outcome

PHASES: Final = (
    "lookup",
    "connect",
    "handshake",
    "first byte written",
    "half the head written",
    "head written",
    "half the body written",
    "all written",
    "first byte read",
    "half read",
    "all read",
)
HEARD: Final = PHASES.index("all written")
"""From here on the receiver has the whole request, and does what it asks for."""


class Wire:
    """``ports.Sender``: the real one, over a connection in memory to whoever ``answers`` a POST.

    ``pick`` gives the moment at which the process dies in the next POST, or None; ``deaths`` counts those after which
    the receiver may see the notification once more.
    """

    def __init__(
        self, answers: Callable[[str, Mapping[str, str], bytes], Outcome], pick: Callable[[], str | None]
    ) -> None:
        self._answers = answers
        self._pick = pick
        self.fatal: str | None = None
        self.died: list[str] = []
        context: Any = self
        self._sender = WebhookSender(
            EgressPolicy(), resolver=self._resolve, connector=self._connect, ssl_context=context, clock=lambda: 0.0
        )

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        self.fatal = self._pick()
        return self._sender.post(url, headers, body, deadline_ms)

    def wrap_socket(self, line: Line, *, server_hostname: str, do_handshake_on_connect: bool) -> Line:
        """What an SSL context does, as far as this wire is concerned."""
        del server_hostname
        assert not do_handshake_on_connect
        return line

    def reach(self, phase: str) -> None:
        """A moment of the POST; the process dies if it is the one."""
        if phase == self.fatal:
            self.died.append(phase)
            raise Killed

    def serve(self, request: bytes) -> bytes:
        """What the receiver answers to a whole request."""
        head, _, body = request.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        outcome = self._answers(f"https://{headers['Host']}{first.split()[1]}", headers, body)
        content = outcome.body or b"{}"
        return (
            f"HTTP/1.1 {outcome.status} Told\r\nConnection: close\r\nContent-Length: {len(content)}\r\n\r\n".encode()
            + content
        )

    def _resolve(self, _host: str, _port: int) -> list[str]:
        return ["93.184.215.14"]

    def _connect(self, _address: str, _port: int, _seconds: float) -> Any:
        self.reach("lookup")
        self.reach("connect")
        return Line(self)


class Line:
    """The sender's end of a connection."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._written = b""
        self._answer: bytes | None = None

    def settimeout(self, _seconds: float) -> None:
        """Nothing takes time here."""

    def do_handshake(self) -> None:
        self._wire.reach("handshake")

    def send(self, data: memoryview) -> int:
        """Takes half of what there is to write, so that a request comes in pieces; the last byte comes alone."""
        taken = bytes(data[: max(1, len(data) // 2)])
        before, self._written = len(self._written), self._written + taken
        head_end = self._written.find(b"\r\n\r\n")
        if before == 0:
            self._wire.reach("first byte written")
            self._wire.reach("half the head written")
        if head_end >= 0:
            self._wire.reach("head written")
        if head_end >= 0 and not self._whole:
            self._wire.reach("half the body written")
        if self._whole:
            self._answer = self._wire.serve(self._written)
            self._wire.reach("all written")
        return len(taken)

    def recv(self, limit: int) -> bytes:
        """The answer, in two pieces."""
        assert self._answer is not None
        piece, self._answer = self._answer[: min(limit, 40)], self._answer[min(limit, 40) :]
        self._wire.reach("first byte read")
        self._wire.reach("half read" if self._answer else "all read")
        return piece

    def close(self) -> None:
        """A connection is never used twice: its receiver says so."""

    @property
    def _whole(self) -> bool:
        head, found, body = self._written.partition(b"\r\n\r\n")
        length = head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]
        return bool(found) and len(body) >= int(length)
