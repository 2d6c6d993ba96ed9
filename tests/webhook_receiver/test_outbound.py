import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from a2a_webhook_receiver import outbound
from a2a_webhook_receiver.outbound import Unreachable, is_loopback, require_safe_url
from tests.adapters.strangers import DRIPS, ENOUGH, Line, once, serve, server_context

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


@contextmanager
def answering(speak: Callable[[socket.socket], None]) -> Iterator[str]:
    """The URL of a server that reads one request and then speaks as it is told."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            try:
                speak(connection)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):  # what is unread when a socket is closed resets the connection
                    pass
            except OSError:
                return  # the other side has had enough

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/keys?x=1"
    finally:
        thread.join()
        listener.close()


def says(answer: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(answer)


@pytest.mark.enable_socket
def test_the_body_of_an_answer_is_read_with_and_without_length() -> None:
    with answering(says(HEAD + b"Content-Length: 2\r\n\r\nhi")) as url:
        assert outbound.get(url, seconds=60, limit=2) == b"hi"
    with answering(says(HEAD + b"\r\nhi")) as url:
        assert outbound.post(url, b"{}", {}, seconds=60, limit=2) == b"hi"


@pytest.mark.enable_socket
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "answered 302"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answered 404"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "answered 204"),
        (HEAD + b"Content-Length: 3\r\n\r\nabc", "more than 2 bytes"),
        (HEAD + b"\r\nabc", "more than 2 bytes"),
        (b"not http at all\r\n\r\n", "BadStatusLine"),
        (b"", "RemoteDisconnected"),
    ],
)
def test_an_answer_that_is_of_no_use_is_no_answer(answer: bytes, reason: str) -> None:
    with answering(says(answer)) as url, pytest.raises(Unreachable, match=reason):
        outbound.get(url, seconds=60, limit=2)


def drip(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"\r\n")
    while True:
        connection.sendall(b"x")


@pytest.mark.enable_socket
def test_an_answer_that_never_ends_is_cut_off() -> None:
    with answering(drip) as url, pytest.raises(Unreachable, match="more than"):
        outbound.get(url, seconds=60, limit=1000)


@pytest.mark.enable_socket
@pytest.mark.parametrize("where", DRIPS)
def test_a_single_deadline_ends_an_exchange_that_drips(where: str) -> None:
    with serve(DRIPS[where]) as peer:
        with pytest.raises(Unreachable, match="TimeoutError"):
            outbound.get(f"http://127.0.0.1:{peer.port}/", seconds=0.5, limit=100_000)
        assert peer.hung_up.wait(60)
        assert peer.written < ENOUGH


@pytest.mark.enable_socket
def test_the_deadline_stands_over_the_handshake() -> None:
    def stutter(line: Line) -> None:
        line.write(b"\x16\x03\x03\x40\x00")  # a record of 16 KiB, byte by byte
        while line.stranger.written < ENOUGH and not line.stranger.over.wait(0.005):
            line.write(b"\x02")

    with serve(stutter) as peer:
        with pytest.raises(Unreachable, match="TimeoutError"):
            outbound.get(f"https://127.0.0.1:{peer.port}/", seconds=2, limit=10)
        assert peer.hung_up.wait(60)
        assert peer.written < ENOUGH


@pytest.mark.enable_socket
def test_a_certificate_that_nobody_vouches_for_is_refused() -> None:
    with serve(once(HEAD), server_context("localhost")) as peer, pytest.raises(Unreachable, match="SSLCertVerif"):
        outbound.get(f"https://localhost:{peer.port}/", seconds=60, limit=10)


def hold(let: threading.Event) -> None:
    assert let.wait(60)


@pytest.mark.enable_socket
def test_a_server_that_is_silent_ends_the_request_by_a_timeout() -> None:
    let = threading.Event()
    with answering(lambda _connection: hold(let)) as url:
        with pytest.raises(Unreachable, match="TimeoutError"):
            outbound.get(url, seconds=0.05, limit=10)
        let.set()


@pytest.mark.enable_socket
def test_a_port_where_nobody_listens_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unreachable, match="ConnectionRefusedError"):
        outbound.get(f"http://127.0.0.1:{port}/", seconds=60, limit=10)


@pytest.mark.parametrize("url", ["https://example.com", "https://example.com:8443/a?b", "http://127.0.0.1:8000/a"])
def test_https_and_this_machine_are_safe(url: str) -> None:
    assert require_safe_url(url).hostname


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com",
        "http://example.com",
        "http://10.0.0.1",
        "http://169.254.169.254/latest",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "file:///etc/passwd",
        "ftp://example.com",
        "https://user@example.com",
        "https://user:pass@example.com",
        "https://example.com/#x",
        "https://example.com:99999",
        "https://exämple.com",
        "https://example.com/a b",
        "https:///path",
    ],
)
def test_an_unsafe_url_is_refused_by_the_receiver(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        require_safe_url(url)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_a_name_of_this_machine_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "0.0.0.1", "::", "10.0.0.1", "example.com", "localhost.", "127.0.0.1.nip.io", "2130706433"]
)
def test_a_name_of_another_machine_is_told_apart(host: str) -> None:
    assert not is_loopback(host)
