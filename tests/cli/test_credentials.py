"""A caller's key goes to the origin that it belongs to, and to no other one, whichever command reads an address."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from a2a_serverless import SecretHeaders, mirror
from a2a_serverless.client import ClientResponse
from a2a_serverless.domain.origins import origin_of
from a2a_serverless_tools.cli.file_transfer import INLINE_PART_BYTES
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
REMOTE = "Bearer theirs"
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


def test_a_user_whom_another_host_refuses_reads_where_the_key_belongs() -> None:
    record = Recorder({"A2A_URL": OURS, "A2A_AUTHORIZATION": KEY})
    record.answer = refuse
    done = record.shell.run("cards", "show", f"{OTHER}/echo")
    assert f"A2A_AUTHORIZATION is sent to {OURS} only" in done.err
    assert "set A2A_URL" in done.err


def mirrors(record: Recorder, folder: Path, *urls: str, **options: object) -> None:
    """The project's mirrors of remote agents at these URLs, whose cards are as they were."""
    answers = {f"{url}{CARD}": card_of(url) for url in urls}
    record.answer = documents(answers)
    for number, url in enumerate(urls):
        file = folder / f"{number}.json"
        file.write_text(json.dumps(card_of(url)))
        remote = mirror(url, id=f"far-{number}", card=file, **options).remote  # type: ignore[arg-type]
        assert remote
        record.shell.mirrors.append((f"far-{number}", remote))


def test_the_key_of_a_remote_agent_is_for_the_card_of_a_mirror_without_credentials(tmp_path: Path) -> None:
    record = Recorder({"A2A_URL": OURS, "A2A_AUTHORIZATION": KEY, "A2A_REMOTE_AUTHORIZATION": REMOTE})
    mirrors(record, tmp_path, URL, f"{URL}/second")
    record.shell.run("check")
    assert {url: keys for url, keys in record.keys.items() if REMOTE in keys} == {
        f"{URL}{CARD}": {REMOTE},
        f"{URL}/second{CARD}": {REMOTE},
    }


def test_a_mirror_with_credentials_does_not_get_the_key_of_another_remote_agent(tmp_path: Path) -> None:
    environment = {"A2A_AUTHORIZATION": KEY, "A2A_REMOTE_AUTHORIZATION": REMOTE, "A2A_SECRET_FAR": "Bearer far"}
    record = Recorder(environment)
    mirrors(record, tmp_path, URL, auth=SecretHeaders({"Authorization": "far"}))
    record.shell.run("check")
    assert record.keys[f"{URL}{CARD}"] == {"Bearer far"}


def test_mirrors_of_several_origins_do_not_share_a_key(tmp_path: Path) -> None:
    record = Recorder({"A2A_REMOTE_AUTHORIZATION": REMOTE})
    mirrors(record, tmp_path, URL, OTHER)
    (line,) = [line for line in record.shell.run("check").out.splitlines() if " mirrors " in line]
    assert "FAIL" in line
    assert "A2A_REMOTE_AUTHORIZATION is for one origin" in line
    assert origin_of(URL) in line
    assert OTHER in line
    assert all(REMOTE not in keys for keys in record.keys.values())


def test_an_upload_link_gets_no_key_even_at_our_own_origin(tmp_path: Path) -> None:
    file = tmp_path / "big.bin"
    file.write_bytes(bytes(INLINE_PART_BYTES + 1))
    upload = {"upload": {"url": f"{BASE}/blob", "headers": {"Content-Type": "x"}}, "part": {"url": f"{BASE}/file"}}
    record = Recorder({"A2A_AUTHORIZATION": KEY})
    record.answer = documents({f"{BASE}/echo{CARD}": card_of(f"{BASE}/echo"), f"{BASE}/echo/uploads": upload})
    record.shell.run("send", "echo", "--file", str(file))
    assert record.keys[f"{BASE}/echo/uploads"] == {KEY}
    assert record.keys[f"{BASE}/blob"] == set()


@pytest.mark.parametrize("key", ["Bearer ours\n", "Bearer ours\r\nX-Other: value", "Bearer ours…"])
def test_a_key_with_a_line_end_is_refused_by_its_variable_and_not_shown(key: str) -> None:
    record = Recorder({"A2A_AUTHORIZATION": key})
    done = record.shell.run("cards", "list")
    assert (done.code, record.keys) == (2, {})
    assert "A2A_AUTHORIZATION has a line end" in done.err
    assert "ours" not in done.out + done.err


def test_a_deployment_on_this_machine_does_not_get_the_key_of_the_one_in_aws() -> None:
    record = Recorder({"A2A_URL": OURS, "A2A_AUTHORIZATION": KEY})
    record.shell.run("check", BASE)
    assert record.keys
    assert all(keys == set() for keys in record.keys.values())
