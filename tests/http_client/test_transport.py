from __future__ import annotations

import socket
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from a2a_serverless.client import ClientRequest, ResponseTimeout, Unreachable, open_request
from a2a_serverless.http_client.exchange import exchange
from a2a_serverless.http_client.sockets import ResolveHost, resolve
from tests.adapters.strangers import DRIPS, ENOUGH, NAME, Line, authority, once, serve, server_context

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
    with open_request(call) as answer:
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
        open_request(ClientRequest(url)) as got,
    ):
        assert got.headers["content-type"] == "text/plain"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 %s\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX Y: %s\r\n\r\n",
        b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n",
    ],
    ids=["status", "header", "chunk"],
)
def test_an_error_repeats_nothing_that_the_peer_has_sent(answer: bytes) -> None:
    with serve(once(answer % b"secret")) as peer, pytest.raises(Unreachable, match=r": illegal [a-z ]+$"):
        read(ClientRequest(f"http://127.0.0.1:{peer.port}"))


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

    with serving(drip) as url, open_request(ClientRequest(url)) as answer:
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


def test_a_server_that_is_silent_and_a_closed_port_raise_different_errors() -> None:
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
def test_a_single_deadline_ends_an_exchange_that_drips(where: str) -> None:
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

    with pytest.raises(ResponseTimeout), exchange(ClientRequest("https://agents.example.com/", seconds=0.05), hang):
        pass
    done.set()


def test_the_next_address_of_a_name_is_tried_when_one_does_not_answer() -> None:
    with serving(echo) as url:
        call = ClientRequest(f"http://agents.example.com:{url.rpartition(':')[2]}/")
        with exchange(call, lambda *_: ["127.0.0.2", "127.0.0.1"]) as answer:
            assert answer.body.read(100) == b"GET None "


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
def test_the_transport_refuses_a_url_that_is_not_http(url: str) -> None:
    with pytest.raises(Unreachable, match="not an http"):
        read(ClientRequest(url))


def test_a_body_that_ends_before_its_length_is_told_as_unreachable() -> None:
    def hang_up(line: Line) -> None:
        line.read_request()
        line.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}")

    with serve(hang_up) as peer, pytest.raises(Unreachable, match="closed") as broken:
        read(ClientRequest(f"http://127.0.0.1:{peer.port}"))
    assert not isinstance(broken.value, ResponseTimeout)


def for_ever(begin: bytes, more: bytes) -> Callable[[Line], None]:
    def script(line: Line) -> None:
        line.read_request()
        line.write(begin)
        line.write_for_ever(more)

    return script


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "script",
    [
        for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 99),
        for_ever(b"HTTP/1.1 200 OK\r\nX: ", bytes(65536).replace(b"\0", b"x")),
        for_ever(b"HTTP/1.1 200 OK\r\n", b"X: x\r\n" * 999),
        for_ever(CHUNKED, b"1;" + b"x" * 9999 + b"\r\nx\r\n"),
        for_ever(CHUNKED + b"0\r\n", b"X: x\r\n" * 999),
    ],
    ids=["interim answers", "a long header", "many headers", "extensions of chunks", "trailers"],
)
def test_the_head_of_an_answer_is_bounded_without_a_deadline_for_the_exchange(script: Callable[[Line], None]) -> None:
    with serve(script) as peer:
        with pytest.raises(Unreachable, match="larger") as refused:
            read(ClientRequest(f"http://127.0.0.1:{peer.port}", waits=True))
        assert not isinstance(refused.value, ResponseTimeout)
        assert peer.hung_up.wait(60)


def test_content_in_chunks_of_a_byte_comes_whole() -> None:
    content = bytes(range(256)) * 64
    chunks = b"".join(b"1\r\n%b\r\n" % content[at : at + 1] for at in range(len(content)))
    with serve(once(CHUNKED + chunks + b"0\r\n\r\n")) as peer:
        call = ClientRequest(f"http://127.0.0.1:{peer.port}", waits=True)
        with open_request(call) as answer:
            assert answer.body.read(2 * len(content)) == content


def test_content_in_chunks_of_a_byte_is_bounded() -> None:
    with serve(for_ever(CHUNKED, b"1\r\nx\r\n" * 999)) as peer:
        call = ClientRequest(f"http://127.0.0.1:{peer.port}", waits=True)
        with open_request(call) as answer, pytest.raises(Unreachable, match="larger"):
            answer.body.read(2**30)


def test_an_error_of_the_reader_is_not_the_peers() -> None:
    with (
        serve(once(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as peer,
        pytest.raises(OSError, match="the disk is full"),
        open_request(ClientRequest(f"http://127.0.0.1:{peer.port}")),
    ):
        raise OSError("the disk is full")


def test_a_large_body_is_sent_whole_over_tls() -> None:
    body = bytes(range(256)) * 4096
    with serve(once(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), server_context()) as peer:
        call = ClientRequest(f"https://{NAME}:{peer.port}/x?y=1", {"Content-Length": str(len(body))}, body, put=True)
        with exchange(call, lambda *_: ["127.0.0.1"], trusting) as answer:
            assert answer.body.read(10) == b"{}"
    head, _, sent = peer.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"PUT /x?y=1 HTTP/1.1\r\nHost: hooks.example.com:%d\r\n" % peer.port)
    assert (head.count(b"Content-Length"), sent) == (1, body)


def test_a_server_with_the_certificate_of_another_is_told_as_unreachable() -> None:
    with (
        serve(once(b""), server_context("other.example.com")) as peer,
        pytest.raises(Unreachable, match=r"(?i)certificate"),
        exchange(ClientRequest(f"https://{NAME}:{peer.port}/"), lambda *_: ["127.0.0.1"], trusting),
    ):
        pass


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority().pem)


def deaf(line: Line) -> None:
    line.stranger.over.wait(60)


@contextmanager
def full_server() -> Iterator[int]:
    """A server on a port of this machine that accepts no more connections, and refuses none."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.socket() as first, socket.socket() as more:
        for sock in (first, more):
            sock.settimeout(0)
            sock.connect_ex(server.getsockname())
        yield server.getsockname()[1]


@contextmanager
def silent_server() -> Iterator[int]:
    with serve(deaf) as peer:
        yield peer.port


def hangs(*_: object) -> list[str]:
    HANGING.wait(60)
    return []


HANGING = Event()


PLACES: dict[str, tuple[Callable[[], AbstractContextManager[int]], str, int, ResolveHost]] = {
    "lookup": (silent_server, "http://agents.example.com:{}/", 0, hangs),
    "connect": (full_server, "http://127.0.0.1:{}/", 0, resolve),
    "handshake": (silent_server, "https://127.0.0.1:{}/", 0, resolve),
    "write": (silent_server, "http://127.0.0.1:{}/", 2**26, resolve),
    "read": (silent_server, "http://127.0.0.1:{}/", 0, resolve),
}


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("place", PLACES)
def test_giving_up_frees_a_thread_that_waits_at_any_place(place: str, *, waits: bool) -> None:
    server, url, size, resolver = PLACES[place]
    is_given_up, is_asked, ends = Event(), Event(), list[Unreachable]()

    def is_still_wanted() -> bool:
        is_asked.set()
        return not is_given_up.is_set()

    def ask() -> None:
        with pytest.raises(ResponseTimeout) as caught, exchange(call, resolver):
            pass
        ends.append(caught.value)

    with server() as port:
        call = ClientRequest(url.format(port), body=bytes(size), seconds=300, waits=waits, goes_on=is_still_wanted)
        asking = Thread(target=ask)
        asking.start()
        assert is_asked.wait(30)
        is_given_up.set()
        asking.join(30)
        HANGING.set()
        assert ends
        HANGING.clear()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def test_the_proxy_of_the_environment_gets_requests_to_other_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(once(OK)) as proxy:
        set_proxy(monkeypatch, f"http://me:p%40ss@127.0.0.1:{proxy.port}")
        assert read(ClientRequest("http://agents.example.com:8080/card?x=1#top")) == (200, b"{}")
    head = proxy.requests[0].decode()
    assert head.startswith("GET http://agents.example.com:8080/card?x=1 HTTP/1.1\r\nHost: agents.example.com:8080\r\n")
    assert f"\r\nProxy-Authorization: Basic {b64encode(b'me:p@ss').decode()}\r\n" in head


def test_a_proxy_connects_to_a_server_that_speaks_tls_and_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    context = server_context()

    def tunnel(line: Line) -> None:
        line.read_request()
        line.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        with context.wrap_socket(line.sock.dup(), server_side=True) as inner:
            Line(inner, line.stranger).read_request()
            inner.sendall(OK)

    with serve(tunnel) as proxy:
        set_proxy(monkeypatch, f"127.0.0.1:{proxy.port}")
        with exchange(ClientRequest(f"https://{NAME}/card", {"Authorization": "k"}), resolve, trusting) as answer:
            assert answer.body.read(10) == b"{}"
    outer, inner = (request.decode() for request in proxy.requests)
    assert outer.startswith(f"CONNECT {NAME}:443 HTTP/1.1\r\nHost: {NAME}:443\r\n")
    assert inner.startswith(f"GET /card HTTP/1.1\r\nHost: {NAME}\r\n")
    assert "Authorization" not in outer


def test_a_proxy_that_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(once(b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n")) as proxy:
        set_proxy(monkeypatch, f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(Unreachable, match="the proxy answered HTTP 407"):
            read(ClientRequest(f"https://{NAME}/"))
        assert proxy.hung_up.wait(60)


@pytest.mark.parametrize("address", ["socks5://127.0.0.1:1", "http://127.0.0.1:99999", "http://"])
def test_a_proxy_that_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    set_proxy(monkeypatch, address)
    with pytest.raises(Unreachable, match="the proxy that the environment names"):
        read(ClientRequest(f"https://{NAME}/"))


def test_a_proxy_behind_tls_gets_no_credentials_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(once(OK)) as proxy:
        set_proxy(monkeypatch, f"https://me:secret@127.0.0.1:{proxy.port}")
        for url in (f"https://{NAME}/", f"http://{NAME}/"):
            with pytest.raises(Unreachable, match="the proxy that the environment names is not an http URL"):
                read(ClientRequest(url))
        assert proxy.requests == []


def test_hosts_that_the_environment_excludes_are_asked_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    set_proxy(monkeypatch, "http://127.0.0.1:9", no_proxy="example.com")
    with serving(echo) as url:
        call = ClientRequest(f"http://agents.example.com:{url.rpartition(':')[2]}/")
        with exchange(call, lambda *_: ["127.0.0.1"]) as answer:
            assert answer.body.read(100) == b"GET None "


def set_proxy(monkeypatch: pytest.MonkeyPatch, address: str, no_proxy: str = "") -> None:
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, address)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("no_proxy", no_proxy)


@pytest.mark.parametrize(
    "url", ["http://", "http:///x", "http://[::1", "http://a:99999/", "http://a b/", "http://a/\n", "http://a\u00a0b/"]
)
def test_an_invalid_url_is_told_as_unreachable(url: str) -> None:
    with pytest.raises(Unreachable, match="not a valid URL"):
        read(ClientRequest(url))


def test_credentials_in_a_url_are_not_sent() -> None:
    with serving(echo) as url, pytest.raises(Unreachable, match="not a valid URL"):
        read(ClientRequest(url.replace("//", "//me:secret@")))


def test_a_header_that_would_change_the_request_is_told_without_its_value() -> None:
    with serving(echo) as url, pytest.raises(Unreachable, match="header") as refused:
        read(ClientRequest(url, {"A2A-Version": "1.0\r\nX: hunter2"}))
    assert "hunter2" not in str(refused.value)


def test_the_callers_own_header_takes_the_place_of_the_clients() -> None:
    with serve(once(OK)) as peer:
        read(ClientRequest(f"http://127.0.0.1:{peer.port}", {"user-agent": "mine"}))
    assert peer.requests[0].lower().count(b"user-agent") == 1
    assert b"user-agent: mine" in peer.requests[0]


def test_importing_the_client_does_not_import_the_http_parser() -> None:
    modules = "a2a_serverless.client, a2a_serverless.adapters.remote_agents, a2a_serverless.adapters.oidc"
    imports = f"import sys, {modules}; print('h11' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", imports], capture_output=True, check=True)  # noqa: S603 - our own interpreter
    assert done.stdout == b"False\n"


def test_without_the_extra_a_request_says_what_to_install() -> None:
    imports = "import sys; sys.modules['h11'] = None; from a2a_serverless.client import ClientRequest, open_request"
    script = f"{imports}; open_request(ClientRequest('http://127.0.0.1'))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, check=False, text=True)  # noqa: S603 - our own interpreter
    assert done.stderr.splitlines()[-1].endswith("Requests need h11: install a2a-serverless[client].")
