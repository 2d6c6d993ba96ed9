"""A set has one JSON form in each process, through every door: its own order is another one in each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, RootModel, computed_field

from a2a_serverless.domain.json_forms import json_form, raw_form
from a2a_serverless.protocol.v1 import Message, Part, Role, Task
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless import TaskContext

WORDS = [f"word {number:02}" for number in range(20)]


class Plan(BaseModel):
    words: frozenset[str]


class Computed(BaseModel):
    words: list[str]

    @computed_field
    def distinct(self) -> frozenset[str]:
        return frozenset(self.words)


class Plans(RootModel[set[str]]):
    pass


class Kind(Enum):
    WORDS = frozenset(WORDS)


@dataclass(frozen=True)
class Trip:
    words: frozenset[str]


HOLDERS: dict[str, Any] = {
    "a set": set,
    "a frozen set": frozenset,
    "a list of sets": lambda words: [set(words)],
    "a tuple of sets": lambda words: (set(words),),
    "a dict of sets": lambda words: {1: set(words)},
    "a set of tuples": lambda words: {(word, word) for word in words},
    "a set of sets": lambda words: {frozenset(words)},
    "a model": lambda words: {"deep": [Plan(words=frozenset(words))]},
    "a computed field": lambda words: [Computed(words=list(words))],
    "a set of dataclasses": lambda words: {Trip(frozenset([word, *words])) for word in words},
    "a root model": lambda words: Plans(set(words)),
    "an enum": lambda _: Kind.WORDS,
}


def through_each_door(value: Any) -> list[Any]:
    """What the client and a called agent read of the value, and of the steps that got it."""
    heard: list[Any] = []

    async def other(task: TaskContext) -> str:
        heard.append([part.data for part in task.message.parts])
        return "done"

    async def work(task: TaskContext) -> list[Part]:
        data, metadata = {"value": value}, {"value": value}
        part = Part(data=data, metadata=metadata)
        await task.report_progress(data, metadata=metadata)
        await task.emit("data", data, metadata=metadata)
        await task.emit("part", [part], last=True)
        await task.call("a value", "other", data)
        await task.call("a part", "other", [part])
        await task.store.put("key", data)
        stored = await task.store.get("key")
        heard.append(stored and stored.value)
        await task.ask(Message(message_id="q", role=Role.AGENT, parts=(part,), metadata=metadata))
        return [part]

    harness = AgentTestHarness(agent_of(work, "work"), agent_of(other, "other"))
    asked = harness.send("go")
    assert asked.state == "input-required"
    reply = harness.send("yes", task_id=asked.task.id)
    assert reply.state == "completed"
    return [*heard, *map(_forms, (asked.task, reply.task))]


def _forms(task: Task) -> list[Any]:
    message = task.status.message
    assert message
    pairs = [*((part.data, part.metadata) for part in message.parts), message.metadata]
    return [*pairs, *([part.data, artifact.metadata] for artifact in task.artifacts for part in artifact.parts)]


def forms_in(seed: str) -> dict[str, Any]:
    """What comes through the doors in another process, where sets have another order."""
    code = (
        "import json; from tests.domain.test_json_forms import *; print(json.dumps({name: "
        "[through_each_door(hold(WORDS)), raw_form(hold(WORDS))] for name, hold in HOLDERS.items()}))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)  # noqa: S603
    forms: dict[str, Any] = json.loads(shown.stdout)
    return forms


def test_rule_07_a_set_has_one_form_in_each_process_through_each_door() -> None:
    forms, others = forms_in("1"), forms_in("2")
    assert [name for name in HOLDERS if forms[name] != others[name]] == []
    assert all(WORDS[0] in json.dumps(forms[name]) for name in HOLDERS)


def test_numbers_of_a_set_are_in_their_order_and_a_list_keeps_its_own() -> None:
    assert json_form("It", {10, 9, -1, 2.5, "a"}) == [-1, 2.5, 9, 10, "a"]
    assert raw_form({10, 9}) == [9, 10]
    assert json_form("It", {"list": [10, 9], "set": {10, 9}}) == {"list": [10, 9], "set": [9, 10]}
