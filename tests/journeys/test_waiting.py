"""An agent that waits for an event and for a time, deployed: the real template, functions, table and queues."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.client import ClientRequest
from a2a_serverless.protocol.protojson import read_timestamp
from a2a_serverless_tools.stack import processes
from projects import AGENT, agent_file, make_project
from tests.journeys.shell import Shell
from tests.observed import observed
from tests.stack.local import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration, pytest.mark.xdist_group("test_waiting")]

SLEEP_S: Final = 5
SOURCE: Final = '''"""An agent that waits."""

from a2a_serverless import Skill, TaskContext, agent

SKILL = Skill("order", "Order", "Orders.", ("shop",))


@agent(id="tailor", name="Tailor", description="Orders.", skills=[SKILL])
async def tailor(task: TaskContext) -> str:
    paid = await task.callback("paid")
    await task.emit("address.txt", paid.url, last=True)
    amount = (await paid.received(timeout_s=3600)).json()["amount"]
    await task.sleep("rest", SLEEP_S)
    return f"{amount} paid"
'''


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shell, Any]]:
    """A project with the agent, and the addresses of its stack."""
    agent = agent_file(make_project("waiting-shop"))
    agent.write_text(SOURCE.replace("SLEEP_S", str(SLEEP_S)))
    state: Path = tmp_path_factory.mktemp("waiting")
    ports = {f"A2A_{part}_PORT": str(processes.claim_port(part, 0)) for part in ("EMULATOR", "API", "RECEIVER")}
    url = f"http://127.0.0.1:{ports['A2A_API_PORT']}"
    own = {**ports, "A2A_STATE": str(state), "A2A_URL": url, "NO_COLOR": "1"}
    shell = Shell(agent.parent.parent, {**os.environ, **own})
    yield shell, shell.json("up")
    shell.run("down")


def posted(base: str, event_id: str, body: bytes) -> int:
    call = ClientRequest(f"{base}/events/{event_id}", {"Content-Type": "application/json"}, body)
    with observed(base)(call) as answer:
        return answer.status


def test_a_task_waits_for_an_event_at_the_deployed_route_and_then_for_a_time(shop: tuple[Shell, Any]) -> None:
    shell, addresses = shop
    task = shell.json("send", AGENT, "a coat", "--no-wait")["task"]["id"]
    kinds: list[list[str]] = []

    def waits_for(*expected: str) -> bool:
        kinds.append([wait["kind"] for wait in shell.json("trace", AGENT, task).get("waits") or []])
        return kinds[-1] == [*expected]

    eventually(lambda: waits_for("event", "timeout"))
    (artifact,) = shell.json("get", AGENT, task)["artifacts"]
    address = artifact["parts"][0]["text"]
    assert address.startswith(shell.environment["A2A_URL"])
    event_id = address.rpartition("/")[2]
    deployed = addresses["restApi"].rstrip("/")
    assert posted(deployed, "unknown", b"1") == 404
    began = time.time_ns() // 1_000_000
    assert [posted(deployed, event_id, b'{"amount": 20}') for _ in range(2)] == [200, 200]
    assert posted(deployed, event_id, b'{"amount": 30}') == 409
    eventually(lambda: shell.json("get", AGENT, task)["status"]["state"] == "TASK_STATE_COMPLETED")
    status = shell.json("get", AGENT, task)["status"]
    assert status["message"]["parts"][0]["text"] == "20 paid"
    assert read_timestamp(status["timestamp"]) - began >= SLEEP_S * 1000, "never early"
    assert posted(deployed, event_id, b'{"amount": 20}') == 404
    assert event_id not in json.dumps(shell.json("logs")), "who knows the address can use it"
