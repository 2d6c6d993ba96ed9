"""A checkpointer for a graph that an executor of a2a-sdk, or an agent's function, runs by itself.

    graph = builder.compile(checkpointer=ConversationSaver())

It stores the newest checkpoint of a thread as a value of the conversation of the current task. A turn that is executed
again begins with the checkpoint that its first execution began with, so no message is in a thread twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    CheckpointTuple,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.types import INTERRUPT

from a2a_serverless import current_task
from a2a_serverless.engine.framework_task import fit_name, framework_task
from a2a_serverless_frameworks.langgraph_deltas import deltas_after, deltas_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        DeltaChannelHistory,
        PendingWrite,
    )

    from a2a_serverless import TaskContext
    from a2a_serverless_frameworks.langgraph_deltas import Deltas

PREFIX = "langgraph-thread/"


class ConversationSaver(BaseCheckpointSaver[int]):
    """Checkpoints in ``TaskContext.conversation``, of at most 10 MiB. Use ``ainvoke`` and ``astream``.

    There is no history: of each thread and namespace only the newest checkpoint is stored. Tasks of a conversation that
    run at the same time should use threads of their own.
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - those of the framework
        super().__init__(**options)
        self._threads: WeakKeyDictionary[TaskContext, dict[tuple[str, str], dict[str, Any]]] = WeakKeyDictionary()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The newest checkpoint of the thread."""
        point = (await self._thread(config))["now"]
        if point is None:
            return None
        own = cast("RunnableConfig", {"configurable": {**config["configurable"], "checkpoint_id": point["id"]}})
        return CheckpointTuple(own, point["checkpoint"], point["metadata"], None, _pending(point))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What the newest checkpoint of the thread is stored with."""
        return deltas_of((await self._thread(config))["now"]["deltas"], channels)

    async def alist(self, config: RunnableConfig | None, **_: object) -> AsyncIterator[CheckpointTuple]:
        """The newest checkpoint of the thread, if there is one."""
        newest = await self.aget_tuple(config) if config else None
        if newest:
            yield newest

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint in place of the one before it."""
        del new_versions
        thread = await self._thread(config)
        thread["now"] = {
            "id": checkpoint["id"],
            "checkpoint": checkpoint,
            "metadata": get_checkpoint_metadata(config, metadata),
            "deltas": _deltas_at(thread["now"], checkpoint, metadata),
            "writes": [],
        }
        await self._store(config, thread)
        return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Adds the writes of a node to the checkpoint. They are stored with the next one, or once a node has asked."""
        thread = await self._thread(config)
        added = [
            (task_path, task_id, WRITES_IDX_MAP.get(channel, number), channel, value)
            for number, (channel, value) in enumerate(writes)
        ]
        places = {one[:3] for one in added}
        kept = [one for one in thread["now"]["writes"] if tuple(one[:3]) not in places]
        thread["now"]["writes"] = [*kept, *added]
        if any(channel == INTERRUPT for *_, channel, _ in thread["now"]["writes"]):
            await self._store(config, thread)

    async def adelete_thread(self, thread_id: str) -> None:
        """Deletes the checkpoints of a thread."""
        conversation = framework_task(current_task()).conversation
        self._threads.pop(current_task(), None)
        while page := await conversation.list(f"{PREFIX}{thread_id}/"):
            for value in page:
                await conversation.delete(value.key)

    async def _thread(self, config: RunnableConfig) -> dict[str, Any]:
        """The thread in this turn: its checkpoint ``now``, and that ``before`` the turn."""
        task = current_task()
        turn = f"{task.id}/{framework_task(task).current_step or ''}"
        threads = self._threads.setdefault(task, {})
        key = _key_of(config)
        if (key, turn) not in threads:
            entry = await framework_task(task).conversation.get(key)
            empty: dict[str, Any] = {"turn": "", "before": None, "now": None}
            thread = self._load(cast("bytes", entry.value)) if entry else empty
            before = thread["before" if thread["turn"] == turn else "now"]
            threads[key, turn] = {"turn": turn, "before": before, "now": before and dict(before)}
        return threads[key, turn]

    async def _store(self, config: RunnableConfig, thread: dict[str, Any]) -> None:
        kind, data = self.serde.dumps_typed(thread)
        await framework_task(current_task()).conversation.put(_key_of(config), kind.encode() + b"\n" + data)

    def _load(self, data: bytes) -> dict[str, Any]:
        kind, _, rest = data.partition(b"\n")
        return cast("dict[str, Any]", self.serde.loads_typed((kind.decode(), rest)))


def _deltas_at(before: dict[str, Any] | None, checkpoint: Checkpoint, metadata: CheckpointMetadata) -> Deltas:
    if before is None:
        return {}
    values = before["checkpoint"]["channel_values"]
    return deltas_after(before["deltas"], values, _pending(before), checkpoint, metadata)


def _pending(point: dict[str, Any]) -> list[PendingWrite]:
    writes = sorted(point["writes"], key=lambda one: writes_sort_key(*one[:3]))
    return [(task_id, channel, value) for _, task_id, _, channel, value in writes]


def _key_of(config: RunnableConfig) -> str:
    configurable = config["configurable"]
    return f"{PREFIX}{configurable['thread_id']}/{fit_name(configurable.get('checkpoint_ns', ''))}"
