"""A deployment with something wrong in it gets a FAIL in the line that is about it, and in no other."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from a2a_serverless import Agent, TaskContext, settings
from a2a_serverless.adapters.es256 import Es256Keys
from a2a_serverless.client import ClientRequest, ClientResponse
from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.errors import Unauthenticated
from a2a_serverless.domain.model import Principal
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.protocol.card_signatures import signature
from a2a_serverless.services.publish import CardPublisher, publish, publish_cards
from a2a_serverless_tools.cli.check import STREAMED
from a2a_serverless_tools.cli.options import find_local_url
from tests.cli.shell import Done, Shell
from tests.client.deployment import BASE, STEP_MS, Deployment
from tests.echo import Writer, agent_of

BLOBS = "https://blobs.example/"
KEYS = Es256Keys()
SIGN_IN = settings.read({}).schemes
ALICE, BOB = "Bearer alice", "Bearer bob"
# What this deployment cannot show: webhooks leave it to nowhere, and there is no stack to look into.
SKIPPED = {"webhook", "rotation", "alarms"}
Alter = Callable[[ClientRequest, int, bytes], tuple[int, bytes]]


class ByName(AllowAnonymous):
    """Whoever says a name is that owner."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        scheme, _, name = headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or not name:
            raise Unauthenticated
        return Caller(Principal("local", name))


class Everybody(ByName):
    """Lets in whoever says nothing."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        return super().authenticate({"authorization": "Bearer nobody"} | dict(headers))


class AsOne(ByName):
    """Takes all owners for one."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        super().authenticate(headers)
        return Caller(Principal("local", "anybody"))


def as_it_is(call: ClientRequest, status: int, body: bytes) -> tuple[int, bytes]:
    """Nothing is between."""
    del call
    return status, body


@dataclass
class Site:
    """A deployment whose cards are really signed, and what stands between it and the caller."""

    authenticator: AllowAnonymous = field(default_factory=ByName)
    alter: Alter = as_it_is
    buffers: bool = False
    environment: Mapping[str, str] = field(
        default_factory=lambda: {"A2A_AUTHORIZATION": ALICE, "A2A_OTHER_AUTHORIZATION": BOB}
    )

    alarms: Mapping[str, str] = field(default_factory=dict)
    agent: Agent = field(default_factory=lambda: Writer().agent)
    step_ms: int = STEP_MS

    def __post_init__(self) -> None:
        self.deployment = Deployment(self.agent, authenticator=self.authenticator, step_ms=self.step_ms)
        world, key = self.deployment.world, KEYS.make(0)
        publisher = CardPublisher(world.table, world.clock, self.deployment.edge.agents, BASE, schemes=SIGN_IN)
        publish(publisher, "jwks", {"keys": [{**key.public}]})
        publish_cards(publisher, key.kid, lambda content: KEYS.sign(key, content))

    @contextmanager
    def transport(self, call: ClientRequest) -> Iterator[ClientResponse]:
        if call.url.startswith(BLOBS):
            yield ClientResponse(200, {}, io.BytesIO(self._blob(call)))
            return
        with self.deployment.transport(call) as answer:
            streams = answer.headers.get("content-type", "").startswith("text/event-stream")
            if streams and not self.buffers:
                yield answer
                return
            status, body = self.alter(call, answer.status, answer.body.read(1 << 24))
            length = {"content-length": str(len(body))}
            yield ClientResponse(status, {**answer.headers, **length}, io.BytesIO(body))

    def _blob(self, call: ClientRequest) -> bytes:
        name, blobs = call.url.removeprefix(BLOBS).partition("?")[0], self.deployment.world.blobs
        if call.put:
            blobs.put(name, call.body or b"")
            return b""
        return self.alter(call, 200, blobs.get(name))[1]

    def check(self, *arguments: str) -> Done:
        shell = Shell(self.deployment, transport=self.transport)
        shell.environment = self.environment
        shell.alarms = lambda _: self.alarms
        return shell.run("check", BASE, *arguments)

    def verdicts(self, *arguments: str) -> dict[str, str]:
        lines = json.loads(self.check("--json", *arguments).out)["checks"]
        return {line["name"]: line["verdict"] for line in lines}


def failed(verdicts: Mapping[str, str]) -> set[str]:
    return {name for name, verdict in verdicts.items() if verdict == "FAIL"}


def test_a_deployment_that_does_everything_passes_and_what_cannot_be_seen_is_skipped() -> None:
    verdicts = Site().verdicts()
    assert {name for name, verdict in verdicts.items() if verdict == "SKIP"} == SKIPPED
    assert failed(verdicts) == set()


def test_every_line_says_what_became_of_it_and_what_helps_if_it_is_no_pass() -> None:
    done = Site().check()
    assert done.code == 0
    lines = done.out.splitlines()
    said = [line.split()[0] for line in lines]
    assert said == ["PASS"] * 10 + ["SKIP", "what"] * 3
    assert "--receiver" in lines[-5]
    assert done.err.splitlines()[-1] == "10 PASS, 0 FAIL, 3 SKIP"


def altered_card(call: ClientRequest, status: int, body: bytes) -> tuple[int, bytes]:
    """A proxy that writes into cards."""
    return status, body.replace(b'"name":"echo"', b'"name":"Echo"') if "agent-card" in call.url else body


def altered_catalog(call: ClientRequest, status: int, body: bytes) -> tuple[int, bytes]:
    """A proxy that lists another address."""
    return status, body.replace(b"/echo/.well-known", b"/evil/.well-known") if "ai-catalog" in call.url else body


def stranger_s_card(call: ClientRequest, status: int, body: bytes) -> tuple[int, bytes]:
    """A proxy that signs its own card, and names its own key set under the deployment's key id."""
    if "agent-card" not in call.url:
        return status, body
    card, stranger = json.loads(body) | {"name": "Echo"}, KEYS.make(0)
    kid = json.loads(base64.urlsafe_b64decode(card["signatures"][0]["protected"] + "=="))["kid"]
    jku = "https://evil.example/.well-known/jwks.json"
    made = signature(card, kid, lambda content: KEYS.sign(stranger, content), jku)
    return status, json.dumps(card | {"signatures": [made]}).encode()


def empty_key_set(call: ClientRequest, status: int, body: bytes) -> tuple[int, bytes]:
    """A rotator that has not run."""
    return status, b'{"keys":[]}' if call.url.endswith("jwks.json") else body


def open_webhooks(call: ClientRequest, status: int, body: bytes) -> tuple[int, bytes]:
    """A deployment that sends to any address."""
    if b"169.254.169.254" not in (call.body or b""):
        return status, body
    task = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED"}}
    return 200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"task": task}}).encode()


def cut_files(call: ClientRequest, status: int, body: bytes) -> tuple[int, bytes]:
    """A bucket that gives half of what it got."""
    return status, body[: len(body) // 2] if call.url.startswith(BLOBS) else body


@pytest.mark.parametrize(
    ("site", "line"),
    [
        (lambda: Site(alter=altered_card), "signature"),
        (lambda: Site(alter=altered_catalog), "signature"),
        (lambda: Site(alter=stranger_s_card), "signature"),
        (lambda: Site(alter=empty_key_set), "signature"),
        (lambda: Site(alter=open_webhooks), "private webhook"),
        (lambda: Site(alter=cut_files), "files"),
        (lambda: Site(authenticator=AsOne()), "isolation"),
        (lambda: Site(authenticator=Everybody()), "sign-in"),
    ],
    ids=[
        "an altered card",
        "an altered catalog",
        "a stranger's key set",
        "no keys",
        "an open webhook",
        "half a file",
        "another's tasks",
        "no sign-in",
    ],
)
def test_each_fault_of_a_site_fails_its_own_line_of_the_check_only(site: Callable[[], Site], line: str) -> None:
    broken = site()
    assert failed(broken.verdicts()) == {line}
    done = broken.check()
    assert done.code == 1
    at = next(n for n, said in enumerate(done.out.splitlines()) if said.startswith("FAIL"))
    assert "what helps:" in done.out.splitlines()[at + 1]


def test_an_answer_that_comes_all_at_once_fails_the_stream_unless_the_caller_says_that_it_may() -> None:
    assert failed(Site(buffers=True).verdicts()) == {"stream"}
    verdicts = Site(buffers=True).verdicts("--buffered")
    assert (verdicts["stream"], verdicts["resume"], failed(verdicts)) == ("SKIP", "PASS", set())


def line_of(done: Done, name: str) -> dict[str, Any]:
    lines: list[dict[str, Any]] = json.loads(done.out)["checks"]
    return next(line for line in lines if line["name"] == name)


async def repeat(task: TaskContext) -> str:
    """What an agent does that answers at once."""
    return task.text()


def quick(*, buffers: bool = False) -> Done:
    """A check of a deployment whose stream ends after a few hundredths of a second."""
    return Site(agent=agent_of(repeat), step_ms=10, buffers=buffers).check("--json")


def test_the_stream_of_an_agent_that_answers_at_once_is_judged_by_its_missing_length() -> None:
    line = line_of(quick(), "stream")
    assert (line["verdict"], "without a length" in line["text"]) == ("PASS", True)


def test_an_answer_that_comes_at_once_with_its_length_fails_the_stream_however_quick_it_is() -> None:
    done = quick(buffers=True)
    assert (line_of(done, "stream")["verdict"], done.code) == ("FAIL", 1)


def test_the_stream_has_a_text_of_its_own_that_takes_longer_unless_the_caller_gives_one() -> None:
    def sent(*arguments: str) -> dict[str, bool]:
        site = Site()
        site.check(*arguments)
        bodies = [json.loads(call.body) for call in site.deployment.calls if call.body]
        calls = [one for one in bodies if one.get("method") in {"SendMessage", "SendStreamingMessage"}]
        return {one["method"]: one["params"]["message"]["parts"][0]["text"] == STREAMED for one in calls}

    assert sent() == {"SendMessage": False, "SendStreamingMessage": True}
    assert not any(sent("--text", "Something else.").values())


def test_credentials_of_the_second_caller_that_are_not_accepted_are_called_those_of_the_second() -> None:
    environment = {"A2A_AUTHORIZATION": ALICE, "A2A_OTHER_AUTHORIZATION": "nobody"}
    line = line_of(Site(environment=environment).check("--json"), "isolation")
    assert line["verdict"] == "FAIL"
    assert "second caller" in line["text"]
    assert line["remedy"].startswith("A2A_OTHER_AUTHORIZATION")


def test_a_deployment_that_drops_last_event_id_fails_to_resume() -> None:
    @dataclass
    class Dropping(Site):
        @contextmanager
        def transport(self, call: ClientRequest) -> Iterator[ClientResponse]:
            kept = {name: value for name, value in call.headers.items() if name != "Last-Event-ID"}
            with super().transport(replace(call, headers=kept)) as answer:
                yield answer

    assert failed(Dropping().verdicts()) == {"resume"}


def test_a_card_that_names_another_address_fails_and_the_rest_waits_for_that() -> None:
    def elsewhere(call: ClientRequest, status: int, body: bytes) -> tuple[int, bytes]:
        return status, body.replace(BASE.encode(), b"http://127.0.0.1:9999") if "agent-card" in call.url else body

    verdicts = Site(alter=elsewhere, environment={}).verdicts()
    assert failed(verdicts) == {"card"}
    assert "PASS" not in verdicts.values()


def test_without_a_second_caller_isolation_is_skipped() -> None:
    assert Site(environment={"A2A_AUTHORIZATION": ALICE}).verdicts()["isolation"] == "SKIP"
    same = {"A2A_AUTHORIZATION": ALICE, "A2A_OTHER_AUTHORIZATION": ALICE}
    assert Site(environment=same).verdicts()["isolation"] == "SKIP"


def test_a_deployment_that_nobody_reaches_fails_in_words() -> None:
    done = Shell(Deployment(Writer().agent)).run("check", "http://127.0.0.1:1")
    assert done.code == 1
    assert done.out.startswith("FAIL  card             There is no answer from http://127.0.0.1:1/agents")


def test_without_an_address_the_agents_of_this_machine_are_checked_at_their_port() -> None:
    shell = Shell(Deployment(Writer().agent))
    shell.environment, shell.local_url = {"A2A_API_PORT": "9000"}, find_local_url
    assert "There is no answer from http://127.0.0.1:9000/agents" in shell.run("check").out


def test_keys_are_rotated_from_inside_only() -> None:
    done = Site().check("--rotate")
    assert done.code == 2


def test_a_check_without_credentials_names_the_variable_in_the_line_that_fails() -> None:
    lines: list[dict[str, Any]] = json.loads(Site(environment={}).check("--json").out)["checks"]
    (sent,) = [line for line in lines if line["name"] == "send"]
    assert sent["verdict"] == "FAIL"
    assert "A2A_AUTHORIZATION" in sent["remedy"]


@pytest.mark.parametrize(
    ("states", "verdict"),
    [
        ({"lost": "OK", "late": "INSUFFICIENT_DATA"}, "PASS"),
        ({"lost": "ALARM", "late": "OK"}, "FAIL"),
        ({}, "SKIP"),
    ],
)
def test_an_alarm_that_has_gone_off_fails_the_line_of_the_alarms(states: Mapping[str, str], verdict: str) -> None:
    assert Site(alarms=states).verdicts("--stack", "agents")["alarms"] == verdict
