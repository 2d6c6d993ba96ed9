"""The client, calls and mirrors against each peer of ``python -m tests.peers``, over real HTTP, also with deaths."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from a2a_serverless.client import HttpError, PeerError, Unreachable, discover, over_urllib, text_message
from a2a_serverless.domain.called_task import BOUNDS
from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.remotes import SecretHeaders
from a2a_serverless.protocol.v1 import Message, SendMessageRequest, Task, TaskArtifactUpdateEvent
from tests.faults.plans import At, Count, die
from tests.peers.behaviours import BEHAVIOURS, BY_NAME, ECHO, Behaviour, Ending
from tests.peers.callers import Caller, texts, word
from tests.peers.forms import FORMS
from tests.peers.server import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.plans import Faults
    from tests.peers.forms import Form

pytestmark = pytest.mark.enable_socket

PORTS: Final = frozenset({"table", "queue", "remote"})
DEATHS: Final = 3
HELLO: Final = SendMessageRequest(message=text_message("hello"))
WITH_AN_END: Final = [
    pytest.param(behaviour, form, id=f"{behaviour.name} {form.name}")
    for behaviour in BEHAVIOURS
    for form in behaviour.forms
    if not behaviour.is_endless
]
both = pytest.mark.parametrize("kind", ["call", "mirror"])


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The base URL of the peers, which another process serves."""
    command = [sys.executable, "-m", "tests.peers", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own program
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)


def address(server: str, behaviour: Behaviour, form: Form) -> str:
    """The address of a new agent."""
    return f"{server}/{path_of(behaviour, form)}/{uuid4().hex}{behaviour.query}"


def seen_by_client(url: str) -> Ending:
    """How the client's one request ends."""
    agent = discover(url, over_urllib)
    try:
        if not agent.card.capabilities.streaming:
            answer = agent.client.send(HELLO)
            if isinstance(answer, Message):
                return Ending("", (), answer.text())
            return Ending(answer.status.state, tuple(texts(answer)), word(answer))
        state, artifacts = "", dict[str, str]()
        for item in agent.client.stream(HELLO):
            state = item.state or state
            if isinstance(item.content, TaskArtifactUpdateEvent):
                artifact = item.content.artifact
                artifacts[artifact.artifact_id] = artifacts.get(artifact.artifact_id, "") + artifact.text()
        return Ending(state, tuple(artifacts.values()))
    except (A2AError, HttpError, PeerError, Unreachable) as error:
        return Ending("error", (), f"{type(error).__name__} {error}")


@pytest.mark.parametrize(("behaviour", "form"), WITH_AN_END)
def test_the_clients_request_ends_as_the_table_says(server: str, behaviour: Behaviour, form: Form) -> None:
    seen = seen_by_client(address(server, behaviour, form))
    assert seen.state == behaviour.client.state, seen
    assert seen.artifacts[:3] == behaviour.client.artifacts or behaviour.name == "floods"
    assert re.search(behaviour.client.says, seen.says), seen.says


def played(url: str, behaviour: Behaviour, kind: str, faults: Faults | None = None, **options: Any) -> Task:
    card = discover(url, over_urllib).document
    caller = Caller(over_urllib, card, kind, url=url, faults=faults, bounds=BOUNDS._replace(artifacts=20), **options)
    task = caller.starts()
    for reply in behaviour.replies:
        assert task.status.state == "input-required", task.status
        task = caller.answers(reply)
    return task


def is_end(task: Task, behaviour: Behaviour, ending: Ending) -> bool:
    artifacts = ending.artifacts if behaviour.name != "floods" else tuple(texts(task))
    seen = (str(task.status.state), tuple(texts(task)), bool(re.search(ending.says, word(task))))
    return seen == (ending.state, artifacts, True)


@pytest.mark.parametrize(("behaviour", "form"), WITH_AN_END)
@both
def test_a_task_ends_as_the_table_says(server: str, behaviour: Behaviour, form: Form, kind: str) -> None:
    task = played(address(server, behaviour, form), behaviour, kind)
    assert is_end(task, behaviour, behaviour.ends), task


@pytest.mark.parametrize(("behaviour", "form"), WITH_AN_END)
@both
def test_a_task_ends_so_whenever_the_process_dies(server: str, behaviour: Behaviour, form: Form, kind: str) -> None:
    undisturbed, chance = Count(PORTS), Random(f"{behaviour.name} {form.name} {kind}")  # noqa: S311 - a seed
    played(address(server, behaviour, form), behaviour, kind, undisturbed)
    remote = [number for number, call in enumerate(undisturbed.calls, 1) if call.startswith("remote.")]
    numbers = chance.sample(range(1, len(undisturbed.calls) + 1), DEATHS)
    for number, late in [*((number, True) for number in remote[:2]), *((number, False) for number in numbers)]:
        faults = At(number, late=late, what=die, ports=PORTS)
        task = played(address(server, behaviour, form), behaviour, kind, faults)
        ends = [behaviour.ends, *filter(None, [behaviour.after_death])]
        assert any(is_end(task, behaviour, ending) for ending in ends), (faults.met, task)
        assert faults.met, (number, undisturbed.calls)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_secret_that_a_peer_repeats_is_not_in_the_mirrors_task(server: str, form: Form) -> None:
    auth = SecretHeaders({ECHO: "peer"})
    url = address(server, BY_NAME["repeats-headers"], form)
    card = discover(url, over_urllib).document
    task = Caller(over_urllib, card, "mirror", url=url, auth=auth, read_secret=lambda _: "sk-very-secret").starts()
    assert "sk-very-secret" not in str(task)
    assert word(task) == "You sent ***"
