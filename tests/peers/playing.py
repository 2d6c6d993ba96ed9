"""Plays a task of a caller or a mirror against a peer of the server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from a2a_serverless.client import discover, open_request
from a2a_serverless.domain.called_task import BOUNDS
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
both = pytest.mark.parametrize("kind", ["call", "mirror"])
everywhere = pytest.mark.parametrize(("behaviour", "form"), WITH_AN_END)


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
