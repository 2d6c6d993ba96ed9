from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from a2a_serverless.client import HttpCall, Silent, Unreachable, over_urllib

pytestmark = pytest.mark.enable_socket

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers as the server's ``script`` says."""

    server: Server

    def do_GET(self) -> None:
        self.server.script(self)

    def do_POST(self) -> None:
        self.server.script(self)

    def log_message(self, *_: object) -> None:
        pass

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, script: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving(script: Answer) -> Iterator[str]:
    with Server(script) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()


def read(call: HttpCall) -> tuple[int, bytes]:
    with over_urllib(call) as answer:
        return answer.status, answer.body.read(1000)


def echo(handler: Handler) -> None:
    length = int(handler.headers.get("Content-Length", "0"))
    said = f"{handler.command} {handler.headers.get('A2A-Version')} ".encode() + handler.rfile.read(length)
    handler.say(200, said)


def test_a_body_is_posted_and_the_answer_read() -> None:
    with serving(echo) as url:
        assert read(HttpCall(url, {"A2A-Version": "1.0"}, b"hello")) == (200, b"POST 1.0 hello")
        assert read(HttpCall(url)) == (200, b"GET None ")


def test_an_error_status_is_an_answer() -> None:
    with serving(lambda handler: handler.say(503, b"later")) as url:
        assert read(HttpCall(url)) == (503, b"later")


def test_header_names_come_in_lower_case() -> None:
    with serving(lambda handler: handler.say(200, Content_Type="text/plain")) as url, over_urllib(HttpCall(url)) as got:
        assert got.headers["content-type"] == "text/plain"


def test_a_redirect_is_not_followed() -> None:
    asked: list[str] = []

    def move(handler: Handler) -> None:
        asked.append(handler.path)
        handler.say(307, Location="/elsewhere")

    with serving(move) as url:
        assert read(HttpCall(f"{url}/here", {"Authorization": "Bearer secret"}, b"{}"))[0] == 307
    assert asked == ["/here"]


def test_lines_come_as_soon_as_they_are_there() -> None:
    go_on = Event()

    def drip(handler: Handler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"5\r\none\n\n\r\n")
        assert go_on.wait(10)
        handler.wfile.write(b"4\r\ntwo\n\r\n0\r\n\r\n")

    with serving(drip) as url, over_urllib(HttpCall(url)) as answer:
        assert answer.body.readline(100) == b"one\n"
        go_on.set()
        assert [answer.body.readline(100) for _ in range(3)] == [b"\n", b"two\n", b""]


def test_a_line_that_breaks_is_told_as_unreachable() -> None:
    def hang_up(handler: Handler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"64\r\nhalf")
        handler.close_connection = True

    with serving(hang_up) as url, pytest.raises(Unreachable):
        read(HttpCall(url))


def test_silence_is_told_apart_from_a_closed_door() -> None:
    done = Event()

    def wait(_: Handler) -> None:
        done.wait(10)

    with serving(wait) as url:
        with pytest.raises(Silent, match=r"no answer in 0\.05 s"):
            read(HttpCall(url, seconds=0.05))
        done.set()
    with pytest.raises(Unreachable, match="refused") as refused:
        read(HttpCall(url))
    assert not isinstance(refused.value, Silent)


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with serving(echo) as url:
        assert read(HttpCall(url))[0] == 200


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:text/plain,hi", "/etc/hostname"])
def test_only_http_is_spoken(url: str) -> None:
    with pytest.raises(Unreachable, match="not an http"):
        read(HttpCall(url))
