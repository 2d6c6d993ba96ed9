"""The acts of an agent's function in one run: steps, calls to other agents, values, secrets, files, other tasks.

All of them stand on one ``Execution``, which knows none of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from a2a_serverless.domain.agent_errors import SecretNotRead
from a2a_serverless.domain.record_names import call_name
from a2a_serverless.domain.values import ValueScope
from a2a_serverless.engine.calls import AgentCalls
from a2a_serverless.engine.signals import NeedsWorker
from a2a_serverless.engine.steps import Steps
from a2a_serverless.engine.task_files import INLINE_FILES, TaskFiles
from a2a_serverless.engine.task_values import RunValues

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.record_names import CallName
    from a2a_serverless.domain.remotes import Remote
    from a2a_serverless.domain.usage import Usage
    from a2a_serverless.engine.calls import AgentRegistry
    from a2a_serverless.engine.execution import Execution
    from a2a_serverless.engine.mirror import MirrorCalls
    from a2a_serverless.engine.task_reader import TaskReader
    from a2a_serverless.ports.system import Sealer
    from a2a_serverless.store.value_store import ValueStore

T = TypeVar("T")


def no_secret(name: str) -> str:
    """Has no secrets."""
    raise SecretNotRead(f"The secret {name!r} is not set.")


class Acts:
    """The acts over an execution. ``heard_at`` is the time (ms) of the newest event in the task's log.

    ``others`` reads tasks, ``read_secret`` returns the agents' secret of a name, ``callback_sealer`` seals those of
    signed callbacks. ``packages`` and ``prices`` are those of ``Steps``.
    """

    def __init__(  # noqa: PLR0913 - what the acts need from outside
        self,
        execution: Execution,
        others: TaskReader,
        registry: AgentRegistry,
        values: ValueStore,
        files: TaskFiles = INLINE_FILES,
        *,
        heard_at: int = 0,
        read_secret: Callable[[str], str] = no_secret,
        callback_sealer: Sealer,
        packages: frozenset[str] = frozenset(),
        prices: Usage | None = None,
        remote: Remote | None = None,
    ) -> None:
        self.execution, self.others, self.files, self.read_secret = execution, others, files, read_secret
        self.callback_sealer, self.base_url = callback_sealer, registry.base_url
        self.steps = Steps(execution, packages, prices or {})
        self.mirror: MirrorCalls | None = None
        if remote:
            from a2a_serverless.engine.mirror import MirrorCalls  # only mirrors need it

            self.mirror = MirrorCalls(execution, registry, files, remote, heard_at)
        self.calls = self.mirror or AgentCalls(execution, registry, files)
        key, context_id = execution.session.key, execution.session.head.context_id
        self.store = RunValues(values, ValueScope(key), execution.session, self._perform, self._identify)
        conversation = ValueScope(key, context_id)
        self.conversation = RunValues(values, conversation, execution.session, self._perform, self._identify)
        self._beside = set[asyncio.Task[None]]()
        for name in self.calls.canceled():
            self._cancel_child(name)

    def check_reach(self, agent: str | None) -> None:
        """Raises NeedsWorker, and ends the execution, if only the worker can call the agent (None: every agent)."""
        self.execution.check_open()
        try:
            self.calls.check_reachable(agent)
        except NeedsWorker:
            self.execution.close(end=NeedsWorker())
            raise

    def cancel_call(self, path: str) -> None:
        """Cancels the call, and its task at the called agent, unless it is over or this run is."""
        if not self.execution.is_stopping and self.calls.cancel(path):
            self._cancel_child(call_name(path))

    def _cancel_child(self, name: CallName) -> None:
        async def cancel() -> None:
            with self.execution.remember_signal():
                await self.calls.cancel_child(name)

        self._beside.add(task := asyncio.create_task(cancel()))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # a signal is remembered

    async def _perform(self, call: Callable[[], T]) -> T:
        """Makes a store call after the waiting chunks."""
        await self.execution.check_signal()
        with self.execution.remember_signal():
            self.execution.check_open()
            self.execution.session.flush()
            return call()

    def _identify(self, write: Json) -> str:
        return self.execution.open_scope().message_id(self.execution.session.origin, "value", write)
