"""What an executor of the official SDK is given, and what a client gets of each kind of event."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("a2a", reason="a2a-sdk is not installed here: make frameworks")

from a2a import types
from a2a.server.agent_execution import AgentExecutor

from a2a_serverless import Part, Skill, Task, TaskState
from a2a_serverless.protocol.v1 import SendMessageConfiguration
from a2a_serverless.services.requests import RequestContext as Request
from a2a_serverless.services.tasks import send
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.a2a_sdk import IS_0_3, from_executor
from tests.frameworks.observed import chunks_of
from tests.frameworks.test_a2a_sdk import Executor, agent_of, data, text
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a.server.agent_execution import RequestContext
    from a2a.server.events import EventQueue
    from a2a.server.tasks import TaskUpdater


def doing(work: Callable[[Any, TaskUpdater], Awaitable[None]]) -> type[Executor]:
    """An executor that does this in each turn."""

    class Doing(Executor):
        async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
            await work(context, updater)

    return Doing


def message(updater: TaskUpdater, *parts: Any) -> Any:
    return updater.new_agent_message([*parts])


def state_of(name: str) -> str:
    return name if IS_0_3 else f"TASK_STATE_{name.upper().replace('-', '_')}"


# ---- What an executor is given


def test_an_executor_is_given_what_the_client_has_sent() -> None:
    seen: list[Any] = []

    async def look(context: Any, updater: TaskUpdater) -> None:
        call = context.call_context
        modes = context.configuration.accepted_output_modes if context.configuration else []
        seen.append((context.context_id, dict(context.metadata), [*modes], call.requested_extensions))
        seen.append([one.id for one in context.related_tasks])
        if not IS_0_3:
            seen.append(call.tenant)
        part = context.message.parts[1]
        seen.append(base64.b64decode(part.root.file.bytes) if IS_0_3 else part.raw)
        await updater.complete()

    world = World([agent_of(doing(look))])
    earlier = world.send("hello", push=False, agent="sdk")
    world.settle()
    seen.clear()
    stored = world.contents.store(ME.key("uploads"), b"...")
    asked = world.request("hello", push=False, context_id=earlier.context_id)
    changed = {"parts": (Part(text="Look"), Part(url=stored.address)), "reference_task_ids": (earlier.id,)}
    configuration = SendMessageConfiguration(return_immediately=True, accepted_output_modes=("text/plain",))
    request = asked.model_copy(
        update={
            "message": asked.message.model_copy(update=changed),
            "metadata": {"a": "b"},
            "configuration": configuration,
        }
    )
    task = send(world.service, Request(ME, "sdk", "1.0", extensions=("https://example.com/x",)), request)
    assert isinstance(task, Task)
    world.settle()
    assert world.get(task.id, "sdk").status.state is TaskState.COMPLETED
    assert seen[0] == (earlier.context_id, {"a": "b"}, ["text/plain"], {"https://example.com/x"})
    assert seen[1:] == [[earlier.id], *([] if IS_0_3 else [ME.tenant]), b"..."]


def test_a_turn_that_runs_again_is_given_the_artifacts_of_earlier_turns_only() -> None:
    given: list[list[str]] = []

    async def work(context: Any, updater: TaskUpdater) -> None:
        if not context.current_task:
            await updater.add_artifact([text("a")], name="first")
            await updater.requires_input(message(updater, text("Go on?")))
            return
        given.append([one.name for one in context.current_task.artifacts])
        await updater.add_artifact([text("b")], name="second")
        await asyncio.sleep(2000 if len(given) == 1 else 1)
        await updater.complete()

    harness = AgentTestHarness(agent_of(doing(work)))
    asked = harness.send("x")
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.state, given) == (TaskState.COMPLETED, [["first"], ["first"]])
    assert {name: one.text() for name, one in reply.artifacts.items()} == {"first": "a", "second": "b"}


# ---- What a client gets


@pytest.mark.parametrize(
    ("end", "state", "said"),
    [
        ("complete", "completed", ""),
        ("failed", "failed", "The agent has ended the task as failed."),
        ("reject", "rejected", "The agent has rejected the task."),
        ("requires_input", "input-required", ""),
        ("requires_auth", "auth-required", ""),
    ],
)
@pytest.mark.parametrize("is_empty", [False, True])
def test_an_end_or_a_question_may_have_no_message_or_one_without_parts(
    end: str,
    state: str,
    said: str,
    is_empty: bool,  # noqa: FBT001 - a column of the table
) -> None:
    async def work(_: Any, updater: TaskUpdater) -> None:
        await getattr(updater, end)(*([message(updater)] if is_empty else []))

    reply = AgentTestHarness(agent_of(doing(work))).send("x")
    assert (reply.state, reply.said) == (state, said)


def test_progress_is_what_a_working_status_says() -> None:
    async def work(_: Any, updater: TaskUpdater) -> None:
        await updater.start_work()
        await updater.start_work(message(updater))
        await updater.start_work(message(updater, text("I think.")))

    reply = AgentTestHarness(agent_of(doing(work))).send("x")
    assert (reply.state, [one.text() for one in reply.task.history]) == (TaskState.COMPLETED, ["x", "I think."])


def test_a_question_that_a_later_status_takes_back_is_not_asked() -> None:
    async def work(_: Any, updater: TaskUpdater) -> None:
        await updater.event_queue.enqueue_event(status(updater, "input-required", "Which?"))
        await updater.event_queue.enqueue_event(status(updater, "working", "I know."))

    reply = AgentTestHarness(agent_of(doing(work))).send("x")
    assert (reply.state, [one.text() for one in reply.task.history]) == (TaskState.COMPLETED, ["x", "I know."])


def status(updater: TaskUpdater, state: str, said: str) -> Any:
    fields: Any = {"final": False} if IS_0_3 else {}
    return types.TaskStatusUpdateEvent(
        task_id=updater.task_id,
        context_id=updater.context_id,
        status=types.TaskStatus(state=state_of(state), message=message(updater, text(said))),
        **fields,
    )


def test_an_artifact_s_chunks_are_those_of_the_executor() -> None:
    async def work(_: Any, updater: TaskUpdater) -> None:
        for said, flags in (
            ("a", {}),
            ("b", {"append": True}),
            ("c", {"append": True, "last_chunk": True}),
        ):
            await updater.add_artifact([text(said)], "1", "whole", **flags)
            await asyncio.sleep(5)
        await updater.add_artifact([text("d")], "2", "open")
        await updater.add_artifact([], "2", "open", append=True)
        await asyncio.sleep(5)
        await updater.add_artifact([], "2", "open", append=True, last_chunk=True)

    harness = AgentTestHarness(agent_of(doing(work)))
    task_id = harness.send("x").task.id
    assert chunks_of(harness, task_id, "whole") == [("a", False, False), ("b", True, False), ("c", True, True)]
    assert chunks_of(harness, task_id, "open") == [("d", False, False), ("", True, True)]


def test_an_artifact_keeps_what_describes_it() -> None:
    async def work(_: Any, updater: TaskUpdater) -> None:
        artifact = types.Artifact(
            artifact_id="1",
            name="note",
            description="A note.",
            parts=[text("a")],
            metadata={"kind": "draft"},
            extensions=["https://example.com/x"],
        )
        event = types.TaskArtifactUpdateEvent(
            task_id=updater.task_id, context_id=updater.context_id, artifact=artifact, last_chunk=True
        )
        await updater.event_queue.enqueue_event(event)

    note = AgentTestHarness(agent_of(doing(work))).send("x").artifacts["note"]
    assert (note.description, note.metadata, note.extensions) == (
        "A note.",
        {"kind": "draft"},
        ("https://example.com/x",),
    )


@pytest.mark.parametrize(
    ("state", "ended"), [("completed", "completed"), ("failed", "failed"), ("working", "completed")]
)
def test_of_a_task_the_new_artifacts_and_its_end_count(state: str, ended: str) -> None:
    async def work(context: Any, updater: TaskUpdater) -> None:
        await updater.add_artifact([text("a")], "1", "known")
        await asyncio.sleep(5)
        task = types.Task(
            id=context.task_id,
            context_id=context.context_id,
            status=types.TaskStatus(state=state_of(state), message=message(updater, text("Said."))),
            artifacts=[
                types.Artifact(artifact_id="1", name="known", parts=[text("other")]),
                types.Artifact(artifact_id="2", name="new", parts=[text("b"), data({"n": 1})]),
            ],
        )
        await updater.event_queue.enqueue_event(task)

    harness = AgentTestHarness(agent_of(doing(work)))
    reply = harness.send("x")
    assert (reply.state, reply.said) == (ended, "" if state == "working" else "Said.")
    assert chunks_of(harness, reply.task.id, "known") == [("a", False, False)]
    assert chunks_of(harness, reply.task.id, "new") == [("b", False, True), ({"n": 1}, False, True)]


def test_the_artifacts_of_a_task_are_sent_anew_by_a_turn_that_runs_again() -> None:
    tries: list[int] = []

    async def work(context: Any, updater: TaskUpdater) -> None:
        tries.append(1)
        artifact = types.Artifact(artifact_id="1", name="note", parts=[text(f"try {len(tries)}")])
        status = types.TaskStatus(state=state_of("working"))
        task = types.Task(id=context.task_id, context_id=context.context_id, status=status, artifacts=[artifact])
        await updater.event_queue.enqueue_event(task)
        await asyncio.sleep(2000 if len(tries) == 1 else 1)

    assert AgentTestHarness(agent_of(doing(work))).send("x").text("note") == "try 2"


# ---- Cards


def test_a_card_with_few_fields_makes_an_agent_with_defaults() -> None:
    card = types.AgentCard(
        name="Tailor",
        description="",
        version="1",
        skills=[types.AgentSkill(id="s", name="Sew", description="Sews.", tags=[])],
        default_input_modes=[],
        default_output_modes=[],
        capabilities=types.AgentCapabilities(),
        **({"url": "https://example.com"} if IS_0_3 else {}),
    )
    made = from_executor(Doing, card, id="tailor", description="Sews.")
    plain = from_executor(Doing, id="tailor", name="Tailor", description="Sews.", version="1", skills=made.skills)
    assert made.skills == (Skill("s", "Sew", "Sews.", ()),)
    assert made.extensions == ()
    assert (made.name, made.description, made.input_modes, made.output_modes) == (
        "Tailor",
        "Sews.",
        plain.input_modes,
        plain.output_modes,
    )


class Doing(AgentExecutor):
    """Does nothing."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        pass

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        pass
