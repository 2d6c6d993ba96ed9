"""The acts of an agent's function in one run: steps, calls to other agents, values, secrets, files, other tasks.

All of them stand on one ``Execution``, which knows none of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from a2a_serverless.domain.agent_errors import AgentCallFailed, SecretNotRead
from a2a_serverless.domain.record_names import call_name, join_path
from a2a_serverless.domain.values import ValueScope
from a2a_serverless.engine.artifacts import Artifacts, make_parts
from a2a_serverless.engine.callbacks import Callbacks
from a2a_serverless.engine.calls import AgentCalls, CallLimit
from a2a_serverless.engine.client_messages import ClientMessages
from a2a_serverless.engine.loop import create_engine_task
from a2a_serverless.engine.messages import check_printable
from a2a_serverless.engine.signals import NeedsWorker
from a2a_serverless.engine.steps import Steps
from a2a_serverless.engine.task_files import INLINE_FILES, TaskFiles
from a2a_serverless.engine.task_values import RunValues
from a2a_serverless.engine.tool_states import ToolStates
from a2a_serverless.engine.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.record_names import CallName
    from a2a_serverless.domain.remotes import Remote
    from a2a_serverless.domain.task_context import Content
    from a2a_serverless.domain.usage import Usage
    from a2a_serverless.engine.calls import AgentRegistry
    from a2a_serverless.engine.execution import Execution
    from a2a_serverless.engine.mirror import MirrorCalls
    from a2a_serverless.engine.task_reader import TaskReader
    from a2a_serverless.ports.system import Sealer
    from a2a_serverless.protocol.v1 import Message, Part, Task
    from a2a_serverless.store.value_store import ValueStore


def no_secret(name: str) -> str:
    """Has no secrets."""
    raise SecretNotRead(f"The secret {name!r} is not set.")


class Acts:
    """The acts over an execution. ``events`` is the task's log, which the mirror of a ``remote`` agent needs.

    ``task_reader`` reads tasks, ``read_secret`` returns the agents' secret of a name, ``callback_sealer`` seals those
    of signed callbacks. ``prices`` are those of ``Steps``.
    """

    def __init__(  # noqa: PLR0913 - what the acts need from outside
        self,
        execution: Execution,
        task_reader: TaskReader,
        registry: AgentRegistry,
        values: ValueStore,
        files: TaskFiles = INLINE_FILES,
        *,
        events: Sequence[Event] = (),
        read_secret: Callable[[str], str] = no_secret,
        callback_sealer: Sealer,
        prices: Usage | None = None,
        remote: Remote | None = None,
    ) -> None:
        self.execution, self.task_reader, self.files = execution, task_reader, files
        self._read_secret = read_secret
        self.steps = Steps(execution, prices or {})
        self.tool_states = ToolStates()
        self.waits = Waits(execution)
        self.client_messages = ClientMessages(execution, self.waits)
        self.callbacks = Callbacks(execution, self.waits, registry.base_url, self.secret, callback_sealer)
        self.artifacts = Artifacts(execution, files)
        self.mirror: MirrorCalls | None = None
        if remote:
            from a2a_serverless.engine.mirror import MirrorCalls  # only mirrors need it

            self.mirror = MirrorCalls(execution, registry, files, remote, events)
        self.calls = self.mirror or AgentCalls(execution, registry, files)
        self._values = values
        self._beside = set[asyncio.Task[None]]()
        for name in self.calls.canceled_calls():
            self._cancel_child(name)

    def task_values(self, *, is_replayed: bool) -> RunValues:
        """The values of the task."""
        return RunValues(self.execution, self._values, ValueScope(self.execution.session.key), is_replayed)

    def conversation_values(self, *, is_replayed: bool) -> RunValues:
        """The values of the conversation."""
        session = self.execution.session
        scope = ValueScope(session.key, session.head.context_id)
        return RunValues(self.execution, self._values, scope, is_replayed)

    def check_reach(self, agent: str | None) -> None:
        """Raises NeedsWorker, and ends the execution, if only the worker can call the agent (None: every agent)."""
        self.execution.check_open()
        try:
            self.calls.check_reachable(agent)
        except NeedsWorker:
            self.execution.close(end=NeedsWorker())
            raise

    async def secret(self, name: str) -> str:
        """See ``TaskContext.secret``. No step may store a result with this text afterwards."""
        self.execution.check_open()
        with self.execution.at_work():
            secret = await asyncio.to_thread(self._read_secret, name)
        self.steps.keep_secret(secret)
        return secret

    async def call(self, name: str, agent: str, content: Content | Sequence[Part], limit: CallLimit) -> Task | Message:
        """See ``TaskContext.call``. If its code is cancelled, the called task is canceled, too."""
        scope = self.execution.open_scope()
        failure: AgentCallFailed | None = None
        with scope.use(f"call {name}"):
            self.check_reach(agent)
            what, path = f"The message of the call {name!a}", join_path(scope.path, name)
            parts = make_parts(what, content)
            for part in parts:
                check_printable(what, part)
            try:
                return await self.calls.call(path, agent, parts, limit, self.execution.ask_for_call, scope)
            except AgentCallFailed as failed:  # stored, like an answer: the name is used
                failure = failed
            except asyncio.CancelledError:
                if not self.execution.is_stopping and self.calls.cancel(path):
                    self._cancel_child(call_name(path))
                raise
        raise failure

    def _cancel_child(self, name: CallName) -> None:
        async def cancel() -> None:
            with self.execution.remember_signal():
                await self.calls.cancel_child(name)

        self._beside.add(task := create_engine_task(cancel()))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # a signal is remembered
