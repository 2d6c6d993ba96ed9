"""Mirrors: a message goes to a remote agent once, and its task comes back as it goes on, whatever dies meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from threading import Event, Thread
from threading import enumerate as enumerate_threads
from typing import Any

import pytest

from a2a_serverless import mirror
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.domain.called_task import BOUNDS
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.progress import METADATA_KEY, percent_of
from a2a_serverless.engine.loop import play
from a2a_serverless.engine.run import run
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Task, TaskState
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.tasks import send
from a2a_serverless.testing.simulated_loop import START
from tests.adapters.strangers import Line, serve
from tests.engine.mirrored import LINES, RemoteAgent, chunk, said, status, world_of
from tests.world import HOUR_MS, ME, World

DEADLINE_S = 30
FIVE = "0\n1\n2\n3\n4\n"


def done(world: World, text: str = "count", **fields: str) -> Task:
    task = world.send(text, agent="far", push=False, **fields)
    world.settle()
    return world.get(task.id, "far")


def word(task: Task) -> str:
    return task.status.message.text() if task.status.message else ""


def progress(world: World, task: Task) -> list[str]:
    events = [event for event in world.events(task.id) if isinstance(event, StatusEvent)]
    return [event.message.text() for event in events if event.message and event.state is TaskState.WORKING]


def chunks(world: World, task: Task) -> list[str]:
    return [event.artifact.text() for event in world.events(task.id) if isinstance(event, ArtifactEvent)]


@pytest.mark.parametrize("streaming", [True, False])
def test_a_task_comes_back_with_its_artifacts_and_its_last_word(*, streaming: bool) -> None:
    remote = RemoteAgent(streaming=streaming)
    task = done(world_of(remote))
    assert task.status.state is TaskState.COMPLETED
    assert word(task) == "Counted"
    assert {artifact.name: artifact.text() for artifact in task.artifacts} == {"lines": FIVE}
    assert len(remote.tasks) == len(remote.sent) == 1


def test_progress_comes_as_it_streams_and_a_chunk_is_marked_as_the_last() -> None:
    world = world_of(RemoteAgent())
    task = done(world)
    assert progress(world, task) == ["Counting"]
    events = [event for event in world.events(task.id) if isinstance(event, ArtifactEvent)]
    assert "".join(event.artifact.text() for event in events) == FIVE
    assert [event.last_chunk for event in events][-1]


def test_a_remote_task_that_does_not_stream_is_looked_at_with_growing_pauses_and_nothing_runs_between() -> None:
    remote = RemoteAgent(streaming=False, event_ms=60_000)
    world = world_of(remote)
    task = done(world)
    assert word(task) == "Counted"
    assert chunks(world, task) == ["0\n", "1\n", "2\n", "3\n", "4\n"]
    assert remote.asked.count("GetTask") < 30


@pytest.mark.parametrize("after", [1, 2, 3, 5, 7])
def test_a_stream_that_breaks_is_attached_to_again_and_nothing_comes_twice(after: int) -> None:
    remote = RemoteAgent(breaks_after=after)
    world = world_of(remote)
    task = done(world)
    assert "".join(chunks(world, task)) == FIVE
    assert (word(task), len(remote.tasks), len(remote.sent)) == ("Counted", 1, 1)
    assert progress(world, task) == ["Counting"]


def test_a_remote_agent_that_would_store_chunks_twice_is_looked_at_when_its_stream_has_broken() -> None:
    """As the official server of 0.3 in Python does."""
    remote = RemoteAgent(breaks_after=3)
    agent = remote.mirror()
    assert agent.remote
    world = world_of(remote, agent=replace(agent, remote=replace(agent.remote, subscribes=False)))
    assert word(done(world)) == "Counted"
    assert "SubscribeToTask" not in remote.asked


def test_a_remote_agent_that_refuses_subscriptions_is_looked_at() -> None:
    remote = RemoteAgent(breaks_after=3)
    remote.refuses["SubscribeToTask"] = {"error": {"code": -32004, "message": "Not here"}}
    world = world_of(remote)
    task = done(world)
    assert "".join(chunks(world, task)) == FIVE
    assert word(task) == "Counted"


def test_an_artifact_that_the_remote_agent_rewrites_meanwhile_is_rewritten() -> None:
    remote = RemoteAgent(
        script=(status("working"), chunk("a", "draft"), chunk("a", "final", append=False), status("completed")),
        streaming=False,
        event_ms=30_000,
    )
    world = world_of(remote)
    task = done(world)
    assert [artifact.text() for artifact in task.artifacts] == ["final"]


def test_a_mirror_sends_the_whole_message_to_the_remote_agent() -> None:
    remote = RemoteAgent()
    world = world_of(remote)
    request = world.request("words", push=False)
    parts = (Part(text="words", metadata={"p": 1}), Part(data={"n": 1}), Part(raw="AAAA", media_type="text/plain"))
    message = request.message.model_copy(update={"parts": parts, "metadata": {"m": 1}, "extensions": ("urn:x",)})
    configuration = request.configuration.model_copy(update={"accepted_output_modes": ("text/plain",)})
    changes: dict[str, Any] = {"message": message, "metadata": {"r": 1}, "configuration": configuration}
    extensions = ("urn:x", "urn:a2a-serverless:budget:1")
    context = RequestContext(ME, "far", "1.0", extensions=extensions)
    world.client(lambda: send(world.service, context, request.model_copy(update=changes)))
    world.settle()
    (sent,) = remote.sent
    assert remote.headers[0]["A2A-Extensions"] == "urn:x"
    assert sent["metadata"] == {"r": 1}
    assert sent["configuration"]["acceptedOutputModes"] == ["text/plain"]
    assert sent["message"]["metadata"] == {"m": 1}
    assert sent["message"]["extensions"] == ["urn:x"]
    assert sent["message"]["parts"] == [
        {"text": "words", "metadata": {"p": 1}},
        {"data": {"n": 1}},
        {"raw": "AAAA", "mediaType": "text/plain"},
    ]


def test_an_artifact_keeps_its_fields_and_its_id() -> None:
    fields: dict[str, Any] = {"description": "d", "metadata": {"a": 1}, "extensions": ["urn:x"]}
    remote = RemoteAgent(script=(status("working"), chunk("a", {"data": {"n": 1}}, **fields), status("completed")))
    (artifact,) = done(world_of(remote)).artifacts
    parts = (Part(data={"n": 1}),)
    expected = Artifact(
        artifact_id="a", name="a", parts=parts, description="d", metadata={"a": 1}, extensions=("urn:x",)
    )
    assert artifact == expected


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("state", ["input-required", "auth-required"])
def test_a_question_comes_with_its_parts_and_the_answer_goes_to_the_remote_task(state: str, *, streaming: bool) -> None:
    question = said("Which colour?", metadata={"form": "f"})
    question["parts"].append({"data": {"n": 1}})
    script = (status("working"), status(state, question), chunk("picture", "red", last=True), status("completed"))
    remote = RemoteAgent(script=script, streaming=streaming)
    world = world_of(remote)
    task = done(world)
    assert task.status.state.value == state
    assert task.status.message
    assert task.status.message.parts == (Part(text="Which colour?"), Part(data={"n": 1}))
    assert task.status.message.metadata == {"form": "f"}
    request = world.request("red", push=False, task_id=task.id, context_id=task.context_id)
    answer = request.message.model_copy(update={"metadata": {"m": 2}})
    world.sent(request.model_copy(update={"message": answer}), "far")
    world.settle()
    ended = world.get(task.id, "far")
    assert ended.status.state is TaskState.COMPLETED
    assert [artifact.text() for artifact in ended.artifacts] == ["red"]
    (_, second) = remote.sent
    assert (second["message"]["taskId"], second["message"]["contextId"]) == ("their-1", remote.tasks["their-1"].context)
    assert second["message"]["metadata"] == {"m": 2}
    assert second["message"]["parts"] == [{"text": "red"}]


def test_several_questions_are_each_answered_once() -> None:
    script = (
        status("working"),
        status("input-required", said("one?")),
        status("input-required", said("two?")),
        status("completed", said("done")),
    )
    remote = RemoteAgent(script=script)
    world = world_of(remote)
    task = done(world)
    for text in ("1", "2"):
        world.send(text, agent="far", push=False, task_id=task.id, context_id=task.context_id)
        world.settle()
    assert word(world.get(task.id, "far")) == "done"
    assert [one["message"]["parts"][0]["text"] for one in remote.sent] == ["count", "1", "2"]


def test_a_remote_task_that_goes_on_by_itself_after_a_sign_in_may_refuse_the_answer() -> None:
    remote = RemoteAgent(script=(status("working"), status("auth-required", said("Sign in"))))
    world = world_of(remote)
    task = done(world)
    remote.refuses["SendStreamingMessage"] = {"error": {"code": -32603, "message": "It is in progress"}}
    world.send("done", agent="far", push=False, task_id=task.id, context_id=task.context_id)
    world.wait(10_000)
    assert world.get(task.id, "far").status.state is TaskState.WORKING
    remote.tasks["their-1"].state = status("completed", said("Welcome"))["status"]
    world.settle()
    assert word(world.get(task.id, "far")) == "Welcome"


@pytest.mark.parametrize("state", ["failed", "rejected", "canceled"])
def test_an_end_comes_back_as_it_is(state: str) -> None:
    task = done(world_of(RemoteAgent(script=(status("working"), status(state, said("Because."))))))
    assert (task.status.state.value, word(task)) == (state, "Because.")


def test_a_message_without_a_task_completes_the_task() -> None:
    task = done(world_of(RemoteAgent(answer=said("Hello"))))
    assert (task.status.state, word(task)) == (TaskState.COMPLETED, "Hello")


def test_a_refusal_fails_the_task_with_its_reason() -> None:
    remote = RemoteAgent(refuses={"SendStreamingMessage": {"error": {"code": -32602, "message": "Too long."}}})
    task = done(world_of(remote))
    assert task.status.state is TaskState.FAILED
    assert "Too long." in word(task)


def test_a_remote_agent_that_has_forgotten_its_task_is_said() -> None:
    remote = RemoteAgent(streaming=False, event_ms=60_000)
    world = world_of(remote)
    task = world.send("count", agent="far", push=False)
    world.wait(5_000)
    remote.forgets = True
    world.settle()
    ended = world.get(task.id, "far")
    assert ended.status.state is TaskState.FAILED
    assert "does not know the task any more" in word(ended)


def test_a_remote_agent_that_forgets_a_task_once_its_stream_has_ended_has_told_enough() -> None:
    task = done(world_of(RemoteAgent(forgets=True)))
    assert (task.status.state, word(task)) == (TaskState.COMPLETED, "Counted")
    assert [artifact.text() for artifact in task.artifacts] == [FIVE]


def test_a_remote_task_of_which_nothing_is_heard_is_canceled_and_said() -> None:
    remote = RemoteAgent(script=(status("working", said("Thinking")),), streaming=False)
    world = world_of(remote, silence_s=7200)
    began = world.now
    task = done(world)
    assert task.status.state is TaskState.FAILED
    assert "Nothing was heard" in word(task)
    assert 2 * HOUR_MS <= task.status.timestamp - began < 2.1 * HOUR_MS
    assert remote.canceled == ["their-1"]


@pytest.mark.parametrize("streaming", [True, False])
def test_percent_beside_the_same_words_is_progress(*, streaming: bool) -> None:
    steps = [said("Working", f"m-{n}", metadata={METADATA_KEY: n}) for n in (10, 20, 30)]
    script = (status("working"), *(status("working", step) for step in steps), status("completed"))
    world = world_of(RemoteAgent(script=script, streaming=streaming, event_ms=60_000))
    task = done(world)
    events = [event for event in world.events(task.id) if isinstance(event, StatusEvent) and event.message]
    percents = [percent_of(event.message.metadata) for event in events if event.message]
    assert percents[-1] == 30
    assert percents == [10, 20, 30] or streaming, "progress of one moment in a stream is joined"


@pytest.mark.parametrize("ahead_ms", [0, 9 * HOUR_MS])
def test_the_same_words_with_another_id_at_each_look_are_shown_once_in_all_runs(ahead_ms: int) -> None:
    words = status("working", said("Thinking"), at=START + ahead_ms)
    remote = RemoteAgent(script=(words,), streaming=False)
    numbers, reply = count(), remote.reply

    def with_new_ids(method: str, params: dict[str, Any]) -> Any:
        for task in remote.tasks.values():
            if "message" in task.state:
                task.state["message"]["messageId"] = f"m-{next(numbers)}"
        return reply(method, params)

    remote.reply = with_new_ids  # type: ignore[method-assign]
    world = world_of(remote, silence_s=7200)
    task = done(world)
    assert progress(world, task) == ["Thinking"]
    assert next(numbers) > 100


def test_the_same_words_later_are_news_and_the_remote_agent_is_not_silent() -> None:
    hours = range(2, 7)
    words = (status("working", said("Thinking", f"m-{n}"), at=START + n * HOUR_MS) for n in hours)
    remote = RemoteAgent(
        script=(status("working"), *words, status("completed", said("Done"))), streaming=False, event_ms=HOUR_MS
    )
    world = world_of(remote, silence_s=7200)
    task = done(world)
    assert (task.status.state, word(task)) == (TaskState.COMPLETED, "Done")
    assert progress(world, task) == ["Thinking"] * len(hours)


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("kind", ["artifacts", "bytes", "events"])
def test_of_a_remote_task_no_more_is_taken_than_its_bounds_allow(kind: str, *, streaming: bool) -> None:
    chunks_of = {
        "artifacts": [chunk(f"a{number}", "text") for number in range(50)],
        "bytes": [chunk("a", "x" * 1000, {"raw": "AAAA"}) for _ in range(50)],
        "events": [status("working", said(f"Step {number}")) for number in range(50)],
    }
    script = (status("working"), *chunks_of[kind], status("completed"))
    remote = RemoteAgent(script=script, streaming=streaming, event_ms=60_000)
    remote.on_item = lambda: world.scheduler.sleep(1_000)
    world = world_of(remote)
    bounds = BOUNDS._replace(**{kind: {"artifacts": 10, "bytes": 10_000, "events": 10}[kind]})
    world.engine = replace(world.engine, registry=replace(world.engine.registry, bounds=bounds))
    task = done(world)
    assert task.status.state is TaskState.FAILED
    assert f"has more than {getattr(bounds, kind)} {kind}" in word(task)
    assert remote.canceled == ["their-1"]
    assert len(world.events(task.id)) <= 16
    assert len(task.artifacts) <= 10


def test_a_remote_task_that_outlives_ours_is_canceled_and_the_reason_is_said() -> None:
    remote = RemoteAgent(script=(status("working"),), streaming=False)
    world = world_of(remote, silence_s=100_000)
    world.service = world.service._replace(life=world.service.life._replace(max_life_ms=2 * HOUR_MS))
    task = done(world)
    assert (task.status.state, word(task)) == (
        TaskState.CANCELED,
        "It had not ended before the end of this task's life.",
    )
    assert remote.canceled == ["their-1"]


def test_a_cancel_while_the_task_is_suspended_cancels_the_remote_task() -> None:
    remote = RemoteAgent(streaming=False, event_ms=HOUR_MS)
    world = world_of(remote)
    task = world.send("count", agent="far", push=False)
    world.wait(30_000)
    assert not world.table.read_head(ME.key(task.id)).head.lease_until
    world.cancel(task.id, "far")
    world.wait(60_000)
    assert remote.canceled == ["their-1"]
    assert world.get(task.id, "far").status.state is TaskState.CANCELED


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
ITEM = {"jsonrpc": "2.0", "id": 1, "result": {"task": {"id": "t", "contextId": "c", **status("working")}}}


@pytest.mark.enable_socket
@pytest.mark.parametrize("answer", [b"", HEAD, HEAD + b"data: %b\n\n" % json.dumps(ITEM).encode()])
def test_a_cancel_ends_the_reading_of_a_silent_stream_and_leaves_no_thread_and_no_connection(answer: bytes) -> None:
    is_read, is_closed, is_canceled = Event(), Event(), Event()

    def tell(line: Line) -> None:
        if b"CancelTask" in line.read_request():
            is_canceled.set()
            line.write(b"HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n")
            return
        line.write(answer)
        is_read.set()
        line.wait_for_close()
        is_closed.set()

    with serve(tell) as peer, played(peer.port) as (world, task, worker):
        assert is_read.wait(DEADLINE_S)
        world.cancel(task.id, "far")
        assert is_closed.wait(DEADLINE_S)
        worker.join(DEADLINE_S)
        assert is_canceled.is_set() == (b"data:" in answer)


@pytest.mark.enable_socket
def test_a_remote_task_whose_id_comes_after_the_cancel_is_canceled() -> None:
    is_read, is_over, is_canceled = Event(), Event(), Event()

    def tell(line: Line) -> None:
        if b"CancelTask" in line.read_request():
            is_canceled.set()
            return
        is_read.set()
        assert is_over.wait(DEADLINE_S)
        line.write(HEAD + b"data: %b\n\n" % json.dumps(ITEM).encode())
        line.wait_for_close()

    with serve(tell) as peer, played(peer.port) as (world, task, _):
        assert is_read.wait(DEADLINE_S)
        world.cancel(task.id, "far")
        is_over.set()
        assert is_canceled.wait(DEADLINE_S)


@contextmanager
def played(port: int) -> Iterator[tuple[World, Task, Thread]]:
    """A run of a task of the mirror of a peer; no thread is left of it."""
    url = f"http://127.0.0.1:{port}/"
    interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    agent = mirror(url, card={**RemoteAgent().card(), "supportedInterfaces": [interface]}, id="far")
    world = World([agent])
    registry = replace(world.registry, remote_agents=A2ARemoteAgents({}, agents={"far": agent}))
    engine, before = replace(world.engine, registry=registry), {*enumerate_threads()}
    task = world.send("count", agent="far", push=False)
    worker = Thread(target=lambda: play(run(engine, ME.key(task.id), lambda: 900_000)))
    worker.start()
    yield world, task, worker
    worker.join(DEADLINE_S)
    readers = [thread for thread in enumerate_threads() if thread.name.startswith("agent_")]
    for thread in readers:
        thread.join(DEADLINE_S)
    assert not [thread for thread in (worker, *readers) if thread.is_alive() and thread not in before]


def test_a_remote_agent_that_cannot_cancel_is_left() -> None:
    remote = RemoteAgent(streaming=False, event_ms=HOUR_MS)
    remote.refuses["CancelTask"] = {"error": {"code": -32004, "message": "No"}}
    world = world_of(remote)
    task = world.send("count", agent="far", push=False)
    world.wait(30_000)
    world.cancel(task.id, "far")
    world.settle()
    assert world.get(task.id, "far").status.state is TaskState.CANCELED
    assert remote.asked.count("CancelTask") == 1


def test_a_stream_is_left_after_its_time_and_the_task_then_uses_no_compute() -> None:
    script = (status("working"), *(chunk("lines", f"{n}\n") for n in range(50)), status("completed"))
    remote = RemoteAgent(script=script, event_ms=60_000)
    world = world_of(remote, stream_s=0)
    task = done(world)
    assert task.status.state is TaskState.COMPLETED
    assert "SubscribeToTask" not in remote.asked
    assert len(chunks(world, task)) > 10


@pytest.mark.parametrize("chatty", [True, False])
def test_a_stream_that_is_longer_than_many_runs_is_handed_over_from_run_to_run(*, chatty: bool) -> None:
    """Also one that says nothing for minutes: each run that attaches stores that."""
    quiet = [status("working") for _ in range(90)]
    lines = [chunk("lines", f"{n}\n") for n in range(90)]
    remote = RemoteAgent(script=(status("working"), *(lines if chatty else quiet), status("completed", said("Done"))))
    remote.event_ms = HOUR_MS
    world = world_of(remote, stream_s=100_000, silence_s=100_000)

    def pass_five_seconds() -> None:
        world.now += 5_000

    remote.on_item, world.run_ms = pass_five_seconds, 60_000
    task = done(world)
    assert (task.status.state, word(task)) == (TaskState.COMPLETED, "Done")
    assert remote.asked.count("SubscribeToTask") > 5
    assert "".join(chunks(world, task)) == ("".join(f"{n}\n" for n in range(90)) if chatty else "")
    assert len(remote.sent) == 1


def test_a_context_of_ours_has_a_name_at_the_remote_agent_that_no_other_owner_can_choose() -> None:
    remote = RemoteAgent()
    world = world_of(remote)
    first = done(world)
    done(world, context_id=first.context_id)
    contexts = [one["message"]["contextId"] for one in remote.sent]
    assert contexts[0] == contexts[1] != first.context_id


def test_a_webhook_that_is_refused_is_done_without() -> None:
    remote = RemoteAgent(push=True)
    answers = remote.reply

    def refuse(method: str, params: dict[str, Any]) -> Any:
        if params.get("configuration", {}).get("taskPushNotificationConfig"):
            return {"error": {"code": -32003, "message": "No webhooks"}}
        return answers(method, params)

    remote.reply = refuse  # type: ignore[method-assign]
    assert word(done(world_of(remote))) == "Counted"
    assert len(remote.tasks) == 1


def test_a_message_is_a_message_of_ours() -> None:
    task = done(world_of(RemoteAgent(script=LINES)))
    message = task.status.message
    assert isinstance(message, Message)
    assert (message.task_id, message.context_id) == (task.id, task.context_id)
