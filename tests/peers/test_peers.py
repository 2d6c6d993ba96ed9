"""The client, calls and mirrors against each peer of ``python -m tests.peers``, over real HTTP."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from a2a_serverless.client import HttpError, PeerError, Unreachable, discover, open_request, text_message
from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.remotes import SecretHeaders
from a2a_serverless.protocol.v1 import Message, SendMessageRequest, TaskArtifactUpdateEvent
from tests.peers.behaviours import BEHAVIOURS, BY_NAME, ECHO, Behaviour, Ending
from tests.peers.callers import Caller, texts, word
from tests.peers.forms import FORMS
from tests.peers.playing import address, both, everywhere, is_end, played

if TYPE_CHECKING:
    from tests.peers.forms import Form

pytestmark = pytest.mark.enable_socket

HELLO: Final = SendMessageRequest(message=text_message("hello"))


def seen_by_client(url: str) -> Ending:
    """How the client's one request ends."""
    agent = discover(url, open_request)
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


@everywhere
def test_the_clients_request_ends_as_the_table_says(server: str, behaviour: Behaviour, form: Form) -> None:
    seen = seen_by_client(address(server, behaviour, form))
    assert seen.state == behaviour.client.state, seen
    assert seen.artifacts[:3] == behaviour.client.artifacts or behaviour.name == "floods"
    assert re.search(behaviour.client.says, seen.says), seen.says


@everywhere
@both
def test_a_task_ends_as_the_table_says(server: str, behaviour: Behaviour, form: Form, kind: str) -> None:
    task = played(address(server, behaviour, form), behaviour, kind)
    assert is_end(task, behaviour, behaviour.ends), task


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_secret_that_a_peer_repeats_is_not_in_the_mirrors_task(server: str, form: Form) -> None:
    auth = SecretHeaders({ECHO: "peer"})
    url = address(server, BY_NAME["repeats-headers"], form)
    card = discover(url, open_request).document
    task = Caller(open_request, card, "mirror", url=url, auth=auth, read_secret=lambda _: "sk-very-secret").starts()
    assert "sk-very-secret" not in str(task)
    assert word(task) == "You sent ***"


def test_the_help_of_the_server_says_what_each_peer_does() -> None:
    command = [sys.executable, "-m", "tests.peers", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()  # noqa: S603 - ours
    assert {f"{one.name} {one.does}" for one in BEHAVIOURS} <= {" ".join(line.split()) for line in shown}
