from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from urllib.error import URLError
from urllib.request import build_opener

import pytest

from a2a_serverless.client import ClientRequest, ResponseTimeout, Unreachable, over_urllib
from a2a_serverless.http_client.connections import BoundedHandler
from tests.adapters.strangers import DRIPS, ENOUGH, Line, once, serve

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


def read(call: ClientRequest) -> tuple[int, bytes]:
    with over_urllib(call) as answer:
        return answer.status, answer.body.read(1000)


def echo(handler: Handler) -> None:
    length = int(handler.headers.get("Content-Length", "0"))
    said = f"{handler.command} {handler.headers.get('A2A-Version')} ".encode() + handler.rfile.read(length)
    handler.say(200, said)


def test_a_body_is_posted_and_the_answer_read() -> None:
    with serving(echo) as url:
        assert read(ClientRequest(url, {"A2A-Version": "1.0"}, b"hello")) == (200, b"POST 1.0 hello")
        assert read(ClientRequest(url)) == (200, b"GET None ")


def test_an_error_status_is_an_answer() -> None:
    with serving(lambda handler: handler.say(503, b"later")) as url:
        assert read(ClientRequest(url)) == (503, b"later")


def test_header_names_come_in_lower_case() -> None:
    with (
        serving(lambda handler: handler.say(200, Content_Type="text/plain")) as url,
        over_urllib(ClientRequest(url)) as got,
    ):
        assert got.headers["content-type"] == "text/plain"


def test_a_redirect_is_not_followed() -> None:
    asked: list[str] = []

    def move(handler: Handler) -> None:
        asked.append(handler.path)
        handler.say(307, Location="/elsewhere")

    with serving(move) as url:
        assert read(ClientRequest(f"{url}/here", {"Authorization": "Bearer secret"}, b"{}"))[0] == 307
    assert asked == ["/here"]


def test_bytes_come_as_soon_as_they_are_there() -> None:
    go_on = Event()

    def drip(handler: Handler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"5\r\none\n\n\r\n")
        assert go_on.wait(60)
        handler.wfile.write(b"4\r\ntwo\n\r\n0\r\n\r\n")

    with serving(drip) as url, over_urllib(ClientRequest(url)) as answer:
        assert answer.body.read1(100) == b"one\n\n"
        go_on.set()
        assert [answer.body.read1(100) for _ in range(2)] == [b"two\n", b""]


def test_a_line_that_breaks_is_told_as_unreachable() -> None:
    def hang_up(handler: Handler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"64\r\nhalf")
        handler.close_connection = True

    with serving(hang_up) as url, pytest.raises(Unreachable):
        read(ClientRequest(url))


def test_silence_is_told_apart_from_a_closed_door() -> None:
    done = Event()

    def wait(_: Handler) -> None:
        done.wait(60)

    with serving(wait) as url:
        with pytest.raises(ResponseTimeout, match=r"no answer in 0\.05 s"):
            read(ClientRequest(url, seconds=0.05))
        done.set()
    with pytest.raises(Unreachable, match="refused") as refused:
        read(ClientRequest(url))
    assert not isinstance(refused.value, ResponseTimeout)


@pytest.mark.parametrize("where", DRIPS)
def test_one_deadline_stands_over_the_whole_exchange(where: str) -> None:
    with serve(DRIPS[where]) as peer:
        with pytest.raises(ResponseTimeout, match=r"no answer in 0\.5 s"):
            read(ClientRequest(f"http://127.0.0.1:{peer.port}", seconds=0.5))
        assert peer.hung_up.wait(60)
        assert peer.written < ENOUGH


def test_the_deadline_stands_over_an_upload_that_the_peer_takes_slowly() -> None:
    def sip(line: Line) -> None:
        for _ in range(200):
            if line.stranger.over.wait(0.005) or not line.sock.recv(1000):
                return

    with serve(sip) as peer:
        with pytest.raises(ResponseTimeout):
            read(ClientRequest(f"http://127.0.0.1:{peer.port}", body=bytes(64 * 1024 * 1024), seconds=0.3))
        assert peer.hung_up.wait(60)


def test_the_deadline_stands_over_the_handshake() -> None:
    def stutter(line: Line) -> None:
        line.write(b"\x16\x03\x03\x40\x00")  # a record of 16 KiB, byte by byte
        while line.stranger.written < ENOUGH and not line.stranger.over.wait(0.005):
            line.write(b"\x02")

    with serve(stutter) as peer:
        with pytest.raises(ResponseTimeout):
            read(ClientRequest(f"https://127.0.0.1:{peer.port}", seconds=2))
        assert peer.hung_up.wait(60)
        assert peer.written < ENOUGH


def test_a_lookup_that_hangs_ends_with_the_deadline() -> None:
    done = Event()

    def hang(host: str, port: int) -> list[str]:
        assert (host, port) == ("agents.example.com", 443)
        done.wait(30)
        return []

    opener = build_opener(BoundedHandler(lambda: 0.05, hang))
    with pytest.raises(URLError) as failed:
        opener.open("https://agents.example.com/")
    assert isinstance(failed.value.reason, TimeoutError)
    done.set()


def test_the_next_address_of_a_name_is_tried_when_one_does_not_answer() -> None:
    with serving(echo) as url:
        port = url.rpartition(":")[2]
        opener = build_opener(BoundedHandler(lambda: 5.0, lambda *_: ["127.0.0.2", "127.0.0.1"]))
        with opener.open(f"http://agents.example.com:{port}/") as answer:
            assert answer.read() == b"GET None "


def test_a_stream_may_last_longer_than_any_wait_in_it() -> None:
    def tell(line: Line) -> None:
        line.read_request()
        line.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for _ in range(60):
            line.stranger.over.wait(0.04)
            line.write(b"x")

    with serve(tell) as peer:
        assert read(ClientRequest(f"http://127.0.0.1:{peer.port}", seconds=2, waits=True)) == (200, b"x" * 60)


def test_a_stream_that_says_nothing_is_told() -> None:
    with serve(once(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf")) as peer, pytest.raises(ResponseTimeout):
        read(ClientRequest(f"http://127.0.0.1:{peer.port}", seconds=0.05, waits=True))


HALF = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf"


@pytest.mark.parametrize("script", [once(b""), once(HALF), DRIPS["size of a chunk"]], ids=["no", "half", "slow"])
def test_a_reader_of_a_silent_stream_ends_when_nobody_wants_it_any_more(script: Callable[[Line], None]) -> None:
    is_wanted, ends = Event(), list[Unreachable]()
    is_wanted.set()

    def read_on() -> None:
        with pytest.raises(ResponseTimeout) as caught:
            read(ClientRequest(f"http://127.0.0.1:{peer.port}", seconds=300, waits=True, goes_on=is_wanted.is_set))
        ends.append(caught.value)

    with serve(script) as peer:
        reader = Thread(target=read_on)
        reader.start()
        is_wanted.clear()
        reader.join(30)
        assert ends


def test_a_stream_that_pauses_longer_than_its_reader_looks_up_is_read_on() -> None:
    looks, go = list[None](), Event()

    def tell(line: Line) -> None:
        line.read_request()
        line.write(HALF)
        assert go.wait(30)
        line.write(b"half")

    def look() -> bool:
        looks.append(None)
        if len(looks) == 2:
            go.set()
        return True

    with serve(tell) as peer:
        assert read(ClientRequest(f"http://127.0.0.1:{peer.port}", waits=True, goes_on=look)) == (200, b"halfhalf")


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with serving(echo) as url:
        assert read(ClientRequest(url))[0] == 200


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:text/plain,hi", "/etc/hostname"])
def test_only_http_is_spoken(url: str) -> None:
    with pytest.raises(Unreachable, match="not an http"):
        read(ClientRequest(url))
