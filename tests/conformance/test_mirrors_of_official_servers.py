"""Mirrors before the official servers: in both versions, over both bindings, in real time."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless import mirror
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.client import discover, open_request, text_message
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.protocol.v1 import (
    ListTasksRequest,
    Part,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskState,
)
from tests.conformance.live import serving
from tests.conformance.remotes import ADK, REMOTES, STRANDS, TIMEOUT_S, NoServer, Remote, executions, serving_remote
from tests.faults.plans import At, Count, die
from tests.observed import observed
from tests.world import Mortal, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless import Agent
    from a2a_serverless.client import Client, ClientRequest, ClientResponse
    from tests.faults.plans import Faults

pytestmark = pytest.mark.enable_socket

ENCODES_TWICE: Final = "Go 2.4.0 0.3 HTTP+JSON"
"""It encodes the bytes of a file in base64 twice, and reads none that are encoded once, as 0.3's proto says."""


@pytest.fixture(scope="module", params=REMOTES, ids=str)
def remote(request: pytest.FixtureRequest) -> Iterator[str]:
    """The base URL of the remote agent."""
    remote: Remote = request.param
    try:
        with serving_remote(remote) as url:
            yield url
    except NoServer as why:
        pytest.skip(f"OFFICIAL SERVER NOT RUN: {remote.name}: {why}")


@pytest.fixture(scope="module")
def ours(remote: str) -> Iterator[Client]:
    """A client of the mirror before it."""
    agent = mirror(remote, id="far", card=discover(remote, open_request).document)
    with serving([replace(agent, input_modes=("*/*",))]) as here:
        yield discover(f"{here}/far", observed(here)).client


def asked(text: str, **fields: Any) -> SendMessageRequest:
    message = text_message(text).model_copy(update=fields)
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=True))


def settled(client: Client, request: SendMessageRequest) -> Task:
    """The task once it has ended or waits for its client."""
    task = client.send(request)
    give_up = time.monotonic() + TIMEOUT_S
    while isinstance(task, Task) and task.status.state not in TERMINAL | INTERRUPTED:
        assert time.monotonic() < give_up, task.status
        time.sleep(0.05)
        task = client.get(task.id)
    assert isinstance(task, Task)
    return task


def word(task: Task) -> str:
    return task.status.message.text() if task.status.message else ""


def test_a_stream_comes_through_once_chunk_by_chunk(ours: Client, remote: str) -> None:
    items = list(ours.stream(asked("stream 40")))
    assert items[-1].state is TaskState.COMPLETED
    task_id = items[0].task_id
    assert task_id
    task = ours.get(task_id)
    assert [artifact.text() for artifact in task.artifacts] == ["".join(f"{n}\n" for n in range(40))]
    assert word(task) == "Counted"
    chunks = [item for item in items if hasattr(item.content, "artifact")]
    assert len(chunks) > 2, "they come while the remote agent works"
    assert "Counting" in [message.text() for message in task.history]
    assert executions(remote).count("stream 40") == 1


def test_a_message_is_the_word_of_a_completed_task(ours: Client) -> None:
    task = settled(ours, asked("message Ada"))
    assert (task.status.state, word(task)) == (TaskState.COMPLETED, "Hello, Ada")


@pytest.mark.parametrize(("word_asked", "state"), [("ask", "input-required"), ("auth", "auth-required")])
def test_a_question_and_its_answer_pass(ours: Client, word_asked: str, state: str) -> None:
    task = settled(ours, asked(word_asked))
    assert task.status.state.value == state
    assert task.status.message
    if word_asked == "ask":
        assert task.status.message.data() == {"n": 1}
        assert task.status.message.metadata == {"form": "colours"}
    answered = settled(ours, asked("red", task_id=task.id, context_id=task.context_id, metadata={"m": "2"}))
    assert answered.status.state is TaskState.COMPLETED
    if word(answered) == "Signed in":  # Go's execution goes on by itself, and refuses the answer
        return
    assert word(answered) == '{"m": "2"}'
    (artifact,) = answered.artifacts
    theirs, context = artifact.text().split()
    assert theirs != task.id
    assert context != task.context_id


@pytest.mark.parametrize(("text", "state"), [("fail Too hot", "failed"), ("reject Not me", "rejected")])
def test_an_end_passes_with_its_reason(ours: Client, text: str, state: str) -> None:
    task = settled(ours, asked(text))
    assert (task.status.state.value, word(task)) == (state, text.partition(" ")[2])


def test_parts_and_metadata_pass_both_ways(ours: Client, request: pytest.FixtureRequest) -> None:
    all_parts = (
        Part(text="kinds", metadata={"p": "1"}),
        Part(data={"n": 1.5}),
        Part(raw="AAAA", media_type="image/png", filename="a.png"),
        Part(url="https://files.example.com/b.png", media_type="image/png"),
    )
    parts = all_parts[:2] + all_parts[3:] if ENCODES_TWICE in request.node.nodeid else all_parts
    task = settled(ours, asked("", parts=parts, metadata={"m": "1"}))
    assert task.status.state is TaskState.COMPLETED
    (artifact,) = task.artifacts
    assert artifact.name == "copy"
    assert artifact.metadata == {"seen": {"m": "1"}}
    assert [part.value for part in artifact.parts] == [part.value for part in parts]
    assert {part.media_type for part in artifact.parts[2:]} == {"image/png"}


def test_a_cancel_reaches_the_remote_task(ours: Client, remote: str) -> None:
    before = executions(remote).count("cancel")
    stream = ours.stream(asked("slow"))
    task_id = next(
        item for item in stream if item.state is TaskState.WORKING and item.status and item.status.message
    ).task_id
    assert task_id
    assert ours.cancel(task_id).status.state is TaskState.CANCELED
    stream.close()  # type: ignore[attr-defined]
    give_up = time.monotonic() + TIMEOUT_S
    while executions(remote).count("cancel") == before:
        assert time.monotonic() < give_up
        time.sleep(0.05)


def test_tasks_are_listed_and_the_second_one_continues_the_conversation(ours: Client) -> None:
    first = settled(ours, asked("stream 1"))
    second = settled(ours, asked("stream 2", context_id=first.context_id))
    listed = [task.id for task in ours.tasks(ListTasksRequest(context_id=first.context_id, page_size=50))]
    assert listed == [second.id, first.id]


@pytest.mark.parametrize("remote_agent", [ADK, STRANDS], ids=lambda one: one.name)
def test_the_server_of_a_framework_keeps_the_conversation_and_its_answer_comes_through(remote_agent: Remote) -> None:
    try:
        with serving_remote(remote_agent) as url:
            agent = mirror(url, id="far", card=discover(url, open_request).document)
            with serving([agent]) as here:
                client = discover(f"{here}/far", observed(here)).client
                first = settled(client, asked("one"))
                second = settled(client, asked("two", context_id=first.context_id))
                assert first.artifacts[0].text().strip() == "one"
                assert second.status.state is TaskState.COMPLETED
                assert "two" in second.artifacts[0].text()
                if remote_agent is ADK:
                    assert second.artifacts[0].text() == "one | two", "its session is that of the context"
                    asks = settled(client, asked("buy"))
                    assert asks.status.state is TaskState.INPUT_REQUIRED
                    done = settled(client, asked("yes", task_id=asks.id, context_id=asks.context_id))
                    assert done.status.state is TaskState.COMPLETED
                    assert "yes" in done.artifacts[-1].text()
    except NoServer as why:
        pytest.skip(f"OFFICIAL SERVER NOT RUN: {remote_agent.name}: {why}")


@pytest.mark.parametrize("remote_agent", REMOTES, ids=str)
def test_a_webhook_of_the_remote_agent_resumes_the_task(remote_agent: Remote) -> None:
    """Without it the task would be looked at after an hour."""
    try:
        with serving_remote(remote_agent, "push", "silent") as url:
            agent = mirror(url, id="far", card=discover(url, open_request).document, silence_s=100_000)
            assert agent.remote
            assert agent.remote.push
            with serving([agent]) as here:
                task = settled(discover(f"{here}/far", observed(here)).client, asked("hang 3"))
                assert task.status.state is TaskState.COMPLETED
                assert [artifact.text() for artifact in task.artifacts] == ["late"]
    except NoServer as why:
        pytest.skip(f"OFFICIAL SERVER NOT RUN: {remote_agent.name}: {why}")


def test_a_remote_agent_that_takes_a_webhook_and_does_not_call_it_is_looked_at() -> None:
    """The guard of Go's server, which is on by default, calls no webhook on this machine, and does not say it."""
    remote_agent = next(one for one in REMOTES if str(one) == "Go 2.4.0 1.0 JSONRPC")
    try:
        with serving_remote(remote_agent, "push", "silent", "guarded") as url:
            agent = mirror(url, id="far", card=discover(url, open_request).document, silence_s=100_000)
            with serving([agent]) as here:
                task = settled(discover(f"{here}/far", observed(here)).client, asked("hang 1"))
                assert [artifact.text() for artifact in task.artifacts] == ["late"]
    except NoServer as why:
        pytest.skip(f"OFFICIAL SERVER NOT RUN: {remote_agent.name}: {why}")


def killed(url: str, agent: Agent, text: str, faults: Faults) -> World:
    """Plays a task of the mirror, with faults at the calls of the store, the queue and the remote agent."""
    world = World([agent], faults)
    met = Mortal(faults, world.scheduler)

    @contextmanager
    def transport(call: ClientRequest) -> Iterator[ClientResponse]:
        met.before("remote", call.url)
        with open_request(call) as answer:
            met.after("remote", call.url)
            yield answer

    remote_agents = A2ARemoteAgents({}, transport=transport, agents={"far": agent})
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=remote_agents))
    task = world.send(text, agent="far", push=False)
    world.settle()
    ended = world.client(lambda: world.get(task.id, "far"))
    assert (ended.status.state, word(ended)) == (TaskState.COMPLETED, "Counted"), (url, ended.status)
    assert [artifact.text() for artifact in ended.artifacts] == ["0\n1\n2\n"]
    return world


def test_a_death_at_any_call_executes_nothing_twice(remote: str) -> None:
    """But where the remote agent has the message, and nothing of ours is stored yet."""
    agent, ports = (
        mirror(remote, id="far", card=discover(remote, open_request).document),
        frozenset({"table", "queue", "remote"}),
    )
    undisturbed, text = Count(ports), "stream 3"
    killed(remote, agent, text, undisturbed)
    sent = next(number for number, call in enumerate(undisturbed.calls, 1) if call.startswith("remote."))
    for late in (False, True):
        for number in range(1, len(undisturbed.calls) + 1):
            before = executions(remote).count(text)
            faults = At(number, late=late, what=die, ports=ports)
            killed(remote, agent, text, faults)
            assert faults.met
            is_unknown = (number, late) in {(sent, True), (sent + 1, False)}
            assert executions(remote).count(text) - before == (2 if is_unknown else 1), (faults.met, late)
