"""An HTTP server whose requests are the effects of the workflows: it has a gate before each, and one behind.

``POST /RUN/NAME`` is an effect. Its body says which process asks, and an address if the workflow waits for an event.
The answer is the name. The server knows neither workflows nor systems.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

Gate = Literal["before", "behind"]
SOON_S: Final = 0.01


@dataclass
class Effect:
    """A request, with the seconds at which it came, had its effect, and was answered; ``None`` is never."""

    name: str
    pid: int
    address: str
    asked: float
    done: float | None = None
    answered: float | None = None
    dropped: bool = False


class Effects:
    """The effects of one play. ``takes_s`` is how long an effect takes."""

    def __init__(self, takes_s: float = SOON_S) -> None:
        self.all: list[Effect] = []
        self.takes_s, self._began, self._changed = takes_s, time.monotonic(), Condition()
        self._closed: dict[str, Gate] = {}
        self._dead: set[int | None] = set()
        effects = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                effects._have(self, Effect(self.path.split("/")[2], body["pid"], body["address"], effects.now()))

            def log_message(self, *_: object) -> None:
                """The records are the log."""

        class Server(ThreadingHTTPServer):
            request_queue_size = 128

            def handle_error(self, *_: object) -> None:
                """A process that was killed takes no answer."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def now(self) -> float:
        """Seconds since the play began."""
        return round(time.monotonic() - self._began, 3)

    def close(self, names: list[str], gate: Gate = "before") -> None:
        """Closes a gate of these effects."""
        with self._changed:
            self._closed |= dict.fromkeys(names, gate)

    def open(self, dead: int | None = None) -> None:
        """Opens all gates. Effects of a process that is dead go no further, also those that it has asked for last."""
        with self._changed:
            self._dead |= {dead} - {None}
            for one in self.all:
                one.dropped = one.dropped or (one.pid in self._dead and one.answered is None)
            self._closed.clear()
            self._changed.notify_all()

    def wait(self, reached: Callable[[], bool], seconds: float) -> bool:
        """Waits until it is so; returns whether it is."""
        with self._changed:
            return self._changed.wait_for(reached, seconds)

    def stop(self) -> None:
        """Ends the server."""
        for one in {one.pid for one in self.all}:
            self.open(one)
        self._server.shutdown()
        self._server.server_close()

    def _have(self, handler: BaseHTTPRequestHandler, effect: Effect) -> None:
        with self._changed:
            effect.dropped = effect.pid in self._dead
            self.all.append(effect)
            self._changed.notify_all()
        if not self._passes(effect, "before"):
            return
        time.sleep(self.takes_s)
        with self._changed:
            effect.done = self.now()
            self._changed.notify_all()
        if not self._passes(effect, "behind"):
            return
        answer = effect.name.encode()
        handler.send_response(200)
        handler.send_header("content-length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)
        handler.wfile.flush()
        with self._changed:
            effect.answered = self.now()
            self._changed.notify_all()

    def _passes(self, effect: Effect, gate: Gate) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: effect.dropped or self._closed.get(effect.name) != gate)
            return not effect.dropped
