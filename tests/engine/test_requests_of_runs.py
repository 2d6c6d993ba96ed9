"""Requests to called agents end with the run that makes them: no thread and no connection outlives it."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Thread
from threading import enumerate as enumerate_threads
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import mirror
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.engine.loop import play
from a2a_serverless.engine.run import run
from a2a_serverless.protocol.v1 import TaskState
from tests.adapters.strangers import Line, Stranger, serve
from tests.echo import agent_of
from tests.engine.mirrored import RemoteAgent
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.task_context import TaskContext

DEADLINE_S = 30
CLOSE_S = 2
PIECES = 20
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nConnection: close\r\n\r\n"


@dataclass
class Silent:
    """A peer that answers requests to ``silent`` only after ``answers`` is set. Each message to it makes a task."""

    silent: str
    answers: Event = field(default_factory=Event)
    breaks: str = ""
    """The first answer to this method breaks off."""
    waits: bool = False
    """Whether it waits for ``answers``, else for the end of the connection."""
    asked: Event = field(default_factory=Event)
    closed: Event = field(default_factory=Event)
    messages: list[str] = field(default_factory=list)
    canceled: list[str] = field(default_factory=list)

    def script(self, line: Line) -> None:
        _, _, body = line.read_request().partition(b"\r\n\r\n")
        request = json.loads(body or b'{"method": "card"}')
        method, params = request["method"], request.get("params", {})
        if method.startswith("Send"):
            self.messages.append(params["message"]["messageId"])
        if method == "CancelTask":
            self.canceled.append(params["id"])
        if method == self.breaks and len(self.messages) == 1:
            line.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{")
            return
        if method == self.silent and not self.answers.is_set():
            self.asked.set()
            if not (self.waits and self.answers.wait(DEADLINE_S)):
                line.wait_for_close()
                self.closed.set()
                return
        answer = self._answer(method)
        size = len(answer) // PIECES + 1
        for start in range(0, len(answer), size):  # with each piece the client looks whether somebody waits for it
            line.write(answer[start : start + size])
            line.stranger.over.wait(0.005 if self.waits else 0)

    def _answer(self, method: str) -> bytes:
        state = "COMPLETED" if method == "GetTask" else "WORKING"
        task = {"id": f"t{len(self.messages)}", "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}}
        result: Any = {"task": task} if method.startswith("Send") else task
        answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
        if method == "SendStreamingMessage":
            return HEAD % b"text/event-stream" + b"data: %b\n\n" % answer
        return HEAD % b"application/json" + answer


class Scene:
    """A task whose runs make requests to a peer. A run hands over once ``is_late`` is set, and sets ``hands_over``."""

    def __init__(self, peer: Stranger, agent: Agent, *, has_card: bool) -> None:
        self.world, urls = World([agent]), {"far": f"http://127.0.0.1:{peer.port}"}
        remote_agents = A2ARemoteAgents({} if has_card else urls, urls if has_card else {}, agents={agent.id: agent})
        registry = replace(self.world.registry, remote_agents=remote_agents)
        self.world.engine = replace(self.world.engine, registry=registry)
        self.task = self.world.send("go", agent=agent.id, push=False).id
        self.agent, self.is_late, self.hands_over = agent.id, Event(), Event()

    @property
    def key(self) -> TaskKey:
        return ME.key(self.task)

    def start(self) -> Thread:
        worker = Thread(target=lambda: play(run(self.world.engine, self.key, self._remaining_ms)))
        worker.start()
        return worker

    def finish(self) -> None:
        """A later run, to its end."""
        self.is_late.clear()
        self.world.elsewhere(20_000)
        self.start().join(DEADLINE_S)
        assert self.world.get(self.task, self.agent).status.state is TaskState.COMPLETED

    def _remaining_ms(self) -> int:
        if not self.is_late.is_set():
            return 900_000
        self.hands_over.set()
        return 0


@contextmanager
def scene(peer: Stranger, agent: Agent, *, has_card: bool = False) -> Iterator[Scene]:
    """Checks that no thread is left of the runs."""
    before = {*enumerate_threads()}
    yield Scene(peer, agent, has_card=has_card)
    threads = [thread for thread in enumerate_threads() if thread.name.startswith("agent_") and thread not in before]
    for thread in threads:
        thread.join(CLOSE_S)
    assert not [thread for thread in threads if thread.is_alive()]


async def call(task: TaskContext) -> str:
    await task.call("far", "far", "hello")
    return "done"


async def read_card(task: TaskContext) -> str:
    await task.get_card("far")
    return "done"


async def give_up(task: TaskContext) -> str:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(task.call("far", "far", "hello"), 1)
    return "done"


def mirror_of(port: int) -> Agent:
    url = f"http://127.0.0.1:{port}"
    interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return mirror(url, card={**RemoteAgent().card(), "supportedInterfaces": [interface]}, id="far")


@pytest.mark.enable_socket
@pytest.mark.parametrize("end", ["cancel", "hand-over"])
@pytest.mark.parametrize(("silent", "work"), [("SendMessage", call), ("GetTask", call), ("card", read_card)])
def test_a_run_that_ends_closes_its_connection_to_a_silent_peer(silent: str, work: Any, end: str) -> None:
    peer, agent = Silent(silent), agent_of(work, "parent")
    with serve(peer.script) as stranger, scene(stranger, agent, has_card=work is read_card) as played:
        worker = played.start()
        assert peer.asked.wait(DEADLINE_S)
        if end == "cancel":
            played.world.cancel(played.task, "parent")
        else:
            played.is_late.set()
        worker.join(DEADLINE_S)
        assert peer.closed.wait(CLOSE_S)


@pytest.mark.enable_socket
def test_a_function_that_returns_leaves_no_request_behind() -> None:
    peer = Silent("SendMessage")
    with serve(peer.script) as stranger, scene(stranger, agent_of(give_up, "parent")) as played:
        played.start().join(DEADLINE_S)
        assert peer.closed.wait(CLOSE_S)
        assert played.world.get(played.task, "parent").status.state is TaskState.COMPLETED


@pytest.mark.enable_socket
@pytest.mark.parametrize("silent", ["SendMessage", "SendStreamingMessage"])
def test_a_message_whose_answer_comes_while_its_run_hands_over_is_not_sent_again(silent: str) -> None:
    peer = Silent(silent, waits=True)
    with serve(peer.script) as stranger:
        agent = agent_of(call, "parent") if silent == "SendMessage" else mirror_of(stranger.port)
        with scene(stranger, agent) as played:
            peer.answers = played.hands_over
            worker = played.start()
            assert peer.asked.wait(DEADLINE_S)
            played.is_late.set()
            worker.join(DEADLINE_S)
            played.finish()
    assert len(peer.messages) == 1


@pytest.mark.enable_socket
@pytest.mark.parametrize("silent", ["SendMessage", "SendStreamingMessage"])
def test_a_message_whose_answer_does_not_come_is_sent_again_under_its_id(silent: str) -> None:
    peer = Silent(silent)
    with serve(peer.script) as stranger:
        agent = agent_of(call, "parent") if silent == "SendMessage" else mirror_of(stranger.port)
        with scene(stranger, agent) as played:
            worker = played.start()
            assert peer.asked.wait(DEADLINE_S)
            played.is_late.set()
            worker.join(DEADLINE_S)
            assert peer.closed.wait(CLOSE_S)
            peer.answers.set()
            played.finish()
    assert len(peer.messages) == 2
    assert len({*peer.messages}) == 1


@pytest.mark.enable_socket
def test_a_task_whose_id_comes_after_the_cancel_is_canceled() -> None:
    peer = Silent("SendMessage", waits=True)
    with serve(peer.script) as stranger, scene(stranger, agent_of(call, "parent")) as played:
        worker = played.start()
        assert peer.asked.wait(DEADLINE_S)
        played.world.cancel(played.task, "parent")
        peer.answers.set()
        worker.join(DEADLINE_S)
        assert peer.canceled == ["t1"]


@pytest.mark.enable_socket
def test_a_message_whose_answer_breaks_off_is_sent_again_under_its_id() -> None:
    peer = Silent("", breaks="SendMessage")
    with serve(peer.script) as stranger, scene(stranger, agent_of(call, "parent")) as played:
        played.start().join(DEADLINE_S)
        assert played.world.get(played.task, "parent").status.state is TaskState.COMPLETED
    assert len(peer.messages) == 2
    assert len({*peer.messages}) == 1
