from __future__ import annotations

import gzip
import json
import socket
import ssl
import sys
import threading
import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import count
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless.adapters.egress import MAX_DIALS, addresses_of, strict_ssl_context
from a2a_serverless.adapters.webhook_sender import (
    MAX_AGE_SECONDS,
    MAX_ANSWER,
    MAX_IDLE_CONNECTIONS,
    MAX_IDLE_SECONDS,
    ConnectionPool,
    PooledConnection,
    WebhookSender,
)
from a2a_serverless.domain.outbound import EgressPolicy, NameUnresolved, UrlNotAllowed, WebhookTarget, check_url
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.http_client.sockets import MAX_LOOKUPS, ResolveHost, connect, resolve
from tests.adapters.more_urls import ANSWERS, GOOD, URLS
from tests.adapters.strangers import NAME, Line, Script, Stranger, answer, authority, once, serve, server_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.enable_socket


def vet(url: str, policy: EgressPolicy, resolver: ResolveHost = resolve) -> WebhookTarget:
    """The check at registration."""
    target = check_url(url, policy)
    addresses_of(target, resolver)
    return target


URL = "https://hooks.example.com/a2a"
PUBLIC = "93.184.215.14"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
MINUTE = 60_000
CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "webhook_urls.json").read_text())


@dataclass
class Names:
    """A resolver with an answer per lookup; the last one stays. An exception as an answer is raised."""

    answers: list[list[str] | OSError]
    asked: list[tuple[str, int]] = field(default_factory=list)

    def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append((host, port))
        found = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(found, OSError):
            raise found
        return found


@dataclass
class Wire:
    """A connector that writes down what is dialled and leads it to a stranger on loopback, or nowhere."""

    stranger: Stranger | None = None
    dialled: list[str] = field(default_factory=list)

    def __call__(self, address: str, port: int, seconds: float) -> socket.socket:
        assert (port, seconds > 0) == (443, True)
        self.dialled.append(address)
        if self.stranger is None:
            raise TimeoutError("a black hole")
        return connect("127.0.0.1", self.stranger.port, seconds)


@dataclass
class Hands:
    """A clock that a test turns."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@cache
def trusting() -> ssl.SSLContext:
    context = strict_ssl_context()
    context.load_verify_locations(cadata=authority().pem)
    return context


@contextmanager
def sender_to(
    stranger: Stranger | None, names: Names | None = None, clock: Hands | None = None
) -> Iterator[tuple[WebhookSender, Wire]]:
    """A sender for which every name leads to the stranger, behind a public address."""
    wire = Wire(stranger)
    sender = WebhookSender(
        EgressPolicy(),
        resolver=names or Names([[PUBLIC]]),
        connector=wire,
        ssl_context=trusting(),
        wall_clock=clock or Hands(),
    )
    try:
        yield sender, wire
    finally:
        sender.close()


def post(sender: WebhookSender, url: str = URL, deadline_ms: int = MINUTE) -> Outcome:
    return sender.post(url, {"Content-Type": "application/json"}, b"{}", deadline_ms)


_calls: list[tuple[str, Any]] | None = None


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if _calls is not None and event in {"socket.connect", "socket.getaddrinfo"}:
        _calls.append((event, args[1] if event == "socket.connect" else args[0]))


sys.addaudithook(_audit)


@contextmanager
def watched_sockets() -> Iterator[list[tuple[str, Any]]]:
    """Every connect and every lookup, as the interpreter itself reports them."""
    global _calls  # noqa: PLW0603
    calls: list[tuple[str, Any]] = []
    _calls = calls
    try:
        yield calls
    finally:
        _calls = None


# --- every hostile URL, at an attempt ---------------------------------------------------------------------------------

URL_CASES = [case for case in CASES if case["class"] not in {"response", "env"}]


@pytest.mark.requirement(117)
@pytest.mark.parametrize("case", URL_CASES, ids=lambda case: case["id"])
def test_an_attempt_goes_to_vetted_addresses_only_and_reaches_only_good_urls(case: dict[str, Any]) -> None:
    answers = [case[key] for key in ("dns", "dns_next") if case.get(key)]
    names = Names(answers or [socket.gaierror(socket.EAI_AGAIN, "timeout")])
    delivers = case["expect"] == "allow" or case["id"] == "dns-01"  # one lookup: the second answer is never seen
    context = server_context(host_of(case["url"]) if delivers else NAME)
    with (
        serve(answer(OK), context) as stranger,
        sender_to(None if "connect" in case else stranger, names) as (sender, wire),
        watched_sockets() as calls,
    ):
        outcome = post(sender, case["url"])
    assert calls == [("socket.connect", ("127.0.0.1", stranger.port))] * delivers
    assert len(names.asked) <= 1
    if delivers:
        assert (outcome.status, outcome.address, wire.dialled) == (200, case["dns"][0], case["dns"])
    else:
        assert outcome.error in {OutboundError.REFUSED, OutboundError.DNS, OutboundError.TIMEOUT}
        assert wire.dialled == (case["dns"][:MAX_DIALS] if "connect" in case else [])
        assert not outcome.request_sent


@pytest.mark.parametrize("url", URLS, ids=ascii)
def test_more_hostile_urls_are_refused_without_a_lookup(url: str) -> None:
    names = Names([[PUBLIC]])
    with sender_to(None, names) as (sender, wire), watched_sockets() as calls:
        outcome = post(sender, url)
    assert (outcome.error, outcome.request_sent) == (OutboundError.REFUSED, False)
    assert (calls, wire.dialled, names.asked) == ([], [], [])


@pytest.mark.parametrize("answers", ANSWERS, ids=ascii)
def test_the_sender_connects_to_no_address_of_a_hostile_lookup(answers: tuple[str, ...]) -> None:
    with sender_to(None, Names([list(answers)])) as (sender, wire), watched_sockets() as calls:
        outcome = post(sender)
    assert (outcome.error, outcome.request_sent, outcome.address) == (OutboundError.REFUSED, False, None)
    assert (calls, wire.dialled) == ([], [])


SEEN_AT_AN_ATTEMPT = {"dns-01", "dns-23"}  # a second lookup, an address that does not answer


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_registering_any_url_of_the_list_opens_no_socket_and_refuses_the_hostile_ones(case: dict[str, Any]) -> None:
    names = Names([case["dns"]] if case.get("dns") else [socket.gaierror(socket.EAI_AGAIN, "timeout")])
    admitted = case["expect"] == "allow" or case["class"] in {"response", "env"} or case["id"] in SEEN_AT_AN_ATTEMPT
    with watched_sockets() as calls, nullcontext() if admitted else pytest.raises((UrlNotAllowed, NameUnresolved)):
        vet(case["url"], EgressPolicy(), names)
    assert calls == []
    assert len(names.asked) <= 1


@pytest.mark.parametrize("url", URLS, ids=ascii)
def test_registering_a_hostile_url_looks_no_name_up(url: str) -> None:
    names = Names([[PUBLIC]])
    with watched_sockets() as calls, pytest.raises(UrlNotAllowed):
        vet(url, EgressPolicy(), names)
    assert (calls, names.asked) == ([], [])


@pytest.mark.parametrize("answers", ANSWERS, ids=ascii)
def test_at_registration_a_hostile_lookup_refuses_for_good(answers: tuple[str, ...]) -> None:
    with watched_sockets() as calls, pytest.raises(UrlNotAllowed):
        vet(URL, EgressPolicy(), Names([list(answers)]))
    assert calls == []


@pytest.mark.parametrize("url", GOOD, ids=ascii)
def test_a_strange_but_valid_url_may_be_registered(url: str) -> None:
    assert vet(url, EgressPolicy(), Names([[PUBLIC]])).host.islower()


def test_a_name_that_is_rebound_between_registration_and_attempt_is_refused_at_the_attempt() -> None:
    names = Names([[PUBLIC], ["169.254.169.254"]])
    vet(URL, EgressPolicy(), names)
    with sender_to(None, names) as (sender, wire):
        assert post(sender).error is OutboundError.REFUSED
    assert (wire.dialled, len(names.asked)) == ([], 2)


def host_of(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition(":")[0].lower()


# --- what strangers answer --------------------------------------------------------------------------------------------


def response(head: str, body: bytes = b"") -> bytes:
    return f"HTTP/1.1 {head}\n\n".replace("\n", "\r\n").encode() + body


CHUNKED = response("200 OK\nTransfer-Encoding: chunked")


def redirect(status: int, location: str) -> Script:
    return once(response(f"{status} Elsewhere\nLocation: {location}\nContent-Length: 0"))


def floods(head: bytes, more: bytes) -> Script:
    """Answers with ``head``, then ``more`` as fast as it goes until the client closes."""

    def script(line: Line) -> None:
        line.read_request()
        line.write(head)
        line.write_for_ever(more)

    return script


def drips(head: bytes, more: bytes) -> Script:
    """Answers with ``head``, then ``more`` slowly until the client closes."""

    def script(line: Line) -> None:
        line.read_request()
        line.write(head)
        line.drip(more)

    return script


def hangs_up_after(data: bytes) -> Script:
    def script(line: Line) -> None:
        line.read_request()
        line.write(data)

    return script


def resets(line: Line) -> None:
    line.read_request()
    line.reset()


def stalls(line: Line) -> None:
    line.wait_for_close()


def drips_a_handshake(line: Line) -> None:
    line.write(b"\x16\x03\x03\x3f\xff")
    line.drip(b"\x02")


def speaks_in_clear(line: Line) -> None:
    line.write(OK)
    line.wait_for_close()


def hangs_up(line: Line) -> None:
    line.sock.recv(65536)


def resets_at_once(line: Line) -> None:
    line.reset()


@dataclass(frozen=True)
class Play:
    """A stranger's part, and what an attempt must make of it."""

    script: Script
    status: int | None = None
    error: OutboundError | None = None
    deadline_ms: int = MINUTE
    tls: Callable[[], ssl.SSLContext] | None = server_context


IMDS = "http://169.254.169.254/latest/meta-data/"
SOON = 400  # milliseconds, for what would never end
LATER = 2_000  # after the head has come, also on a busy machine
E = OutboundError
PLAYS: dict[str, Play] = {
    "response-01": Play(redirect(301, IMDS), 301),
    "response-03": Play(redirect(303, IMDS), 303),
    "response-05": Play(redirect(308, IMDS), 308),
    "response-07": Play(redirect(302, "//127.0.0.1/"), 302),
    "response-09": Play(redirect(302, URL), 302),
    "response-11": Play(once(response(f"200 OK\nRefresh: 0;url={IMDS}\nContent-Length: 0")), 200),
    "response-13": Play(floods(response(f"200 OK\nContent-Length: {2**30}"), bytes(65536)), 200, E.TOO_LARGE),
    "response-15": Play(drips(response("200 OK\nContent-Length: 9999"), b"x"), 200, E.TIMEOUT, LATER),
    "response-16": Play(drips(b"HTTP/1.1 200 OK\r\nX: ", b"x"), None, E.TIMEOUT, SOON),
    "response-18": Play(stalls, None, E.TIMEOUT, SOON, tls=None),
    "response-20": Play(once(response("200 OK\nContent-Encoding: br\nContent-Length: 4", b"\x8b\x05\x80x")), 200),
    "response-23": Play(floods(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65536), None, E.TOO_LARGE),
    "response-25": Play(once(response("200 OK\nContent-Length: -1")), None, E.PROTOCOL),
    "response-27": Play(hangs_up_after(b"HTTP/0.9 hello"), None, E.PROTOCOL),
    "response-29": Play(resets, None, E.RESET),
    "response-31": Play(once(response("401 Who\nWWW-Authenticate: Negotiate\nContent-Length: 0")), 401),
    "response-33": Play(once(response("200 OK\nSet-Cookie: sid=1; Domain=.com\nContent-Length: 0")), 200),
    "response-34": Play(once(response("410 Gone\nContent-Length: 0")), 410),
    "response-36": Play(once(response("503 Later\nRetry-After: nan\nContent-Length: 0")), 503),
    "response-38": Play(once(OK), None, E.TLS, tls=partial(server_context, days=-1)),
    "response-40": Play(once(OK), None, E.TLS, tls=partial(server_context, "hooks.example.net")),
    "response-42": Play(once(OK), None, E.TLS, tls=partial(server_context, padding=150_000)),
    "100 for ever": Play(floods(b"", response("100 Continue") * 99), None, E.TOO_LARGE),
    "102 now and then": Play(drips(b"", response("102 Processing")), None, E.TIMEOUT, SOON),
    "103 before the answer": Play(once(response("103 Hints\nLink: </x>") + OK), 200),
    "101 that nobody asked for": Play(once(response("101 Switch\nUpgrade: h2c")), None, E.PROTOCOL),
    "headers for ever": Play(floods(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n" * 999), None, E.TOO_LARGE),
    "a head of 40 KB": Play(once(response("200 OK\nX: " + "x" * 40_000 + "\nContent-Length: 0")), None, E.TOO_LARGE),
    "chunks for ever": Play(floods(CHUNKED, b"1\r\nx\r\n" * 999), 200, E.TOO_LARGE),
    "chunk extensions for ever": Play(floods(CHUNKED, b"1;" + b"x" * 9999 + b"\r\nx\r\n"), 200, E.TOO_LARGE),
    "trailers for ever": Play(floods(CHUNKED + b"0\r\n", b"a: b\r\n" * 999), 200, E.TOO_LARGE),
    "a negative chunk": Play(once(CHUNKED + b"-1\r\n"), 200, E.PROTOCOL),
    "a body without end": Play(floods(response("200 OK"), bytes(9999)), 200, E.TOO_LARGE),
    "a body that ends with the connection": Play(hangs_up_after(response("200 OK", b"{}")), 200),
    "a body too short": Play(hangs_up_after(response("200 OK\nContent-Length: 9", b"x")), 200, E.PROTOCOL),
    "a body where none may be": Play(once(response("204 Nothing\nContent-Length: 3", b"abc")), 204),
    "two lengths": Play(once(response("200 OK\nContent-Length: 1\nContent-Length: 2")), None, E.PROTOCOL),
    "a length beyond reason": Play(once(response("200 OK\nContent-Length: " + "9" * 40)), None, E.PROTOCOL),
    "an unknown coding": Play(once(response("200 OK\nTransfer-Encoding: gzip, chunked")), None, E.PROTOCOL),
    "an HTTP/2 preface": Play(once(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), None, E.PROTOCOL),
    "HTTP/2 settings": Play(hangs_up_after(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"), None, E.PROTOCOL),
    "a body without a head": Play(hangs_up_after(b"{}"), None, E.PROTOCOL),
    "half a status line": Play(hangs_up_after(b"HTTP/1.1 2"), None, E.PROTOCOL),
    "no answer": Play(hangs_up_after(b""), None, E.RESET),
    "a stall after the request": Play(once(b""), None, E.TIMEOUT, SOON),
    "a handshake byte by byte": Play(drips_a_handshake, None, E.TIMEOUT, SOON, tls=None),
    "HTTP where TLS should be": Play(speaks_in_clear, None, E.TLS, tls=None),
    "an end where TLS should be": Play(hangs_up, None, E.RESET, tls=None),
    "a reset where TLS should be": Play(resets_at_once, None, E.RESET, tls=None),
}


@pytest.mark.parametrize("name", PLAYS)
def test_a_hostile_answer_becomes_an_outcome_of_one_request(name: str) -> None:
    play = PLAYS[name]
    with serve(play.script, play.tls and play.tls()) as stranger, sender_to(stranger) as (sender, wire):
        outcome = post(sender, deadline_ms=play.deadline_ms)
    assert (outcome.status, outcome.error) == (play.status, play.error), outcome
    assert (wire.dialled, stranger.connections) == ([PUBLIC], 1)
    assert len(stranger.requests) <= 1
    assert len(outcome.body) <= MAX_ANSWER


def test_every_hostile_answer_of_the_list_is_played() -> None:
    assert {case["id"] for case in CASES if case["class"] == "response"} <= PLAYS.keys()


STARTS = st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", CHUNKED, response("100 Continue") + b"HTTP/1.1 200 OK\r\n"])
FRAGMENTS = st.one_of(
    st.sampled_from(
        [b"\r\n", b"\n", b"\r\n\r\n", b":", b" ", b"\x00", b"\xff", b";", b"Content-Length: 2", b"HTTP/1.1 "]
    ),
    st.sampled_from(
        [b"2\r\n{}\r\n", b"0\r\n\r\n", b"{}", b"ffffffff", b"-1", b"Transfer-Encoding: chunked", b"200 OK"]
    ),
)


@given(STARTS, st.lists(FRAGMENTS, max_size=6).map(b"".join))
def test_the_sender_makes_an_outcome_of_any_bytes_that_come_back(start: bytes, rest: bytes) -> None:
    data = start + rest

    def connector(_address: str, _port: int, _seconds: float) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.sendall(data)
            theirs.shutdown(socket.SHUT_WR)
            there.append(theirs.dup())
        return ours

    there: list[socket.socket] = []
    sender = WebhookSender(EgressPolicy(local_allow=("127.0.0.1:*",)), connector=connector, ssl_context=trusting())
    outcome = post(sender, "http://127.0.0.1/")
    sender.close()
    there.pop().close()
    assert (outcome.status is None) <= (outcome.error is not None)
    assert outcome.status is None or data.find(b"HTTP/1.1 200 OK") >= 0


def test_a_flood_is_cut_after_a_few_kilobytes_of_memory() -> None:
    script = floods(response(f"200 OK\nContent-Length: {2**30}"), bytes(65536))
    with serve(script, server_context()) as stranger, sender_to(stranger) as (sender, _):
        tracemalloc.start()
        outcome = post(sender)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert outcome.accepted
    assert outcome.body == bytes(MAX_ANSWER)
    assert peak < 2**20
    assert stranger.written < 2**26


def test_a_body_that_claims_to_be_compressed_stays_as_it_came() -> None:
    bomb = gzip.compress(bytes(10**7))
    script = once(response(f"200 OK\nContent-Encoding: gzip\nContent-Length: {len(bomb)}", bomb))
    with serve(script, server_context()) as stranger, sender_to(stranger) as (sender, _):
        assert post(sender).body == bomb
    assert b"\r\naccept-encoding: identity\r\n" in stranger.requests[0].lower()


def test_the_outcome_carries_what_the_schedule_and_the_reader_need() -> None:
    script = once(response("503 Later\nRetry-After: 120\nContent-Type: text/plain\nContent-Length: 4", b"busy"))
    with serve(script, server_context()) as stranger, sender_to(stranger) as (sender, _):
        outcome = post(sender)
    expected = Outcome(503, PUBLIC, outcome.elapsed_ms, None, "", "120", "text/plain", b"busy", True, True, False)  # noqa: FBT003
    assert outcome == expected
    assert not outcome.accepted


def test_the_reason_of_a_bad_certificate_says_what_is_wrong_with_it() -> None:
    with serve(once(OK), server_context("hooks.example.net")) as stranger, sender_to(stranger) as (sender, _):
        assert "hooks.example.com" in post(sender).reason


def test_the_reason_never_repeats_what_the_peer_sent() -> None:
    with serve(once(b"HTTP/1.1 hunter2\r\n\r\n"), server_context()) as stranger, sender_to(stranger) as (sender, _):
        outcome = post(sender)
    assert (outcome.error, outcome.reason) == (OutboundError.PROTOCOL, "")


def test_a_certificate_of_an_authority_that_nobody_trusts_is_refused() -> None:
    with serve(once(OK), server_context()) as stranger:
        sender = WebhookSender(EgressPolicy(), resolver=Names([[PUBLIC]]), connector=Wire(stranger))
        assert post(sender).error is OutboundError.TLS
    assert not stranger.requests


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n", response("200 OK\nContent-Length: 9999")])
def test_every_read_asks_again_how_much_time_is_left(head: bytes) -> None:
    ticks = count()
    with serve(drips(head, b"X"), server_context()) as stranger:
        sender = WebhookSender(
            EgressPolicy(),
            resolver=Names([[PUBLIC]]),
            connector=Wire(stranger),
            ssl_context=trusting(),
            clock=lambda: next(ticks),
        )
        assert post(sender, deadline_ms=20_000).error is OutboundError.TIMEOUT


def test_a_peer_that_does_not_read_cannot_hold_a_big_request_beyond_the_deadline() -> None:
    with serve(lambda line: line.drip(b""), server_context()) as stranger, sender_to(stranger) as (sender, _):
        outcome = sender.post(URL, {}, bytes(2**25), SOON)
    assert (outcome.error, outcome.request_sent) == (OutboundError.TIMEOUT, True)


def test_a_lookup_that_hangs_ends_with_the_deadline() -> None:
    hanging = Event()

    def resolver(_host: str, _port: int) -> list[str]:
        hanging.wait()
        return [PUBLIC]

    wire = Wire()
    sender = WebhookSender(EgressPolicy(), resolver=resolver, connector=wire, ssl_context=trusting())
    outcome = post(sender, deadline_ms=50)
    hanging.set()
    assert (outcome.error, outcome.connected, wire.dialled) == (OutboundError.DNS, False, [])


def test_lookups_that_hang_are_bounded_in_number() -> None:
    hanging, asked = Event(), count()

    def resolver(_host: str, _port: int) -> list[str]:
        next(asked)
        hanging.wait()
        return []

    sender = WebhookSender(EgressPolicy(), resolver=resolver, ssl_context=trusting())
    urls = [f"https://hooks-{number}.example.com/" for number in range(MAX_LOOKUPS + 5)]
    errors = {sender.post(url, {}, b"{}", 1).error for url in urls}
    hanging.set()
    wait_for_lookups()
    assert errors <= {OutboundError.DNS, OutboundError.TIMEOUT}
    assert next(asked) <= MAX_LOOKUPS


def wait_for_lookups() -> None:
    for thread in [thread for thread in threading.enumerate() if thread.name == "lookup"]:
        thread.join()


@pytest.mark.parametrize("names", [1, 100])
def test_names_whose_lookups_hang_stop_no_other_name(names: int) -> None:
    hanging, asked = Event(), Counter[str]()

    def resolver(host: str, _port: int) -> list[str]:
        asked[host] += 1
        if host != NAME:
            hanging.wait()
        return [PUBLIC]

    with serve(once(OK), server_context()) as stranger:
        sender = WebhookSender(EgressPolicy(), resolver=resolver, connector=Wire(stranger), ssl_context=trusting())
        hung = [f"hooks-{number % names}.example.com" for number in range(200)]
        errors = {sender.post(f"https://{host}/", {}, b"{}", 1).error for host in hung}
        outcome = post(sender, deadline_ms=MINUTE)
        hanging.set()
        wait_for_lookups()
        sender.close()
    assert errors <= {OutboundError.DNS, OutboundError.TIMEOUT}, "the time may be over before a lookup begins"
    assert outcome.status == 200
    assert (asked[NAME], max(asked.values())) == (1, 1)


def test_an_address_that_does_not_answer_leaves_time_for_the_next() -> None:
    shares: list[float] = []
    with serve(answer(OK), server_context()) as stranger:

        def connector(address: str, _port: int, seconds: float) -> socket.socket:
            shares.append(seconds)
            if address == "8.8.8.8":
                raise TimeoutError
            return connect("127.0.0.1", stranger.port, seconds)

        sender = WebhookSender(
            EgressPolicy(), resolver=Names([["8.8.8.8", PUBLIC]]), connector=connector, ssl_context=trusting()
        )
        outcome = post(sender)
        sender.close()
    assert (outcome.status, outcome.address) == (200, PUBLIC)
    assert shares[0] <= MINUTE / 2 / 1000


@pytest.mark.requirement(90)
def test_a_delivery_speaks_no_tls_before_1_2() -> None:
    assert strict_ssl_context().minimum_version is ssl.TLSVersion.TLSv1_2


def test_no_time_at_all_is_a_timeout_without_a_connection() -> None:
    with sender_to(None) as (sender, wire):
        outcome = post(sender, deadline_ms=0)
    assert (outcome.error, wire.dialled) == (OutboundError.TIMEOUT, [])


# --- the environment --------------------------------------------------------------------------------------------------


def test_no_environment_variable_leads_a_delivery_to_another_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorities = tmp_path / "authorities.pem"
    authorities.write_text(authority().pem)
    (tmp_path / "netrc").write_text("machine hooks.example.com login a password b")
    with serve(answer(OK)) as proxy, serve(answer(OK), server_context()) as stranger:
        for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            monkeypatch.setenv(name, str(authorities))
        ambient = WebhookSender(EgressPolicy(), resolver=Names([[PUBLIC]]), connector=Wire(stranger))
        distrusted = post(ambient)
        context = strict_ssl_context()
        context.load_verify_locations(cadata=authority().pem)
        sender = WebhookSender(
            EgressPolicy(), resolver=Names([[PUBLIC]]), connector=Wire(stranger), ssl_context=context
        )
        delivered = post(sender)
        sender.close()
    assert distrusted.error is OutboundError.TLS
    assert (delivered.status, delivered.address) == (200, PUBLIC)
    assert not proxy.connections
    assert b"authorization" not in stranger.requests[0].lower()
    assert not (tmp_path / "keys").exists()


def test_the_connect_function_opens_an_address_and_looks_no_name_up() -> None:
    with serve(hangs_up) as stranger, watched_sockets() as calls:
        connect("127.0.0.1", stranger.port, 5).close()
    assert calls == [("socket.connect", ("127.0.0.1", stranger.port))]


def test_the_resolver_gives_every_address_of_a_name() -> None:
    assert resolve("127.0.0.1", 443) == ["127.0.0.1"]
    assert set(resolve("localhost", 443)) <= {"127.0.0.1", "::1"}


# --- the request ------------------------------------------------------------------------------------------------------


def test_a_request_is_what_the_caller_asked_and_nothing_more() -> None:
    url = "https://Hooks.example.com/a2a?x=%20"
    with serve(answer(OK), server_context()) as stranger, sender_to(stranger) as (sender, _):
        sender.post(url, {"Authorization": "Bearer abc", "A2A-Version": "1.0"}, b'{"a": 1}', MINUTE)
        sender.get(url, {"Accept": "*/*"}, MINUTE, 100)
    head = "Host: hooks.example.com\nUser-Agent: a2a-serverless\nAccept-Encoding: identity\n"
    tail = "Authorization: Bearer abc\nA2A-Version: 1.0\n\n"
    assert [request.decode().replace("\r", "") for request in stranger.requests] == [
        f'POST /a2a?x=%20 HTTP/1.1\n{head}Content-Length: 8\n{tail}{{"a": 1}}',
        f"GET /a2a?x=%20 HTTP/1.1\n{head}Accept: */*\n\n",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "hunter2\r\nX-Injected: 1"),
        ("Authorization", "hunter2\nX-Injected: 1"),
        ("Authorization", "hunter2\r"),
        ("Authorization", "hunter2\x00"),
        ("Authorization", "hunter2\u010a"),
        ("X-Injected: hunter2\r\nX", "1"),
        ("X Y", "hunter2"),
        ("", "hunter2"),
        ("Host", "hunter2"),
        ("content-length", "0"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "upgrade"),
        ("Expect", "100-continue"),
    ],
)
def test_a_header_that_would_change_the_request_is_refused_before_anything_is_dialled(name: str, value: str) -> None:
    with sender_to(None) as (sender, wire):
        outcome = sender.post(URL, {name: value}, b"", MINUTE)
    assert (outcome.error, wire.dialled) == (OutboundError.REFUSED, [])
    assert "hunter2" not in outcome.reason


def test_a_fetch_cuts_the_body_at_the_limit_and_says_so() -> None:
    script = answer(response("200 OK\nContent-Length: 5", b"12345"))
    with serve(script, server_context()) as stranger, sender_to(stranger) as (sender, _):
        cut = sender.get(URL, {}, MINUTE, 4)
        whole = sender.get(URL, {}, MINUTE, 5)
    assert (cut.status, cut.body, cut.error) == (200, b"1234", OutboundError.TOO_LARGE)
    assert (whole.status, whole.body, whole.error) == (200, b"12345", None)


def test_a_local_target_is_reached_in_clear_through_the_allow_list_only() -> None:
    with serve(answer(OK)) as stranger, watched_sockets() as calls:
        url = f"http://127.0.0.1:{stranger.port}/webhook"
        local = WebhookSender(EgressPolicy(local_allow=("127.0.0.1:*",)), ssl_context=trusting())
        assert post(local, url).status == 200
        assert post(WebhookSender(EgressPolicy(), ssl_context=trusting()), url).error is OutboundError.REFUSED
        local.close()
    assert calls == [("socket.connect", ("127.0.0.1", stranger.port))]


def test_a_closed_port_is_a_failure_to_connect() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    sender = WebhookSender(EgressPolicy(local_allow=("localhost:*",)), ssl_context=trusting())
    outcome = post(sender, f"http://localhost:{port}/")
    assert (outcome.error, outcome.connected, outcome.request_sent) == (OutboundError.CONNECT, False, False)


# --- kept connections -------------------------------------------------------------------------------------------------


def test_a_connection_serves_several_requests_and_one_lookup() -> None:
    names = Names([[PUBLIC]])
    with serve(answer(OK), server_context()) as stranger, sender_to(stranger, names) as (sender, _):
        outcomes = [post(sender) for _ in range(3)]
    assert [outcome.reused for outcome in outcomes] == [False, True, True]
    assert {outcome.address for outcome in outcomes} == {PUBLIC}
    assert (stranger.connections, len(stranger.requests), len(names.asked)) == (1, 3, 1)


@pytest.mark.parametrize("seconds", [MAX_IDLE_SECONDS + 1, MAX_AGE_SECONDS + 1, -1])
def test_an_old_connection_is_not_used_again_and_the_name_is_vetted_anew(seconds: float) -> None:
    names, clock = Names([[PUBLIC], ["10.0.0.1"]]), Hands()
    with serve(answer(OK), server_context()) as stranger, sender_to(stranger, names, clock) as (sender, wire):
        assert post(sender).status == 200
        clock.now += seconds
        assert post(sender).error is OutboundError.REFUSED
    assert wire.dialled == [PUBLIC]


def test_the_sender_replaces_a_busy_connection_at_its_greatest_age() -> None:
    clock, step = Hands(), MAX_IDLE_SECONDS - 1
    with serve(answer(OK), server_context()) as stranger, sender_to(stranger, clock=clock) as (sender, _):
        for _ in range(int(MAX_AGE_SECONDS / step) + 2):
            assert post(sender).status == 200
            clock.now += step
    assert stranger.connections == 2


def test_a_connection_that_the_peer_has_closed_is_replaced_before_anything_is_sent() -> None:
    with serve(hangs_up_after(OK), server_context()) as stranger, sender_to(stranger) as (sender, _):
        assert post(sender).status == 200
        stranger.hung_up.wait()
        second = post(sender)
    assert (second.status, second.reused) == (200, False)
    assert (stranger.connections, len(stranger.requests)) == (2, 2)


def test_a_connection_that_the_peer_has_reset_is_replaced_before_anything_is_sent() -> None:
    read = Event()

    def script(line: Line) -> None:
        line.read_request()
        line.write(OK)
        if line.stranger.connections == 1:
            read.wait()
            line.reset()
        line.wait_for_close()

    with serve(script, server_context()) as stranger, sender_to(stranger) as (sender, _):
        assert post(sender).status == 200
        read.set()
        stranger.hung_up.wait()
        assert (post(sender).status, stranger.connections) == (200, 2)


def test_a_request_that_a_kept_connection_swallowed_is_not_sent_twice() -> None:
    def script(line: Line) -> None:
        line.read_request()
        line.write(OK)
        line.read_request()

    with serve(script, server_context()) as stranger, sender_to(stranger) as (sender, _):
        assert post(sender).status == 200
        second = post(sender)
    assert (second.error, second.request_sent, second.reused) == (OutboundError.RESET, True, True)
    assert (stranger.connections, len(stranger.requests)) == (1, 2)


@pytest.mark.parametrize(
    "data",
    [
        OK + OK,
        response("200 OK\nConnection: close\nContent-Length: 0"),
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        response("204 Nothing\nContent-Length: 3", b"abc"),
        response("200 OK\nContent-Length: 99999", bytes(99999)),
    ],
)
def test_an_answer_that_leaves_a_doubt_about_the_next_one_ends_the_connection(data: bytes) -> None:
    with serve(answer(data), server_context()) as stranger, sender_to(stranger) as (sender, _):
        assert [post(sender).reused for _ in range(2)] == [False, False]
    assert stranger.connections == 2


def test_a_cookie_is_not_sent_back() -> None:
    data = response("200 OK\nSet-Cookie: sid=1\nContent-Length: 0")
    with serve(answer(data), server_context()) as stranger, sender_to(stranger) as (sender, _):
        post(sender)
        post(sender)
    assert b"cookie" not in stranger.requests[1].lower()


def test_threads_share_a_sender_and_each_gets_its_own_answer() -> None:
    def script(line: Line) -> None:
        while True:
            body = line.read_request().partition(b"\r\n\r\n")[2]
            line.write(response(f"200 OK\nContent-Length: {len(body)}", body))

    sent = [f"{number}".encode() for number in range(100)]
    with serve(script, server_context()) as stranger, sender_to(stranger) as (sender, _), ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda body: sender.post(URL, {}, body, MINUTE), sent))
    assert [outcome.body for outcome in outcomes] == sent
    assert len(stranger.requests) == 100
    assert stranger.connections <= 8


def test_the_number_of_kept_connections_is_bounded_and_the_oldest_goes_first() -> None:
    pairs = [socket.socketpair() for _ in range(MAX_IDLE_CONNECTIONS + 1)]
    kept = ConnectionPool()
    for number, (ours, _) in enumerate(pairs):
        kept.put_back(PooledConnection(ours, ("https", f"{number}.example.com", 443), PUBLIC, 0.0), 0.0)
    assert [ours.fileno() == -1 for ours, _ in pairs] == [True] + [False] * MAX_IDLE_CONNECTIONS
    kept.close()
    for ours, theirs in pairs:
        assert ours.fileno() == -1
        theirs.close()


# --- registration -----------------------------------------------------------------------------------------------------


def test_a_name_that_does_not_resolve_is_told_apart_from_one_that_is_refused() -> None:
    with pytest.raises(NameUnresolved):
        vet(URL, EgressPolicy(), Names([socket.gaierror(socket.EAI_NONAME, "unknown")]))
    with pytest.raises(NameUnresolved):
        vet(URL, EgressPolicy(), Names([[]]))
    with pytest.raises(UrlNotAllowed):
        vet(URL, EgressPolicy(), Names([["10.0.0.1"]]))
    assert vet(URL, EgressPolicy(), Names([[PUBLIC]])).host == NAME


def test_a_forbidden_url_is_refused_without_a_lookup() -> None:
    names = Names([[PUBLIC]])
    with pytest.raises(UrlNotAllowed):
        vet("https://127.0.0.1/", EgressPolicy(), names)
    assert not names.asked


@pytest.mark.requirement(117)
@pytest.mark.parametrize(
    "case",
    [case for case in URL_CASES if case["expect"] == "reject" and "dns_next" not in case],
    ids=lambda case: case["id"],
)
def test_a_fetch_is_held_to_what_a_delivery_is_held_to(case: dict[str, Any]) -> None:
    names = Names([case["dns"]] if case.get("dns") else [socket.gaierror(socket.EAI_AGAIN, "timeout")])
    with sender_to(None, names) as (sender, _), watched_sockets() as calls:
        outcome = sender.get(case["url"], {}, MINUTE, 100)
    assert outcome.error in {OutboundError.REFUSED, OutboundError.DNS, OutboundError.TIMEOUT}
    assert (calls, outcome.request_sent) == ([], False)
