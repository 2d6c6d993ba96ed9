"""Calls and mirrors against each peer of the server in every form, undisturbed and while their process dies."""

from __future__ import annotations

import json
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final
from urllib.request import urlopen

import pytest

from a2a_serverless.client import discover, open_request
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.v1 import TaskState
from tests.dev.terminal import DEADLINE_S, make_project, running
from tests.faults.plans import At, Count, die
from tests.peers.behaviours import BY_NAME, Behaviour
from tests.peers.callers import texts
from tests.peers.forms import FORMS
from tests.peers.playing import address, both, check_client, everywhere, is_end, played
from tests.stack.local import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_serverless.client import Client
    from a2a_serverless.protocol.v1 import Task
    from tests.peers.forms import Form

pytestmark = pytest.mark.enable_socket

PORTS: Final = frozenset({"table", "queue", "remote"})
DEATHS: Final = 3


@everywhere
def test_the_clients_request_ends_as_the_table_says(server: str, behaviour: Behaviour, form: Form) -> None:
    check_client(address(server, behaviour, form), behaviour)


@everywhere
@both
def test_a_task_ends_as_the_table_says_after_a_death_at_any_call(
    server: str, behaviour: Behaviour, form: Form, kind: str
) -> None:
    undisturbed, chance = Count(PORTS), Random(f"{behaviour.name} {form.name} {kind}")  # noqa: S311 - a seed
    calm = played(address(server, behaviour, form), behaviour, kind, undisturbed)
    assert is_end(calm, behaviour, behaviour.ends), calm
    remote = [number for number, call in enumerate(undisturbed.calls, 1) if call.startswith("remote.")]
    numbers = chance.sample(range(1, len(undisturbed.calls) + 1), DEATHS)
    for number, late in [*((number, True) for number in remote[:2]), *((number, False) for number in numbers)]:
        faults = At(number, late=late, what=die, ports=PORTS)
        task = played(address(server, behaviour, form), behaviour, kind, faults)
        ends = [behaviour.ends, *filter(None, [behaviour.after_death])]
        assert any(is_end(task, behaviour, ending) for ending in ends), (faults.met, task)
        assert faults.met, (number, undisturbed.calls)


MODULE: Final = """
import json
from pathlib import Path

from a2a_serverless import TaskContext, agent, mirror, Skill

@agent(id="caller", name="Caller", description="Calls", skills=[Skill("a", "a", "a", ("a",))])
async def caller(task: TaskContext) -> None:
    answer = await task.call("it", task.text(), "hello")
    await task.emit("answer", answer.artifacts[0].text(), last=True)

CARDS = json.loads(Path(__file__).with_name("cards.json").read_text())
MIRRORS = [mirror(url, id=f"mirror-{number}", card=card) for number, (url, card) in enumerate(CARDS)]
mirror_0, mirror_1, mirror_2, mirror_3 = MIRRORS
"""


@pytest.mark.integration
def test_tasks_go_on_after_a_sigkill_while_their_peers_work(server: str, tmp_path: Path) -> None:
    """The mirrors read streams that do not end, and the calls wait for webhooks that do not come."""
    streams, works = (
        [address(server, BY_NAME[name], form) for form in FORMS] for name in ("keep-alives", "no-webhooks")
    )
    project = make_project(tmp_path)
    cards = [(url, discover(url, open_request).document) for url in streams]
    (project.root / "workshop" / "cards.json").write_text(json.dumps(cards))
    (project.root / "workshop" / "peers.py").write_text(MODULE)
    names = ",".join(f"far-{number}={url}" for number, url in enumerate(works))
    agents = json.dumps([f"workshop.peers:{name}" for name in ("caller", *(f"mirror_{n}" for n in range(4)))])
    (project.root / "pyproject.toml").write_text(
        f'[tool.a2a-serverless]\nagents = {agents}\n[tool.a2a-serverless.constants]\nAGENT_URLS = "{names}"\n'
    )
    begin = [*((f"mirror-{number}", "hello") for number in range(4)), *(("caller", f"far-{n}") for n in range(4))]
    with running(project) as dev:
        tasks = [(agent, dev.task(agent, text).id) for agent, text in begin]
        eventually(lambda: all("stream" in asked(url) for url in streams))
        eventually(lambda: all("get" in asked(url) for url in works))
        dev.process.kill()
        dev.process.wait(DEADLINE_S)
    with running(project) as dev:
        for agent, task_id in tasks:
            task = eventually(partial(ended, dev.client(agent), task_id))
            assert (task.status.state, texts(task)) == (TaskState.COMPLETED, ["answer"])
    assert [asked(url).count("stream") + asked(url).count("send") for url in (*streams, *works)] == [1] * 8


def ended(client: Client, task_id: str) -> Task | None:
    """The task, once it has ended."""
    task = client.get(task_id)
    return task if task.status.state in TERMINAL else None


def asked(url: str) -> list[str]:
    """The operations that the peer was asked for."""
    with urlopen(f"{url}/asked", timeout=DEADLINE_S) as answer:
        operations: list[str] = json.load(answer)
    return operations
