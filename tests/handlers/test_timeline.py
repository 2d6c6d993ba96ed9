"""``GET /{agent}/tasks/{id}/timeline``."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from a2a_serverless import Budget
from a2a_serverless.domain.events import ArtifactEvent
from a2a_serverless.protocol.v1 import Artifact, Part
from a2a_serverless.services.timelines import BYTES, EVENTS, PAGE
from tests.contract.tasks import writer
from tests.echo import Writer, agent_of
from tests.handlers.test_deliveries import asked
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless import TaskContext

SECRET = "what only the answer says"


async def work(task: TaskContext) -> str:
    async def draw() -> str:
        await task.emit("drawing", SECRET)
        return SECRET

    await task.step("draw", draw)
    await task.record_usage("nova", input_tokens=2_000_000)
    return SECRET


def test_an_owner_sees_what_a_task_spent_its_time_on_without_its_contents() -> None:
    world = World([agent_of(work)])
    world.engine = replace(world.engine, prices={"nova": {"input_tokens": 0.25, "output_tokens": 1}})
    task_id = world.send("hello").id
    world.settle()
    answer = asked(world, f"/echo/tasks/{task_id}/timeline")
    found = json.loads(answer.body)
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
    assert [(span["kind"], span.get("name")) for span in found["spans"]] == [
        ("run", "1"),
        ("step", "draw"),
    ]
    assert [state["state"] for state in found["states"]] == ["submitted", "working"]
    assert "earlierRuns" not in found
    assert all("endedAt" in span for span in found["spans"])
    assert [event.get("state") or event["artifactName"] for event in found["events"]] == [
        "submitted",
        "working",
        "drawing",
        "completed",
    ]
    assert [event["eventNumber"] for event in found["events"]] == [1, 2, 3, 4]
    assert (found["lastEvent"], found["state"]) == (4, "completed")
    assert found["deliveries"][0]["attempts"]
    assert found["usage"] == {"nova": {"input_tokens": 2_000_000, "cost_usd": 0.5}}
    assert SECRET.encode() not in answer.body


def test_a_task_with_a_budget_says_how_much_of_it_is_spent() -> None:
    world = World([replace(agent_of(work), budget=Budget(usd=2, steps=9))])
    world.engine = replace(world.engine, prices={"nova": {"input_tokens": 0.25}})
    task_id = world.send("hello").id
    world.settle()
    found = json.loads(asked(world, f"/echo/tasks/{task_id}/timeline").body)
    assert found["budget"] == {
        "spent": {"usd": 0.5, "tokens": 2_000_000, "steps": 1},
        "bounds": {"usd": 2, "steps": 9},
    }


def test_a_suspended_task_says_why_it_waits_and_since_when() -> None:
    urls: list[str] = []

    async def waits(task: TaskContext) -> None:
        paid = await task.callback("paid")
        urls.append(paid.url)
        with suppress(TimeoutError):
            await paid.received(timeout_s=3600)

    world = World([agent_of(waits)])
    task_id = world.send("hello").id
    world.wait(60_000)
    answer = asked(world, f"/echo/tasks/{task_id}/timeline")
    found = json.loads(answer.body)
    limit, event = sorted(found["waits"], key=lambda wait: wait["kind"], reverse=True)
    assert (event["kind"], event["name"], event["since"][:16]) == ("event", "paid", found["createdAt"][:16])
    assert (limit["kind"], limit["name"], "until" in limit, "until" in event) == ("timeout", "paid", True, False)
    assert "moreWaits" not in found
    assert urls[0].rpartition("/")[2].encode() not in answer.body
    world.settle()
    assert "waits" not in json.loads(asked(world, f"/echo/tasks/{task_id}/timeline").body)


def test_a_long_log_is_shown_from_its_beginning() -> None:
    world = World([Writer().agent])
    task_id = world.send("hello").id
    artifact = Artifact(artifact_id="a", parts=(Part(text="x"),))
    for n in range(2, EVENTS + 10):
        world.table.append_chunk(writer(ME.key(task_id)), ArtifactEvent(n, n, str(n), artifact))
    found = json.loads(asked(world, f"/echo/tasks/{task_id}/timeline").body)
    assert (len(found["events"]), found["lastEvent"]) == (EVENTS, EVENTS + 9)


def test_of_a_log_of_many_bytes_the_first_few_megabytes_are_shown() -> None:
    world = World([Writer().agent])
    task_id = world.send("hello").id
    artifact = Artifact(artifact_id="a", parts=(Part(text="x" * (BYTES // 150)),))
    for n in range(2, 4 * PAGE):
        world.table.append_chunk(writer(ME.key(task_id)), ArtifactEvent(n, n, str(n), artifact))
    found = json.loads(asked(world, f"/echo/tasks/{task_id}/timeline").body)
    assert len(found["events"]) == 2 * PAGE


@pytest.mark.parametrize("path", ["/echo/tasks/none/timeline", "/other/tasks/none/timeline"])
def test_another_owner_gets_404_for_the_timeline_of_a_task(path: str) -> None:
    assert asked(World([Writer().agent]), path).status == 404
