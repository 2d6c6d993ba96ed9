"""A caller's key goes to the origin that it belongs to, and to no other one, whichever command reads an address."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from a2a_serverless import mirror
from a2a_serverless.client import ClientResponse
from a2a_serverless.client.discovery import origin_of
from tests.cli.shell import Shell
from tests.client.deployment import BASE, Deployment, documents
from tests.echo import Writer
from tests.engine.mirrored import URL, RemoteAgent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from a2a_serverless.client import ClientRequest

OURS = "https://agents.example.com"
OTHER = "https://other.example.com"
KEY = "Bearer ours"
CARD = "/.well-known/agent-card.json"


class Recorder:
    """A command line that keeps which URL got which key. ``answers`` are documents by URL."""

    def __init__(self, environment: Mapping[str, str], answers: Mapping[str, object] | None = None) -> None:
        self.keys: dict[str, set[str]] = {}
        self.answer = documents(answers or {})
        self.shell = Shell(Deployment(Writer().agent), transport=self.transport)
        self.shell.environment = environment
        self.shell.local_url = lambda _: BASE

    @contextmanager
    def transport(self, call: ClientRequest) -> Iterator[ClientResponse]:
        keys = {value for name, value in call.headers.items() if name.lower() == "authorization"}
        self.keys.setdefault(call.url, set()).update(keys)
        with self.answer(call) as answer:
            yield answer


def card_of(url: str) -> dict[str, object]:
    card = RemoteAgent().card()
    return json.loads(json.dumps(card).replace(URL, url))  # type: ignore[no-any-return]


@contextmanager
def refuse(_: ClientRequest) -> Iterator[ClientResponse]:
    yield ClientResponse(401, {}, io.BytesIO())


@pytest.mark.parametrize(
    "arguments",
    [
        ("send", f"{OTHER}/echo", "hello"),
        ("get", f"{OTHER}/echo", "t"),
        ("tasks", "list", "echo", "--url", OTHER),
        ("send", "echo", "hello", "--url", OTHER),
        ("cards", "list", "--url", OTHER),
        ("cards", "search", "--url", f"{OTHER}/catalog.json"),
        ("cards", "show", f"{OTHER}/echo"),
        ("check", OTHER),
        ("send", "https://agents.example.com:8443/echo", "hello"),
        ("send", "https://agents.example.com@other.example.com/echo", "hello"),
        ("send", "https://agents.example.com.other.example.com/echo", "hello"),
    ],
)
def test_another_origin_gets_no_key(arguments: tuple[str, ...]) -> None:
    record = Recorder({"A2A_URL": OURS, "A2A_AUTHORIZATION": KEY, "A2A_OTHER_AUTHORIZATION": "Bearer bob"})
    record.shell.run(*arguments)
    assert record.keys
    assert set().union(*record.keys.values()) == set()


@pytest.mark.parametrize("url", [OURS, "https://AGENTS.example.com:443", f"{OURS}/"])
def test_the_origin_of_the_deployment_gets_the_key_however_it_is_written(url: str) -> None:
    record = Recorder({"A2A_URL": url, "A2A_AUTHORIZATION": KEY})
    record.shell.run("cards", "show", f"{OURS}/echo")
    assert record.keys == {f"{OURS}/echo{CARD}": {KEY}}


def test_without_a_url_in_the_environment_the_key_belongs_to_the_one_of_the_command() -> None:
    record = Recorder({"A2A_AUTHORIZATION": KEY})
    record.shell.run("cards", "list", "--url", OTHER)
    assert record.keys == {f"{OTHER}/agents": {KEY}}


def test_without_any_url_it_belongs_to_this_machine_and_not_to_an_agents_own_url() -> None:
    record = Recorder({"A2A_AUTHORIZATION": KEY})
    done = record.shell.run("cards", "show", f"{OTHER}/echo")
    assert record.keys == {f"{OTHER}/echo{CARD}": set()}
    assert done.code == 1


def test_a_mirrors_remote_agent_does_not_get_our_key(tmp_path: Path) -> None:
    file = tmp_path / "far.json"
    file.write_text(json.dumps(RemoteAgent().card()))
    agent = mirror(URL, id="far", card=file)
    assert agent.remote
    record = Recorder({"A2A_URL": OURS, "A2A_AUTHORIZATION": KEY}, {f"{URL}{CARD}": RemoteAgent().card()})
    record.shell.mirrors = [(agent.id, agent.remote)]
    record.shell.run("check")
    assert record.keys[f"{URL}{CARD}"] == set()


def test_a_card_that_names_another_origin_is_refused_with_both_origins() -> None:
    gateway = "https://abc123.execute-api.eu-central-1.amazonaws.com"
    answers = {f"{OURS}/agents": {"agents": [{"id": "echo"}]}, f"{OURS}/echo{CARD}": card_of(f"{gateway}/live/echo")}
    record = Recorder({"A2A_URL": OURS, "A2A_AUTHORIZATION": KEY}, answers)
    done = record.shell.run("check", OURS)
    line = next(line for line in done.out.splitlines() if " card " in line)
    assert line.startswith("FAIL")
    assert OURS in line
    assert gateway in line
    assert {url: keys for url, keys in record.keys.items() if origin_of(url) == origin_of(gateway)} == {}


def test_who_is_refused_elsewhere_reads_where_the_key_belongs() -> None:
    record = Recorder({"A2A_URL": OURS, "A2A_AUTHORIZATION": KEY})
    record.answer = refuse
    done = record.shell.run("cards", "show", f"{OTHER}/echo")
    assert f"A2A_AUTHORIZATION is sent to {OURS} only" in done.err
    assert "set A2A_URL" in done.err
