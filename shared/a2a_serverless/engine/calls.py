"""Calls to other agents: each is sent once, uses no compute while it waits, and is followed to its end.

A call's message id, callback address and token are stored before it is sent. If the run dies in between, the next run
sends the same message again, and a remote agent that supports message ids creates no second task. A callback only
resumes the task (``services.callbacks`` checks it): the state is then fetched from the remote agent.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from a2a_serverless.domain.agent_errors import AgentCallFailed, RunDiffers, TaskFailed
from a2a_serverless.domain.budgets import METADATA_KEY
from a2a_serverless.domain.call_records import AnsweredQuestion, OpenedCall, SentCall
from a2a_serverless.domain.called_task import (
    BOUNDS,
    REPEATED_MS,
    AskedQuestion,
    CalledTask,
    Source,
    TaskBounds,
    question_parts,
)
from a2a_serverless.domain.decisions import SUSPEND_MS, clear_children
from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.domain.record_names import CARD, TAGS, CallName, call_name, call_of, wait_name
from a2a_serverless.domain.states import RUNNABLE, TERMINAL
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.domain.trace import child_of
from a2a_serverless.domain.waits import WaitKind
from a2a_serverless.engine.endings import NEVER, Wait
from a2a_serverless.engine.loop import create_engine_task
from a2a_serverless.engine.observer import Act, ActKind
from a2a_serverless.engine.scopes import Scope
from a2a_serverless.engine.signals import NeedsWorker
from a2a_serverless.engine.store_guard import run_guarded
from a2a_serverless.engine.task_files import INLINE_FILES, with_parts
from a2a_serverless.ports.agents import AgentUnavailable, TaskForgotten
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.protocol.v1 import (
    Message,
    Role,
    StreamResponse,
    Task,
    TaskPushNotificationConfig,
    stream_response,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.budgets import Budget
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.task_context import MessageContent
    from a2a_serverless.engine.execution import Execution
    from a2a_serverless.engine.task_files import TaskFiles
    from a2a_serverless.ports.agents import RemoteAgents
    from a2a_serverless.ports.system import Ids
    from a2a_serverless.protocol.v1 import Part, StreamContent, TaskStatus
    from a2a_serverless.protocol.v1_card import AgentCard
    from a2a_serverless.store.task_log import TaskLog

Ask: TypeAlias = "Callable[[MessageContent, str, Scope], Awaitable[Message]]"
"""Asks the task's own client: takes the question, a unique name and the call's scope; returns the answer."""
A = TypeVar("A", Task, Message)
T = TypeVar("T")

RETRIES_S: Final = (0.0, 1.0, 5.0)
SHORTEST_PAUSE_MS: Final = 2_000
LONGEST_LOOK_MS: Final = 60_000
FILES_MS: Final = 300_000
CANCEL_S: Final = 0.5
"""So long a run that is over waits for answers."""
HAND_OVER_S: Final = 3.0
"""So long a run that hands over does."""
CLOSE_S: Final = 1.0
"""So long it waits for the threads of requests, which look every half second whether somebody waits for the answer."""
LAST_MS: Final = 300_000
"""This long before the end of its task's life, a call without a limit times out: its agent can still answer then."""

logger = logging.getLogger(__name__)


class TaskCanceled(TaskFailed):
    """The remote agent of a mirror has canceled its task, so the mirror's task ends as canceled, too."""


@dataclass(frozen=True, slots=True)
class AgentRegistry:
    """The agents that can be called, and the base URL at which they reach this deployment.

    Only the worker calls the agents in ``worker_only``: it has the credentials that they require. ``bounds`` are those
    of each task at them.
    """

    remote_agents: RemoteAgents
    ids: Ids
    base_url: str
    worker_only: frozenset[str] = frozenset()
    bounds: TaskBounds = BOUNDS


@dataclass(frozen=True, slots=True)
class CallLimit:
    """How long a call may take, in seconds after the call was made, and after its task was created; and its budget."""

    timeout_s: float | None = None
    deadline_s: float | None = None
    budget: Budget | None = None

    def until(self, called_at: int, task_made_at: int) -> int | None:
        """When the call times out, in ms; None for never."""
        ends = ((called_at, self.timeout_s), (task_made_at, self.deadline_s))
        return min((at + int(seconds * 1000) for at, seconds in ends if seconds is not None), default=None)


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call under way, until ``until`` (ms)."""

    name: CallName
    agent: str
    opened: OpenedCall
    until: int
    ask: Ask
    scope: Scope


def look_pause_ms(waited_ms: int) -> int:
    """The time to wait before the next look at an agent without callbacks: half of the time waited so far."""
    return min(max(SHORTEST_PAUSE_MS, waited_ms // 2), LONGEST_LOOK_MS)


def retry_pause_ms(waited_ms: int, retry_after_s: int) -> int:
    """The time to wait before the next try at an unavailable agent, ``waited_ms`` after the call was made.

    The agent's own wish counts if it is longer, up to an hour. After an hour pauses are a sixtieth of the call's age.
    """
    pause_ms = max(look_pause_ms(waited_ms), waited_ms // 60, 1000 * retry_after_s)
    return min(pause_ms, SUSPEND_MS)


class AgentCalls:
    """The calls of one run."""

    def __init__(self, execution: Execution, registry: AgentRegistry, files: TaskFiles = INLINE_FILES) -> None:
        self._execution, self._registry, self._files = execution, registry, files
        self._session, self._journal, self._endings = execution.session, execution.journal, execution.endings
        self._store_once, self._admit, self._budget = execution.store_once, execution.admit, execution.session.budget
        self._requests, self._is_left = set[asyncio.Task[Any]](), False
        self._remote_agents = registry.remote_agents.for_run(execution.session.trace, self._goes_on)
        self._under_way = 0
        self._without_files = set[CallName]()

    @property
    def _caller(self) -> Caller:
        return self._session.head.caller

    def check_reachable(self, agent: str | None) -> None:
        """Raises NeedsWorker if only the worker can call the agent (None: every agent)."""
        if agent in self._registry.worker_only or (agent is None and self._registry.worker_only):
            raise NeedsWorker

    async def card(self, agent: str, scope: Scope) -> AgentCard:
        """See ``TaskContext.get_card``."""
        from a2a_serverless.protocol.peers import read_card  # only agents that call others need it

        card = await self._read_once(CARD + agent, lambda: as_json(self._remote_agents.card(agent)), scope)
        return read_card(card)

    async def find(self, tags: Sequence[str], scope: Scope) -> list[str]:
        """See ``TaskContext.find_agents``. The agents are read once and stored."""
        from a2a_serverless.protocol.ai_catalog import has_tags  # only agents that look for others need it

        def read() -> Json:
            return {name: [*own] for name, own in self._remote_agents.tags().items()}

        agents: Any = await self._read_once(TAGS, read, scope)
        itself = self._session.head.agent
        return [name for name, own in agents.items() if name != itself and has_tags(own, tags)]

    async def _read_once(self, name: str, read: Callable[[], Json], scope: Scope) -> Json:
        """Another agent's description of itself, or the error. Either is stored, so that a later run gets the same."""
        if name not in self._journal:
            if stand_in := self._session.observer.stand_in(Act(ActKind.CARD, name, is_new=True)):
                return cast("Json", await stand_in)
            await self._endings.start(name, scope)
            try:
                with self._endings.at_work():
                    value = await self._retry(read)
            except AgentCallFailed as failure:
                value = str(failure)
            if name not in self._journal:
                self._store_once(name, value, self._journal.next_number())
        await self._endings.end(self._journal[name].sequence, scope)
        if isinstance(value := self._journal[name].value, str):
            raise AgentCallFailed(value)
        return value

    async def call(
        self, path: str, agent: str, parts: Sequence[Part], limit: CallLimit, ask: Ask, scope: Scope
    ) -> Task | Message:
        """See ``TaskContext.call``. The result or failure is stored, so that a later run gets the same."""
        name, content = call_name(path), self._session.digest([agent, [*parts]])
        record = self._journal.get(name.opened)
        if record and (opened := OpenedCall.of(record.value)).content != content:
            what = f"The call {path!r} was made to another agent, or with other content."
            stored, new = (
                f"the agent {name!r}, content with the digest {digest[:8]}"
                for name, digest in ((opened.agent, opened.content), (agent, content))
            )
            raise RunDiffers(what, path, stored, new)
        if stand_in := self._session.observer.stand_in(Act(ActKind.CALL, path, record is None, content)):
            return cast("Task | Message", await stand_in)
        if ending := self._ending(name):
            # The agent's questions are not asked again: a timer beside the call must not wait for their endings, and go
            # before the call's.
            # tests/engine/test_calls.py: test_a_time_limit_around_a_call_that_has_asked_is_over_in_no_later_run
            self._endings.pass_over(self._waits_of(name))
        else:
            if not record:
                limit = replace(limit, budget=await self._share_budget(path, limit, scope))
            ending = await self._finish_call(name, agent, parts, content, limit, ask, scope)
        await self._endings.end(ending.sequence, scope)
        if isinstance(ending.value, str):
            raise AgentCallFailed(ending.value)
        return _load_answer(ending.value)

    async def _share_budget(self, path: str, limit: CallLimit, scope: Scope) -> Budget:
        """The budget of a new call, once calls under way have left something for it. Raises BudgetExceeded."""

        def ready_at() -> int | None:
            is_ready = self._under_way == 0 or self._budget.share(limit.budget, may_wait=True) is not None
            return self._session.now() if is_ready else None

        await self._admit(path, scope)
        while (share := self._budget.share(limit.budget, may_wait=self._under_way > 0)) is None:
            await self._endings.look(Wait(path, WaitKind.BUDGET, ready_at), scope)
            await self._admit(path, scope)
        return share

    def _count_questions(self, name: CallName) -> int:
        """How many questions of the call's agent are stored."""
        return sum(1 for _ in takewhile(lambda number: name.question(number) in self._journal, count(1)))

    def _waits_of(self, name: CallName) -> list[str]:
        """The names of the stored endings of the waits for answers to the agent's questions."""
        waits = (wait_name(name.answer(number)) for number in range(1, self._count_questions(name) + 1))
        return [wait for wait in waits if wait in self._journal]

    def _ending(self, name: CallName) -> StepResult | None:
        """The stored ending of a call: its answer, or a text that says why there is none."""
        endings = (name.canceled, name.done, name.failed)
        return next((self._journal[ending] for ending in endings if ending in self._journal), None)

    def canceled_calls(self) -> list[CallName]:
        """The calls that earlier runs have canceled, whose tasks may still have to be canceled."""
        calls = ((call_of(name), name) for name in self._journal)
        return [call for call, name in calls if call and name == call.canceled and call.done not in self._journal]

    def cancel(self, path: str) -> bool:
        """Stores that the caller's code has cancelled the call; False if it was not made, or has ended."""
        name = call_name(path)
        if name.opened not in self._journal or self._ending(name):
            return False
        self._store_once(name.canceled, f"The call {path!r} was canceled.", self._journal.next_number())
        opened = OpenedCall.of(self._journal[name.opened].value)
        self._record_span(name, opened.agent, opened, asyncio.CancelledError.__name__)
        return True

    async def cancel_child(self, name: CallName) -> None:
        """Cancels the task of a canceled call, if it is known. An agent that is unavailable is asked again later."""
        record = self._journal.get(name.sent) or self._journal.get(name.told)
        opened = OpenedCall.of(self._journal[name.opened].value)
        if record is None or opened.agent in self._registry.worker_only:
            return
        sent, remote_agents = SentCall.of(record.value), self._agents_for(opened)
        call = PendingCall(name, opened.agent, opened, self._until(CallLimit(), opened.at), _ask_nobody, Scope())
        with suppress(AgentCallFailed):
            await self._ask_agent(call, lambda: remote_agents.cancel(self._caller, sent.agent, sent.task))
            self._store_once(name.done, None)

    async def _finish_call(  # noqa: PLR0913 - a call's
        self, name: CallName, agent: str, parts: Sequence[Part], content: str, limit: CallLimit, ask: Ask, scope: Scope
    ) -> StepResult:
        """Makes the call, or goes on with it. Stores its ending and returns it."""
        opened: OpenedCall | None = None
        self._under_way += 1
        try:
            if name.opened in self._journal:
                await self._endings.start(name.path, scope)
            opened = self._open_call(name, agent, content, limit)
            call = PendingCall(name, agent, opened, self._until(limit, opened.at), ask, scope)
            is_new = name.sent not in self._journal
            sent = await self._send_once(call, parts)
            answer = sent if isinstance(sent, Message) else await self._follow_task(call, sent, is_new=is_new)
        except AgentCallFailed as failure:
            self._store_once(name.failed, str(failure), self._journal.next_number())
            self._record_span(name, agent, opened, type(failure).__name__)
            return self._journal[name.failed]
        finally:
            self._under_way -= 1
        self._store_once(name.done, _dump_answer(answer), self._journal.next_number())
        self._record_span(name, agent, opened)
        return self._journal[name.done]

    def _until(self, limit: CallLimit, called_at: int) -> int:
        """The time (ms) at which a call times out: its limit, or earlier if the task's own life ends before."""
        head = self._session.head
        return min(limit.until(called_at, head.created_at) or NEVER, head.deadline - LAST_MS)

    def _record_span(self, name: CallName, agent: str, opened: OpenedCall | None, error: str = "") -> None:
        """Records the span of a call that is over, under the ids from the call's beginning."""
        session = self._session
        if session.tracer.is_on and opened and opened.trace:
            from a2a_serverless.domain.spans import call_span

            ids, times = (opened.trace, opened.parent), (opened.at, session.now())
            session.tracer.record(call_span(session.head, name.path, agent, *ids, times, error))

    def _agents_for(self, opened: OpenedCall) -> RemoteAgents:
        """The remote agents; the spans of their requests are children of the call's span, if it has one."""
        if not opened.trace:
            return self._remote_agents
        return self._registry.remote_agents.for_run(opened.trace, self._goes_on)

    def _open_call(self, name: CallName, agent: str, content: str, limit: CallLimit) -> OpenedCall:
        """The call's ids and addresses, the same in every run. Raises AgentCallFailed for a new call without time."""
        if record := self._journal.get(name.opened):
            return OpenedCall.of(record.value)
        ids, now = self._registry.ids, self._session.now()
        if now >= self._until(limit, now):
            raise AgentCallFailed(f"There was no time left to call the agent {agent!r}.")
        message, token, url = ids.new(), ids.new(), f"{self._registry.base_url}/callbacks/{ids.new()}"
        trace, address = self._session.new_trace(), self._remote_agents.address(agent)
        parent = self._session.trace if trace else ""
        bounds = limit.budget.bounds if limit.budget else ""
        opened = OpenedCall(agent, content, message, token, now, url, address, trace, parent, bounds or "")
        return OpenedCall.of(self._store_once(name.opened, opened.value))

    async def _send_once(self, call: PendingCall, parts: Sequence[Part]) -> SentCall | Message:
        """Sends the call's message unless that is done; returns the record of the remote task, or the message."""
        if call.name.sent not in self._journal:
            opened, head = call.opened, self._session.head
            if not head.children:
                self._session.mark_children()
            self._session.store_callback(opened.callback, call.name.opened)
            metadata = {METADATA_KEY: opened.budget} if opened.budget else None
            ids = {"message_id": opened.message, "context_id": head.context_id}
            message = Message(role=Role.USER, parts=tuple(parts), metadata=metadata, **ids)
            answer = await self._ask_agent(call, lambda: self._send(call, message))
            if isinstance(answer, Message):
                return answer
        return SentCall.of(self._journal[call.name.sent].value)

    def _send(self, call: PendingCall, message: Message) -> StreamContent:
        """Sends the message and stores the remote task's id, in a thread that a cancel of the run does not interrupt.

        If our task has ended meanwhile, or the call was canceled, it cancels the remote task. If that fails, the cancel
        is repeated when our task is next due, or in its next run.
        """
        answer = self._keep_answer(call, self._post(call, message))
        if not isinstance(answer, Message):
            self._store_sent(call, answer)
        return answer

    def _post(self, call: PendingCall, message: Message) -> StreamContent:
        """Sends the message of the call, or the answer to its agent's question, and returns the agent's answer."""
        return self._agents_for(call.opened).send(self._caller, call.agent, message, callback_of(call.opened))

    def _keep_answer(self, call: PendingCall, answer: StreamContent) -> StreamContent:
        """The answer to a send with its files stored, unless its agent is at work: then the task is read again."""
        try:
            if isinstance(answer, Message):
                return self._keep_files(answer)
            if isinstance(answer, Task) and answer.status.state not in RUNNABLE:
                return self._keep_files(answer)
        except AgentUnavailable:  # a message's files stay links: it is not sent again
            self._without_files.add(call.name)
        return answer

    def _store_sent(self, call: PendingCall, answer: StreamContent) -> None:
        remote_agents, agent, name = self._agents_for(call.opened), call.agent, call.name.sent
        task_id = str(answer.id if isinstance(answer, Task) else answer.task_id)
        if not task_id and not (isinstance(answer, Task) and answer.status.state in TERMINAL):
            raise AgentCallFailed(f"The agent {agent!r} gave its task no id.")
        sent = SentCall(agent, task_id, remote_agents.has_push(agent), _dump_news(answer, CalledTask(task_id)))
        record, is_over = self._session.store_sent_call(name, StepResult("", sent.value))
        self._journal.note(name, record)
        if is_over or call.name.canceled in self._journal:
            with suppress(AgentCallFailed):
                remote_agents.cancel(self._caller, agent, task_id)

    def _keep_files(self, answer: A) -> A:
        """The answer with its large files stored with our task, also files behind links that expire.

        Files for which five minutes are not enough stay as they are. Raises AgentUnavailable.
        """
        until = self._session.now() + FILES_MS

        def keep(part: Part) -> Part:
            return self._files.keep(self._session.key, part) if self._session.now() < until else part

        return cast("A", with_parts(answer, keep))

    async def _follow_task(self, call: PendingCall, sent: SentCall, *, is_new: bool) -> Task:
        """Follows the remote task until it has ended or timed out, and returns it.

        ``is_new`` says that the agent has just answered our message: nothing newer can be read of its end or question.
        """
        remote_agents, agent, task_id = self._agents_for(call.opened), call.agent, sent.task

        def get() -> Task:
            task = remote_agents.get(self._caller, agent, task_id)
            return task if task.status.state in RUNNABLE else self._keep_files(task)

        known = self._recall(call, sent)
        while True:
            wake = self._session.head.wake
            if not (is_new and self._is_told(call, known)):
                await self._read_task(call, known, get)
            if known.is_over:
                return self._result(known)
            if self._session.now() >= call.until:
                with self._endings.at_work():
                    await self._retry(lambda: remote_agents.cancel(self._caller, agent, task_id))
                    self._take(known, await self._retry(get), Source.LOOK)
                    return self._result(known)
            number, is_new = self._open_question(call, known), False
            if number and call.name.answer(number) not in self._journal:
                is_new = await self._answer_question(call, sent, number, known)
            else:
                await self._await_change(call, sent, known, number, wake)

    def _is_told(self, call: PendingCall, known: CalledTask) -> bool:
        """Whether the answer to a send told all that a look could."""
        return known.is_asking or self._is_whole(call, known)

    def _is_whole(self, call: PendingCall, known: CalledTask) -> bool:
        """Whether the task has ended, and what it made is known and stored."""
        return known.is_over and known.has_content and call.name not in self._without_files

    def _result(self, known: CalledTask) -> Task:
        """The task as the call returns it."""
        return known.task

    def _recall(self, call: PendingCall, sent: SentCall) -> CalledTask:
        """What the agent's answers to our messages said of its task, those to earlier runs included."""
        known = CalledTask(sent.task, sent.agent, self._registry.bounds)
        for answer in self._stored_answers(call, sent):
            self._take(known, answer, Source.SEND)
        return known

    def _stored_answers(self, call: PendingCall, sent: SentCall) -> list[StreamContent]:
        answers = [sent.answer]
        while record := self._journal.get(call.name.answer(len(answers))):
            answers.append(AnsweredQuestion.of(record.value).answer)
        return [_load_content(answer) for answer in answers if answer]

    def _take(self, known: CalledTask, item: StreamContent, source: Source) -> None:
        """Takes what the agent says of its task."""
        known.take(item, source)

    async def _read_task(self, call: PendingCall, known: CalledTask, get: Callable[[], Task]) -> None:
        """Looks at the remote task. A look that fails takes back nothing that its agent has said."""
        is_enough = self._is_whole(call, known)
        try:
            if is_enough:
                with self._endings.at_work():
                    task = await self._retry(get)
            else:
                task = await self._ask_agent(call, get)
        except AgentCallFailed as failure:
            is_forgotten = isinstance(failure, TaskForgotten)
            if not (is_enough or (is_forgotten and (known.is_over or known.is_asking))):
                raise
            ids = {"task": self._session.key.task, "agent": call.agent, "reason": str(failure)}
            ids["source"] = str(known.status_source)
            logger.warning("a called agent's task could not be read again; its last answer counts", extra=ids)
        else:
            self._take(known, task, Source.LOOK)
            if known.is_over and (differences := known.differences(task)):
                ids = {"task": self._session.key.task, "agent": call.agent, "reason": ", ".join(differences)}
                logger.warning("a called agent's task does not show what it said; that counts", extra=ids)

    def _open_question(self, call: PendingCall, known: CalledTask) -> int:
        """The number of the question that the newest read shows, which is stored; 0 without a question."""
        name, journal = call.name, self._journal
        number = self._count_questions(name)
        answered = journal.get(name.answer(number)) if number else None
        if known.status is None or not known.is_asking:
            if answered:
                self._store_once(name.left(number), None)
            return 0
        question = AskedQuestion.of(known.status)
        if number:
            until = self._repeats_until(call, number)
            last = AskedQuestion.load(journal[name.question(number)].value)
            # Before the answer an agent of ours may ask the same in a reminder, which is another message.
            # tests/engine/test_calls.py: test_a_childs_reminder_is_no_second_question
            keeps_ids = until is not None and self._agents_for(call.opened).keeps_message_ids(call.agent)
            may_repeat = until is None or self._session.now() < until
            if last.is_same(question, keeps_ids=keeps_ids, may_repeat=may_repeat):
                return number
        self._registry.bounds.check(call.agent, questions=number + 1)
        self._store_once(name.question(number + 1), question.value)
        return number + 1

    def _repeats_until(self, call: PendingCall, number: int) -> int | None:
        """Until when (ms) a question with the same parts is the one of this number; None while it has no answer."""
        record = self._journal.get(call.name.answer(number))
        if record is None:
            return None
        is_left = call.name.left(number) in self._journal
        return 0 if is_left else AnsweredQuestion.of(record.value).at + REPEATED_MS

    async def _await_change(self, call: PendingCall, sent: SentCall, known: CalledTask, number: int, wake: int) -> None:
        """Returns when the remote task has to be read again; ``number`` is the question that it shows."""
        del known
        await self._pause(call, min(self._look_ms(call, sent), self._repeats_ms(call, number)), wake)

    def _look_ms(self, call: PendingCall, sent: SentCall) -> int:
        """How long to wait for a webhook before the next look."""
        origin = call.opened.elsewhere
        # Some accept webhooks that they never deliver. Only a webhook that has come shows that the next ones will.
        # tests/engine/test_webhooks_of_others.py
        is_trusted = sent.push and (not origin or self._session.has_webhook_come(origin))
        return SUSPEND_MS if is_trusted else look_pause_ms(self._session.now() - call.opened.at)

    def _repeats_ms(self, call: PendingCall, number: int) -> int:
        """How long the question still counts as answered, if it only has other marks than the answered one."""
        left_ms = (self._repeats_until(call, number) or 0) - self._session.now() if number else 0
        return left_ms if left_ms > 0 else SUSPEND_MS

    async def _answer_question(self, call: PendingCall, sent: SentCall, number: int, known: CalledTask) -> bool:
        """Asks our own client the remote agent's question, and sends the answer back once. False without an answer."""
        record, task = call.name.answer(number), known.task
        answer = await self._ask_client(call, task.status, record)
        message_id = str(self._store_once(call.name.answer_id(number), self._registry.ids.new()))
        ids = {"context_id": task.context_id or None, "task_id": task.id, "message_id": message_id}
        news = await self._send_answer(call, task.status, answer.model_copy(update=ids))
        stored = CalledTask(sent.task)
        for content in self._stored_answers(call, sent):
            stored.take(content, Source.SEND)
        answered = AnsweredQuestion(message_id, self._session.now(), _dump_news(news, stored) if news else "")
        self._store_once(record, answered.value)
        if news:
            self._take(known, news, Source.SEND)
        return news is not None

    async def _send_answer(self, call: PendingCall, question: TaskStatus, answer: Message) -> StreamContent | None:
        """Sends the answer to the question in the status of the remote task. Returns the agent's answer."""
        del question
        return await self._ask_agent(call, lambda: self._keep_answer(call, self._post(call, answer)))

    async def _ask_client(self, call: PendingCall, status: TaskStatus, name: str) -> Message:
        """The answer of our own client to the question in a remote task's status, as a message without ids."""
        question = question_parts(status) or f"{call.agent} asks for input."
        answer = await call.ask(question, name, call.scope)
        return Message(role=Role.USER, message_id="", parts=answer.parts)

    async def _ask_agent(self, call: PendingCall, request: Callable[[], T]) -> T:
        """The agent's answer. While the agent is unavailable, it is asked again until the call times out.

        The task is suspended in between. Raises AgentCallFailed if the agent refuses or time is over.
        """
        while True:
            wake = self._session.head.wake
            try:
                with self._endings.at_work():
                    return await self._retry(request)
            except AgentUnavailable as failure:
                if (now := self._session.now()) >= call.until:
                    raise
                ids = {"task": self._session.key.task, "agent": call.agent}
                logger.warning("agent unavailable", extra=ids | safe_error_fields(failure))
                pause_ms = retry_pause_ms(now - call.opened.at, failure.retry_after_s)
            await self._pause(call, pause_ms, wake)

    async def _pause(self, call: PendingCall, ms: int, wake: int) -> None:
        """Returns when the task's wake counter differs from ``wake``, after ``ms``, or when the call times out."""
        due_at = min(call.until, self._session.now() + ms)

        def ready_at() -> int | None:
            now = self._session.now()
            return now if self._session.head.wake != wake or now >= due_at else None

        since, until = call.opened.at, call.until
        wait = Wait(call.name.opened, WaitKind.CALL, ready_at, due_at, since=since, until=until)
        await self._endings.look(wait, call.scope)

    async def _retry(self, call: Callable[[], T]) -> T:
        """Makes a request to a remote agent, with up to three tries (see ``RETRIES_S``).

        An agent that refuses, that names a time to come again, or that lets us wait is not tried again at once.
        """
        for pause in RETRIES_S[:-1]:
            await asyncio.sleep(pause)
            try:
                return await self._in_thread(call)
            except AgentUnavailable as failure:
                if failure.is_slow or failure.retry_after_s:
                    raise
        await asyncio.sleep(RETRIES_S[-1])
        return await self._in_thread(call)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        """The result of a call in a thread. If the waiting code is cancelled, the call goes on and the run stays."""

        async def work() -> T:
            with self._endings.at_work():
                return await asyncio.to_thread(run_guarded, call)

        request = create_engine_task(work())
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)
        return await asyncio.shield(request)

    async def leave(self, *, is_handed_over: bool) -> None:
        """Ends the requests that are under way at the end of the run: no thread and no connection outlives it.

        The answer to a message has the id of the agent's task: to cancel it, or for the next run, which sends the
        message again without it. Not all agents know the ids of messages.
        """
        if self._requests:
            await asyncio.wait(self._requests, timeout=HAND_OVER_S if is_handed_over else CANCEL_S)
        self._is_left = True
        if self._requests:
            await asyncio.wait(self._requests, timeout=CLOSE_S)

    def _goes_on(self) -> bool:
        return not self._is_left


async def _ask_nobody(*_: object) -> Message:
    raise AgentCallFailed("A canceled call asks its client nothing.")


def cancel_children(log: TaskLog, remote_agents: RemoteAgents, head: Head, *, now: int) -> None:
    """Cancels the running calls of an ended task, and then marks the head as without calls.

    Raises AgentCallFailed if an agent cannot be reached; the cancel is repeated when the task is next due.
    """
    failure: AgentCallFailed | None = None
    remote_agents = remote_agents.for_run(child_of(head.trace, head.key.task), lambda: True)
    for agent, task_id in _children(log.read_steps(head.key)):
        try:
            remote_agents.cancel(head.caller, agent, task_id)
        except AgentCallFailed as error:
            failure = error
    if failure:
        raise failure
    log.update_head(head, clear_children(head, now=now))


def _children(steps: Mapping[str, StepResult]) -> dict[tuple[str, str], None]:
    """The unfinished calls as (agent, task id). The id comes from the agent's answer, or else its first callback."""
    children: dict[tuple[str, str], None] = {}
    for name, step in steps.items():
        call = call_of(name)
        if call and name in {call.sent, call.told} and call.done not in steps:
            child = SentCall.of(step.value)
            children[child.agent, child.task] = None
    return children


def callback_of(opened: OpenedCall) -> TaskPushNotificationConfig:
    """The webhook for a call. Its URL identifies task and call but reveals neither.

    Its id is the same in all messages of the call, and no client can guess it and replace the webhook.
    """
    return TaskPushNotificationConfig(url=opened.url, id=opened.callback, token=opened.token)


def _dump_answer(answer: Task | Message) -> Json:
    return cast("Json", json.loads(stream_response(answer).json_bytes()))


def _dump_news(content: StreamContent, stored: CalledTask) -> Json:
    """What ``stored`` does not have of an answer to a send, as JSON, if that ends its task or asks a question.

    "" for any other answer: its task is read.
    """
    if isinstance(content, Task) and content.status.state not in RUNNABLE:
        return _dump_answer(stored.only_new(content))
    return ""


def _load_answer(value: Json) -> Task | Message:
    return cast("Task | Message", _load_content(value))


def _load_content(value: Json) -> StreamContent:
    return StreamResponse.model_validate(value).content
