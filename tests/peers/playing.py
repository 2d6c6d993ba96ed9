"""Plays a task of a caller or a mirror against a peer of the server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from a2a_serverless.client import HttpError, PeerError, Unreachable, discover, open_request, text_message
from a2a_serverless.domain.called_task import BOUNDS
from a2a_serverless.domain.errors import A2AError
from a2a_serverless.protocol.v1 import Message, SendMessageRequest, TaskArtifactUpdateEvent
from tests.peers.behaviours import BEHAVIOURS, Behaviour, Ending
from tests.peers.callers import Caller, texts, word
from tests.peers.server import path_of

if TYPE_CHECKING:
    from a2a_serverless.protocol.v1 import Task
    from tests.faults.plans import Faults
    from tests.peers.forms import Form

WITH_AN_END: Final = [
    pytest.param(behaviour, form, id=f"{behaviour.name} {form.name}")
    for behaviour in BEHAVIOURS
    for form in behaviour.forms
    if not behaviour.is_endless
]
BY_TURNS: Final = [
    pytest.param(behaviour, form := behaviour.forms[turn % len(behaviour.forms)], id=f"{behaviour.name} {form.name}")
    for turn, behaviour in enumerate(BEHAVIOURS)
    if not behaviour.is_endless
]
HELLO: Final = SendMessageRequest(message=text_message("hello"))
both = pytest.mark.parametrize("kind", ["call", "mirror"])
everywhere = pytest.mark.parametrize(("behaviour", "form"), WITH_AN_END)
by_turns = pytest.mark.parametrize(("behaviour", "form"), BY_TURNS)


def address(server: str, behaviour: Behaviour, form: Form) -> str:
    """The address of a new agent."""
    return f"{server}/{path_of(behaviour, form)}/{uuid4().hex}{behaviour.query}"


def played(url: str, behaviour: Behaviour, kind: str, faults: Faults | None = None, **options: Any) -> Task:
    card = discover(url, open_request).document
    caller = Caller(open_request, card, kind, url=url, faults=faults, bounds=BOUNDS._replace(artifacts=20), **options)
    task = caller.starts()
    for reply in behaviour.replies:
        assert task.status.state == "input-required", task.status
        task = caller.answers(reply)
    return task


def is_end(task: Task, behaviour: Behaviour, ending: Ending) -> bool:
    artifacts = ending.artifacts if behaviour.name != "floods" else tuple(texts(task))
    seen = (str(task.status.state), tuple(texts(task)), bool(re.search(ending.says, word(task))))
    return seen == (ending.state, artifacts, True)


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


def check_client(url: str, behaviour: Behaviour) -> None:
    seen = seen_by_client(url)
    assert seen.state == behaviour.client.state, seen
    assert seen.artifacts[:3] == behaviour.client.artifacts or behaviour.name == "floods"
    assert re.search(behaviour.client.says, seen.says), seen.says
