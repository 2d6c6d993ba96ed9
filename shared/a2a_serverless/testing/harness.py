"""Runs agents in unit tests: the engine of a deployment, with an in-memory store, simulated time and no AWS.

    harness = AgentTestHarness(hello)
    reply = harness.send("Ada")
    assert reply.said == "Hello, Ada!"

Simulated time moves only when everything waits, so a test of an agent that sleeps for an hour takes no time. It does
not move while threads of the agent or its libraries are running, nor while the agent waits for real input: for a
server, a pipe or another process. If nothing can end what the agent waits for, ``Deadlock`` is raised.

The harness is the client: its requests, those of agents to each other, and webhooks go through the api of a deployment.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from a2a_serverless.adapters.agent_secrets import secrets_in_environment
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.adapters.tracebacks import format_traceback
from a2a_serverless.client import Client, ClientRequest
from a2a_serverless.client.http_json import error_in
from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.agent import refuse_single
from a2a_serverless.domain.agent_errors import StepConflict
from a2a_serverless.domain.decisions import LeaseLost, hand_over
from a2a_serverless.domain.model import MINUTE_MS, Principal, TaskKey
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.domain.publications import card_name
from a2a_serverless.domain.queue_messages import TickMessage
from a2a_serverless.domain.states import INTERRUPTED
from a2a_serverless.engine.artifacts import make_parts
from a2a_serverless.engine.calls import AgentRegistry
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.engine.lease import MARGIN_MS
from a2a_serverless.engine.observer import RunObserver
from a2a_serverless.engine.task_files import TaskFiles
from a2a_serverless.http.api import Api
from a2a_serverless.protocol import peers
from a2a_serverless.protocol.additions import RetryRequest
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.protocol.strict_json import ANSWER_LIMITS, loads
from a2a_serverless.protocol.v1 import Message, Role, SendMessageConfiguration, SendMessageRequest, Task
from a2a_serverless.services.publish import CardPublisher, card_of, publish
from a2a_serverless.services.task_changes import update_head
from a2a_serverless.services.ticks import handle_tick, message_id_of
from a2a_serverless.services.timelines import read_timeline
from a2a_serverless.testing.agent_check import check_agents
from a2a_serverless.testing.deployment import BASE_URL, LIFE, Adapters, format_failure
from a2a_serverless.testing.in_process_http import InProcessHttp, NamedCallers, name_caller
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from a2a_serverless.testing.rehearsal import Surroundings, read_unfinished, rehearse_task
from a2a_serverless.testing.replay import Replay, RunEnded
from a2a_serverless.testing.replay_choice import is_replaying
from a2a_serverless.testing.replies import Reply
from a2a_serverless.testing.schedules import schedules_of, ticks
from a2a_serverless.testing.simulated_deployment import Counter, SimulatedClock, SimulatedDeployment
from a2a_serverless.testing.simulated_loop import IO_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.task_context import Content
    from a2a_serverless.domain.timeline import Span
    from a2a_serverless.domain.waits import OpenWait
    from a2a_serverless.protocol.v1 import Part
    from a2a_serverless.store.items import TaskEntry
    from a2a_serverless.testing.rehearsal_report import Rehearsal

CLIENT: Final = Principal("tenant", "client")
MOST_LISTED: Final = 1000
JWKS_MAX_AGE_S: Final = 3600


class AgentTestHarness(SimulatedDeployment):
    """A deployment of ``agents`` in memory. Messages without ``to`` go to the first agent.

    ``files`` are the files on the simulated web, by URL. ``now`` is the simulated time (ms). ``run_ms`` is the
    platform's time limit for one run. ``runs`` lists the runs as (task id, start ms, end ms). There is one worker, so
    runs follow one another. The client has every scope, no quota, and names the extensions that an agent requires.

    Each task is played in many runs, a new run after each stored act, as if the process died there. With
    ``replay=False`` a run goes on until its task ends or waits; without the option, a mark of the test decides:
    ``@pytest.mark.replay(False)``.
    """

    def __init__(
        self,
        *agents: Agent,
        files: Mapping[str, bytes] | None = None,
        io_s: float = IO_S,
        replay: bool | None = None,
    ) -> None:
        self.runs: list[tuple[str, int, int]] = []
        self._replays: dict[str, Replay] | None = {} if is_replaying(replay) else None
        self._errors: dict[str, BaseException] = {}
        self._first = agents[0].id
        check_agents(agents)
        web = files or {}
        clock = SimulatedClock(self)
        self._http = InProcessHttp(BASE_URL, self._make_api)
        remote_agents = self._make_remote_agents({agent.id: agent for agent in agents})
        adapters = Adapters(clock=clock, ids=Counter(), sender=self._http, remote_agents=remote_agents)
        super().__init__(agents, adapters, io_s=io_s)
        self.engine = replace(
            self.engine,
            files=TaskFiles(None, lambda url: Outcome(status=200 if url in web else 404, body=web.get(url, b""))),
            on_error=self._note_error,
            observe=self._observe,
        )
        self.service = self.service._replace(blocking_ms=0)
        self.deploy()

    def deploy(self, *agents: Agent) -> None:
        """Replaces agents by their new versions, as a deployment does: the next run of a task uses the new code."""
        check_agents(agents)
        self.agents.update({agent.id: agent for agent in agents})
        self.registry = AgentRegistry(self._make_remote_agents(self.agents), self.ids, BASE_URL)
        self.engine = replace(self.engine, registry=self.registry)
        inline_runner = _InlineRunner(self.engine, self.play, play_run=self._play_run)
        self.service = self.service._replace(inline_runner=inline_runner.for_agent)
        if agents:
            for replay in (self._replays or {}).values():
                replay.forget()
        publisher = CardPublisher(self.table, self.clock, self.agents, BASE_URL)
        for agent in self.agents.values():
            publish(publisher, card_name(agent.id), as_json(card_of(agent, BASE_URL, {})))

    def _make_api(self) -> Api:
        return Api(self.service, self.agents, NamedCallers(), MemoryCallbackVerifier(), JWKS_MAX_AGE_S)

    def _make_remote_agents(self, agents: Mapping[str, Agent]) -> A2ARemoteAgents:
        return A2ARemoteAgents(
            {name: f"{BASE_URL}/{name}" for name in agents},
            service_tokens=lambda caller: name_caller(caller._replace(is_agent=True)),
            transport=self._http.open,
            agents=agents,
            read_secret=secrets_in_environment(os.environ),
        )

    def _client(self, agent: str | None, principal: Principal = CLIENT) -> Client:
        name = agent or self._first
        extensions = self.agents[name].extensions if name in self.agents else ()
        client = Client(f"{BASE_URL}/{quote(name, safe='')}", self._http.open, name_caller(Caller(principal)))
        return client.with_extensions(*(extension.uri for extension in extensions if extension.required))

    def send(
        self,
        content: Content | Sequence[Part],
        *,
        to: str | None = None,
        context_id: str | None = None,
        task_id: str | None = None,
        references: Sequence[str] = (),
        until_question: bool = False,
    ) -> Reply:
        """Sends a message to the agent ``to`` and runs the deployment until no work is left.

        ``task_id`` answers a task's question, ``context_id`` continues a conversation, ``references`` are task ids.
        Time goes on while a question waits, past its deadline if it has one. With ``until_question`` it stops when the
        run that asks has ended. Raises A2AError for a message that a deployment refuses.
        """
        task = self.begin(content, to=to, context_id=context_id, task_id=task_id, references=references)
        if isinstance(task, Message):
            return Reply(task)
        key = CLIENT.key(task.id)
        self._settle(lambda: until_question and self._asks(key))
        return self.reply(task.id, to=to)

    def _asks(self, key: TaskKey) -> bool:
        snapshot = self.table.read_head(key)
        return bool(snapshot and snapshot.head.state in INTERRUPTED)

    def rehearse(self, *agents: Agent) -> list[Rehearsal]:
        """Plays each unfinished task against the code of ``agents``, and returns what ``deploy`` would do to it.

        Without ``agents`` the code is its own. No step works, no agent is called, nothing is written, and the tasks
        stay as they are.
        """
        by_id = {agent.id: agent for agent in agents} or self.agents
        surroundings = Surroundings(
            base_url=BASE_URL,
            read_secret=self.engine.read_secret,
            log=self.table,
            index=self.table,
            prices=self.engine.prices,
        )
        tasks = read_unfinished(self.table, self.table.items, self.table.blobs.get)
        return [rehearse_task(task, by_id[task.head.agent], surroundings) for task in tasks if task.head.agent in by_id]

    def begin(
        self,
        content: Content | Sequence[Part],
        *,
        to: str | None = None,
        context_id: str | None = None,
        task_id: str | None = None,
        references: Sequence[str] = (),
    ) -> Task | Message:
        """Sends a message and returns the immediate response, without running queued work."""
        refuse_single(lambda: "The message", references=references)
        parts = tuple(make_parts("The message", content))
        message = Message(
            message_id=self.ids.new(),
            role=Role.USER,
            parts=parts,
            context_id=context_id,
            task_id=task_id,
            reference_task_ids=tuple(references),
        )
        return self.take(to or self._first, message)

    def take(self, agent: str, message: Message, principal: Principal = CLIENT) -> Task | Message:
        """Sends a message of ``principal`` to ``agent`` and returns the immediate response."""
        configuration = SendMessageConfiguration(return_immediately=True)
        request = SendMessageRequest(message=message, configuration=configuration)
        try:
            return self._client(agent, principal).send(request)
        finally:
            self._raise_difference()

    def reply(self, task_id: str, *, to: str | None = None) -> Reply:
        """The current state of a task."""
        return Reply(self._client(to).get(task_id), self._errors.get(task_id))

    def waits(self, task_id: str) -> tuple[OpenWait, ...]:
        """Why a task is suspended: its first twenty open waits, in the order in which its code came to them."""
        snapshot = self.table.read_head(CLIENT.key(task_id))
        return snapshot.head.open_waits.waits if snapshot else ()

    def spans(self, task_id: str) -> list[Span]:
        """What a task spent its time on: its runs, steps, calls and waits, by their beginning."""
        key = CLIENT.key(task_id)
        snapshot = self.table.read_head(key)
        return read_timeline(self.table, self.table, key, snapshot.head.agent, self.now).spans if snapshot else []

    def tasks(self, context_id: str | None = None) -> list[TaskEntry]:
        """The tasks of a conversation, or all tasks, of all agents, newest first."""
        return list(self.table.list_page(CLIENT, context_id, None, 0, MOST_LISTED)[0])

    def retry(self, task_id: str, *, from_step: str | None = None, to: str | None = None) -> Reply:
        """Retries a failed task from ``from_step``, or from the step that failed, and runs until no work is left.

        Raises A2AError if the task has not failed, or has no such step.
        """
        client, request = self._client(to), RetryRequest(request_id=self.ids.new(), from_step=from_step)
        url = f"{client.url}/tasks/{quote(task_id, safe='')}/retry"
        headers = {"content-type": "application/json", **client.headers}
        with client.transport(ClientRequest(url, headers, request.json_bytes())) as response:
            document = loads(response.body.read(-1), ANSWER_LIMITS)
        if error := error_in("1.0", Operation.GET, response, document):
            raise error
        task = peers.read_task("1.0", document)
        self.settle()
        return self.reply(task.id, to=to)

    def cancel(self, task_id: str, *, to: str | None = None) -> Reply:
        """Cancels a task and runs the deployment until no work is left."""
        self._client(to).cancel(task_id)
        if not self.busy:
            self.settle()
        return self.reply(task_id, to=to)

    def _note_error(self, key: TaskKey, error: BaseException, reference: str) -> None:
        """Stores an agent's error, and prints its traceback: pytest shows it if the test fails."""
        self._errors[key.task] = error
        replay = (self._replays or {}).get(key.task)
        if replay and isinstance(error, StepConflict):
            sys.stderr.write(replay.describe_arguments(str(error)))
        sys.stderr.write(format_failure(key.task, reference, format_traceback(error)))

    def settle(self, until_ms: int | None = None) -> None:
        """Runs until no work is left that needs no client. With ``until_ms`` time passes, and schedules start tasks.

        A task that works on and on ends with its life, seven days; one that waits only if that time passes.
        """
        if until_ms is None:
            self._settle()
            return
        until = self.now + until_ms
        for tick in ticks(schedules_of(self.agents.values()), self.now, until):
            self.wait(tick.at - self.now)
            self.queue.enqueue(_of_client(tick))
        self.wait(until - self.now)

    def tick(self, schedule: str, *, to: str | None = None) -> Reply | None:
        """Plays that a schedule is due at the next minute, and runs the deployment until no work is left.

        Returns None if no task was started, because that of an earlier tick has not ended.
        """
        agent = to or self._first
        due_schedule = next(one for one in self.agents[agent].schedules if one.name == schedule)
        self.now += MINUTE_MS - self.now % MINUTE_MS
        tick = _of_client(TickMessage(due_schedule.key(agent), self.now))
        handle_tick(self.engine, LIFE, tick)
        record = self.table.find_idempotency(tick.key, agent, message_id_of(tick), "tick")
        self.settle()
        return self.reply(record.task, to=agent) if record else None

    def send_event(self, url: str, body: bytes | str = b"", headers: Mapping[str, str] | None = None) -> int:
        """Sends a body to the address of a task's callback, as another system does; returns the HTTP status."""
        content = body.encode() if isinstance(body, str) else body
        with self._http.open(ClientRequest(BASE_URL + urlsplit(url).path, headers or {}, content)) as response:
            return response.status

    def at(self, at: int, action: Callable[[], object]) -> None:
        """Calls ``action`` at the simulated time ``at`` (ms, as ``now``), while agents run and while they wait."""
        self.plans.append((at, action))

    def run(self, key: TaskKey) -> object:
        """Runs a task as a worker does, and notes it in ``runs``."""
        start = self.now
        ending = super().run(key)
        if ending not in {RunOutcome.LEASED, RunOutcome.NOTHING_TO_DO}:
            self.runs.append((key.task, start, self.now))
        return ending

    def _play_run(self, key: TaskKey, remaining_ms: Callable[[], int]) -> object:
        """Plays a run of a task; with replays a run for each act that it stores, and each goes on from the log.

        Raises ReplayDiffers if a run differs from those before.
        """
        nothing: object = RunOutcome.NOTHING_TO_DO
        while True:
            try:
                outcome = super()._play_run(key, remaining_ms)
            except RunEnded:
                self._raise_difference()
                with suppress(LeaseLost):
                    update_head(self.table, key, lambda head: hand_over(head, head.fence, now=self.now))
                nothing = RunOutcome.WAITING  # the act was the beginning of a wait
            else:
                self._report_replay(key)
                return nothing if outcome is RunOutcome.NOTHING_TO_DO else outcome

    def _observe(self, key: TaskKey) -> RunObserver:
        if self._replays is None:
            return RunObserver()
        return self._replays.setdefault(key.task, Replay(key.task)).observe()

    def _raise_difference(self) -> None:
        """Raises the first difference between two runs of a task. An inline agent's has been an answer of the api."""
        for replay in (self._replays or {}).values():
            if replay.difference:
                raise replay.difference

    def _report_replay(self, key: TaskKey) -> None:
        replay = (self._replays or {}).get(key.task)
        snapshot = self.table.read_head(key)
        if replay and replay.acts and snapshot and snapshot.head.is_terminal:
            replay.report()


@dataclass(frozen=True, slots=True, kw_only=True)
class _InlineRunner(EngineInlineRunner):
    """Runs inline agents as the harness runs others."""

    play_run: Callable[[TaskKey, Callable[[], int]], object]

    def run(self, key: TaskKey, time_ms: int) -> None:
        until = self.engine.now() + time_ms
        self.play_run(key, lambda: until - self.engine.now() + MARGIN_MS)


def _of_client(tick: TickMessage) -> TickMessage:
    """The tick, with tasks that belong to the harness's client."""
    return tick._replace(key=CLIENT.key(tick.key.task))
