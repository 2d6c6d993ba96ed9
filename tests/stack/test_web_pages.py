"""A developer has the stack up and visits a web page: the page gets nothing and changes nothing, at any port."""

import http.client
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from a2a_serverless_tools.stack.processes import Process
from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

EVIL = "https://evil.example"
JSON, TEXT = "application/json", "text/plain"
TARGETS = {"x-amz-target": "secretsmanager.ListSecrets", "content-type": "application/x-amz-json-1.1"}
MESSAGE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": {"messageId": "of-a-page", "role": "ROLE_USER", "parts": [{"text": "# A\n\nB."}]}},
    }
)


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


def ask(port: int, verb: str, path: str, headers: Mapping[str, str], body: str = "") -> Answer:
    """One request with exactly these headers, and Host and Content-Length unless they are given."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.putrequest(verb, path, skip_host="host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(body.encode())
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read1(65536))
    finally:
        connection.close()


class Attack(NamedTuple):
    part: str
    verb: str
    path: str
    headers: Mapping[str, str]
    body: str = ""


# What a page would like to do, as a browser lets it: it sends these headers by itself, and no others without asking.
WISHES = {
    "list secrets": Attack("emulator", "POST", "/", TARGETS, "{}"),
    "list secrets simply": Attack(
        "emulator", "POST", "/?X-Amz-Target=secretsmanager.ListSecrets", {"content-type": TEXT}, "{}"
    ),
    "who am I": Attack("emulator", "GET", "/?Action=GetCallerIdentity&Version=2011-06-15", {}),
    "reset": Attack("emulator", "POST", "/_ministack/reset", {}),
    "health": Attack("emulator", "GET", "/_ministack/health", {}),
    "list buckets": Attack("emulator", "GET", "/", {}),
    "send a message": Attack("api", "POST", "/document", {"content-type": JSON}, MESSAGE),
    "send a message simply": Attack("api", "POST", "/document", {"content-type": TEXT}, MESSAGE),
    "send a message of no type": Attack("api", "POST", "/document", {}, MESSAGE),
    "send a message over REST": Attack("api", "POST", "/document/message:send", {"content-type": TEXT}, MESSAGE),
    "list tasks": Attack("api", "GET", "/document/tasks", {"a2a-version": "1.0"}),
    "upload": Attack(
        "api", "POST", "/document/uploads", {"content-type": TEXT}, json.dumps({"sha256": "0" * 64, "size": 1})
    ),
    "expect": Attack("receiver", "POST", "/expectations", {"content-type": JSON}, "{}"),
    "expect simply": Attack("receiver", "POST", "/expectations", {"content-type": TEXT}, "{}"),
    "expect of no type": Attack("receiver", "POST", "/expectations", {}, "{}"),
    "read the inbox": Attack("receiver", "GET", "/api/notifications", {}),
    "follow the inbox": Attack("receiver", "GET", "/events", {}),
}
CROSS_SITE = {"origin": EVIL, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
FROM = {
    "another site": CROSS_SITE,
    "another site, of an older browser": {"origin": EVIL},
    "nowhere": {"origin": "null"},
    "a port beside": {"origin": "http://127.0.0.1:3000", "sec-fetch-site": "same-site"},
    "a name bound to this machine": {"host": "evil.example"},
    "a name bound to this machine at this port": {"host": "evil.example:PORT", "sec-fetch-site": "same-origin"},
    "a name that only looks like this machine": {"host": "127.0.0.1.evil.example:PORT"},
}


def process(stack: LocalStack, part: str) -> Process:
    return {"emulator": stack.running.emulator, "api": stack.running.api, "receiver": stack.running.receiver}[part]


@pytest.mark.parametrize("come_from", FROM)
@pytest.mark.parametrize("wish", WISHES)
def test_a_foreign_web_page_cannot_call_a_server_of_the_stack(stack: LocalStack, wish: str, come_from: str) -> None:
    attack = WISHES[wish]
    port = process(stack, attack.part).port
    sent = {name: value.replace("PORT", str(port)) for name, value in FROM[come_from].items()}
    answer = ask(port, attack.verb, attack.path, {**attack.headers, **sent}, attack.body)
    assert answer.status in {400, 403, 421}, answer
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("part", ["emulator", "api", "receiver"])
def test_a_pages_question_whether_it_may_ask_is_refused(stack: LocalStack, part: str) -> None:
    asks = CROSS_SITE | {"access-control-request-method": "POST", "access-control-request-headers": "x-amz-target"}
    answer = ask(process(stack, part).port, "OPTIONS", "/", asks)
    assert answer.status >= 400
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("part", ["emulator", "api", "receiver"])
def test_another_sites_image_or_script_is_refused(stack: LocalStack, part: str) -> None:
    """Requests without CORS carry no origin; what an older browser gets that way, its page cannot read."""
    paths = {"emulator": "/?Action=ListQueues", "api": "/document/tasks", "receiver": "/api/notifications"}
    sent = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}
    assert ask(process(stack, part).port, "GET", paths[part], sent).status == 403


@pytest.mark.parametrize("wish", ["send a message simply", "upload", "expect simply"])
def test_json_is_taken_as_json_only_whoever_sends_it(stack: LocalStack, wish: str) -> None:
    """A form or a plain text is what a page may send without asking."""
    attack = WISHES[wish]
    answer = ask(process(stack, attack.part).port, attack.verb, attack.path, attack.headers, attack.body)
    assert answer.status == 422 or b'"CONTENT_TYPE_NOT_SUPPORTED"' in answer.body, answer


def test_programs_on_this_machine_are_served(stack: LocalStack) -> None:
    """Whatever they call it."""
    for host in ("127.0.0.1", "localhost", "[::1]"):
        emulator, api, receiver = (process(stack, part).port for part in ("emulator", "api", "receiver"))
        assert ask(emulator, "POST", "/", TARGETS | {"host": f"{host}:{emulator}"}, "{}").status == 200
        assert ask(api, "GET", "/agents", {"host": f"{host}:{api}"}).status == 200
        assert ask(receiver, "GET", "/api/notifications", {"host": f"{host}:{receiver}"}).status == 200


def test_an_address_that_a_person_types_into_the_browser_is_served(stack: LocalStack) -> None:
    typed = {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert ask(stack.running.emulator.port, "GET", "/_ministack/health", typed).status == 403
    assert ask(stack.running.api.port, "GET", "/agents", typed).status == 200
    assert ask(stack.running.receiver.port, "GET", "/", typed).status == 200


def test_the_page_of_the_inbox_reads_notifications_and_posts_expectations(stack: LocalStack) -> None:
    """The requests of its own page."""
    port = stack.running.receiver.port
    own = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}
    assert ask(port, "GET", "/api/notifications", own).status == 200
    posts = own | {"origin": f"http://127.0.0.1:{port}", "content-type": JSON}
    assert ask(port, "POST", "/expectations", posts, "{}").status == 201


def test_no_other_port_of_the_stack_listens(stack: LocalStack) -> None:
    """Every port that is open is one of those above, on this machine only."""
    running = (stack.running.emulator, stack.running.api, stack.running.receiver)
    assert listening([one.pid for one in running]) == {("0100007F", one.port) for one in running}


def listening(sessions: list[int]) -> set[tuple[str, int]]:
    """Address (hexadecimal) and port of every listening socket of these processes and what they have started."""
    inodes = {inode for pid in _processes() if _session(pid) in sessions for inode in _sockets(pid)}
    lines = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    found = {tuple(line[1].split(":")) for line in lines if line[3] == "0A" and line[9] in inodes}
    return {(address, int(port, 16)) for address, port in found}


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def _sockets(pid: int) -> list[str]:
    found = []
    try:
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            target = os.readlink(fd)  # noqa: PTH115 - the target is no path
            found += [target[8:-1]] if target.startswith("socket:[") else []
    except OSError:
        return found
    return found
