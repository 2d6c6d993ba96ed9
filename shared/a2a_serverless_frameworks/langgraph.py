"""Runs a LangGraph graph as an agent of a deployment.

    from a2a_serverless_frameworks.langgraph import agent

    support = agent(graph, id="support", description="Answers questions.")

LangGraph's own loop runs, and a task is one turn of a thread. The result of each node is a step: a later run of the
task reads it back. A checkpoint is one value of the task's store, which the next checkpoint replaces. The output of a
node's chat models belongs to the node's step, so a node that runs again replaces it.

The thread is the A2A context: the last checkpoint of a completed task is stored for the conversation.
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter, defaultdict
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    CheckpointTuple,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME, TASKS
from langgraph.constants import TAG_NOSTREAM
from langgraph.errors import is_invalid_resume
from langgraph.graph import StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic_core import ValidationError, to_jsonable_python

from a2a_serverless import Agent, Part, Step, StepConflict, TaskFailed
from a2a_serverless.domain.agent import skills_of
from a2a_serverless.engine.framework_task import FrameworkTask, StepAlreadyStored, fit_name, framework_task
from a2a_serverless_frameworks.answers import (
    REPEATS,
    UNREAD,
    AnswerStream,
    answers_by_id,
    ask_until_read,
    data_or_text,
    text_in,
    text_of_repeat,
)
from a2a_serverless_frameworks.langchain_reviews import review_of
from a2a_serverless_frameworks.langgraph_deltas import deltas_after, deltas_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Container, Coroutine, Iterator, Mapping, Sequence
    from uuid import UUID

    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, LLMResult
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, DeltaChannelHistory
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.pregel import Pregel
    from langgraph.types import Interrupt

    from a2a_serverless import Answer, Message, Skill, TaskContext
    from a2a_serverless_frameworks.langchain_reviews import Review
    from a2a_serverless_frameworks.langgraph_deltas import Deltas

PREFIX: Final = "langgraph/"
"""Begins the names of steps and the keys of values."""
QUESTION: Final = f"{PREFIX}question"
SIZE_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of a serialized checkpoint, and of the writes of a node."""
TODOS: Final = "todos"
"""The channel of LangChain's ``TodoListMiddleware``."""
NODE_TAG: Final = "graph:step:"
"""Begins the tag of the run of a node, and of no run inside the node."""
_MEND: Final = "Deploy a graph that has the node, and retry the task."
_Action: TypeAlias = "Callable[[], Coroutine[Any, Any, None]]"
_CONTROL: Final = frozenset({ERROR, INTERRUPT, RESUME, "__error_source_node__"})


def agent(  # noqa: PLR0913 - the fields of a card, and the functions around the graph
    graph: Pregel[Any, Any, Any, Any] | StateGraph[Any, Any, Any, Any],
    *,
    id: str,  # noqa: A002 - the card's word
    name: str = "",
    description: str = "",
    skills: Sequence[Skill] = (),
    read_input: Callable[[TaskContext], Awaitable[Any]] | None = None,
    write_answer: Callable[[Any], Answer] | None = None,
    context: Callable[[TaskContext], Any] | None = None,
    serde: SerializerProtocol | None = None,
    **card: Any,  # noqa: ANN401 - the other fields of ``Agent``
) -> Agent:
    """Makes an ``Agent`` of a graph, compiled or not. The graph's own checkpointer is not used.

    ``read_input`` makes the graph's input from the task; by default the message is appended to ``messages``, and a
    graph without that channel gets the message's data part. ``write_answer`` makes the final message from the state's
    values; by default see ``answer_of``. ``context`` makes the graph's run-time context. Without ``skills`` the agent
    has a skill with its own name. Raises ValueError for graphs with static breakpoints, and TypeError for graphs with
    an ``InMemoryStore``.
    """
    compiled = _checked(graph.compile() if isinstance(graph, StateGraph) else graph)
    name = name or id

    async def work(task: TaskContext) -> Answer:
        durable = framework_task(task)
        saver = _Saver(durable, f"{PREFIX}{id}", serde)
        run = _Run(durable, compiled.copy({"checkpointer": saver}), saver)
        runtime_context = context(task) if context else None
        values = await run.play(lambda: (read_input or partial(_read_input, compiled))(task), runtime_context)
        return (write_answer or answer_of)(values)

    own_skills = skills_of(id, name, description or name, skills)
    return Agent(id, name, description or name, own_skills, work, **card)


def answer_of(values: Any) -> Answer:  # noqa: ANN401 - any state
    """The final message: a data part with ``structured_response``, or the text of the last message; else all values."""
    state = values if isinstance(values, dict) else {"": values}
    if (structured := state.get("structured_response")) is not None:
        return [Part(data=_jsonable(structured))]
    if "messages" in state:
        last = state["messages"][-1] if state["messages"] else None
        return str(last.text) or None if isinstance(last, AIMessage) else None
    return [Part(data=_jsonable(values))]


def _checked(graph: Pregel[Any, Any, Any, Any]) -> Pregel[Any, Any, Any, Any]:
    if graph.interrupt_before_nodes or graph.interrupt_after_nodes:
        raise ValueError("static breakpoints are for debugging; call interrupt() in the node instead")
    if isinstance(graph.store, InMemoryStore):
        raise TypeError("an InMemoryStore is lost with its process; give the graph a store that is a database")
    return graph


async def _read_input(graph: Pregel[Any, Any, Any, Any], task: TaskContext) -> Any:  # noqa: ANN401 - the graph's
    if "messages" not in graph.channels:
        return data_or_text(task.message)
    match [await _content(task, part) for part in task.message.parts]:
        case [{"text": text}]:
            return {"messages": [HumanMessage(text)]}
        case contents:
            return {"messages": [HumanMessage(contents)]}


async def _content(task: TaskContext, part: Part) -> dict[str, Any]:
    """A part as a content block of LangChain."""
    if (text := text_in(part)) is not None:
        return {"type": "text", "text": text}
    media_type = part.media_type or "application/octet-stream"
    kind = media_type.partition("/")[0]
    data = base64.b64encode(await task.read_file(part)).decode()
    return {"type": kind if kind in {"image", "audio", "video"} else "file", "base64": data, "mime_type": media_type}


def _jsonable(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return to_jsonable_python(value, fallback=str, inf_nan_mode="null")


class _Run:
    """One run of a task: the graph's loop, its questions, and the output of its chat models."""

    def __init__(self, task: FrameworkTask, graph: Pregel[Any, Any, Any, Any], saver: _Saver) -> None:
        self._task = task
        self._graph = graph
        self._saver = saver
        self._answers: dict[str, Any] = {}
        self._given: set[str] = set()
        self._refusals: list[str] = []
        self._denies = False
        listener = _Listener(saver.streams, saver.nodes, saver.executing)
        task.set_unit(_unit, saver.executing.has_others)
        self._config: RunnableConfig = {"configurable": {"thread_id": task.context_id}, "callbacks": [listener]}

    async def play(self, make_input: Callable[[], Awaitable[Any]], context: Any) -> Any:  # noqa: ANN401 - the graph's
        """Runs the graph to its end, and returns the values of its state."""
        has_checkpoints = await self._saver.load()
        if has_checkpoints:
            await self._graph.aget_state(self._config)
            self._saver.check_places()
            self._saver.check_sends(self._graph.nodes)
        graph_input = None if has_checkpoints else await make_input()
        while pending := await self._advance(graph_input, context):
            graph_input = Command(resume=await self._resume(pending))
        await self._saver.store_for_conversation()
        return (await self._graph.aget_state(self._config)).values

    async def _advance(self, graph_input: Any, context: Any) -> list[Interrupt[Any]]:  # noqa: ANN401 - the graph's
        """Runs the graph until it ends or waits; returns the interrupts that wait. They may wait from the start."""
        if graph_input is None and (pending := self._saver.pending_interrupts()) and self._were_asked(pending):
            return pending
        self._saver.executing.end()
        stream = self._graph.astream(
            graph_input,
            self._config,
            context=context,
            stream_mode=["messages", "custom"],
            durability="sync",
            subgraphs=True,
        )
        try:
            async for namespace, mode, content in stream:
                if mode == "custom":  # the other mode makes chat models stream; _Listener gets their tokens
                    await self._report("|".join(namespace), content)
        except ValidationError as error:
            if not is_invalid_resume(error):
                raise
            self._refuse(error)
        self._saver.check_places()
        return self._saver.pending_interrupts()

    async def _report(self, namespace: str, content: Any) -> None:  # noqa: ANN401 - any value of a stream writer
        """Reports what a node has written as progress. Equal texts are told apart by the checkpoint they follow."""
        with self._task.scope(fit_name(f"{PREFIX}written/{namespace}/{self._saver.checkpoint_id(namespace)}")):
            await self._task.report_progress(content if isinstance(content, str) else [Part(data=_jsonable(content))])

    def _refuse(self, error: ValidationError) -> None:
        """Forgets the answers, of which one does not match its schema: nothing of them is stored.

        Raises TaskFailed if they are denials, for an interrupt that no answer of the client has matched.
        """
        if self._denies:
            raise TaskFailed(f"The answers and a denial do not match the schema of an interrupt: {error}") from error
        self._answers = {}
        self._given = set()
        self._refusals.append(str(error))

    def _were_asked(self, interrupts: Sequence[Interrupt[Any]]) -> bool:
        """Whether an earlier run has asked for all of them: then no other node had work left."""
        questions = cast("dict[str, dict[str, Any]]", self._task.read_steps(QUESTION))
        ids = {identity for question in questions.values() for identity, *_ in question["interrupts"]}
        return {interrupt.id for interrupt in interrupts} <= ids

    async def _resume(self, pending: Sequence[Interrupt[Any]]) -> dict[str, Any]:
        """The answers to all pending interrupts, by their ids. Asks the client for the missing answers.

        Raises StepConflict for an interrupt that is pending though the graph was given its answer.
        """
        for interrupt in pending:
            if interrupt.id in self._given:
                node = self._saver.node_of(interrupt)
                raise StepConflict(
                    f"The node {node!r} was given the answer to its interrupt and does not take it: the graph does not"
                    f" come to it. {_MEND}"
                )
        while rest := [interrupt for interrupt in pending if interrupt.id not in self._answers]:
            await self._ask(rest)
        self._given.update(interrupt.id for interrupt in pending)
        return {interrupt.id: self._answers[interrupt.id] for interrupt in pending}

    async def _ask(self, interrupts: Sequence[Interrupt[Any]]) -> None:
        """Asks the next round of questions. A later run repeats the stored rounds, whatever is pending then."""

        async def questions() -> dict[str, Any]:
            rows = [[one.id, _jsonable(one.value), _jsonable(one.response_schema)] for one in interrupts]
            return {"interrupts": rows, "refusals": self._refusals}

        record = await self._task.step(Step(QUESTION, repeat=True), questions)
        refusals: list[str] = record["refusals"]
        reviews = {identity: review_of(value, schema) for identity, value, schema in record["interrupts"]}
        denials = {identity: review.deny() if review else UNREAD for identity, review in reviews.items()}
        otherwise = None if None in denials.values() else denials
        deniable = bool(otherwise) and all(reviews.values())
        if deniable and len(refusals) > REPEATS:
            self._answers |= denials
            self._denies = True
            return
        parts = [part for identity, value, _ in record["interrupts"] for part in _question(identity, value, reviews)]
        if refusals:
            times = REPEATS - len(refusals) + 1 if deniable else None
            parts.insert(0, Part(text=text_of_repeat(refusals[-1], times)))
        read = partial(_answers_by_id, reviews)
        is_approval = all(review and review.is_approval for review in reviews.values())
        asking = partial(ask_until_read, self._task, parts, read, otherwise, is_approval=is_approval)
        while (answers := await asking()) is None:
            pass
        self._answers |= answers


def _unit() -> str:
    """The node of the calling code: its namespace has the ids of its task and of the tasks around it."""
    config = var_child_runnable_config.get()
    namespace = config["configurable"].get("checkpoint_ns") if config else None
    return f"{PREFIX}{namespace}" if namespace else ""


def _question(identity: str, value: Any, reviews: Mapping[str, Review | None]) -> list[Part]:  # noqa: ANN401 - JSON
    metadata = {"interrupt": identity}
    if isinstance(value, str):
        return [Part(text=value, metadata=metadata)]
    review = reviews[identity]
    texts = [Part(text=review.question)] if review else []
    return [*texts, Part(data=value, metadata=metadata)]


def _answers_by_id(reviews: Mapping[str, Review | None], answer: Message) -> dict[str, Any]:
    """The answers by interrupt id, each in the form that its node takes. Raises UnreadableAnswer."""
    answers = answers_by_id(answer, list(reviews))
    readers = {identity: review.read for identity, review in reviews.items() if review}
    return {identity: readers[identity](value) if identity in readers else value for identity, value in answers.items()}


class _ChannelValues(dict[str, Any]):
    """The values of a checkpoint's channels. A graph gets those of its own channels, and ignores all others."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._read: set[str] = set()

    def get(self, channel: str, default: Any = None) -> Any:  # noqa: ANN401 - any value
        self._read.add(channel)
        return super().get(channel, default)

    def places(self) -> list[str]:
        """The places at which the checkpoint continues, and that the graph which has read it does not have."""
        unread = self.keys() - self._read if self._read else ()
        return [place for channel in sorted(unread) if (place := _place_of(channel, self[channel]))]


def _place_of(channel: str, value: Any) -> str:  # noqa: ANN401 - any value
    """The node that a channel starts, or the nodes of a join of which some have ended; "" for any other channel."""
    kind, _, name = channel.partition(":")
    if kind == "branch":
        return f"the node {name.removeprefix('to:')!r}"
    if kind == "join" and (value[0] if isinstance(value, tuple) else value):
        starts, _, end = name.rpartition(":")
        return " and ".join(f"the node {start!r}" for start in starts.split("+")) + f" before the node {end!r}"
    return ""


def _conflict_at(place: str) -> StepConflict:
    return StepConflict(f"The task continues at {place}, and the graph does not have it. {_MEND}")


@dataclass(frozen=True, slots=True)
class _Record:
    """A stored checkpoint, or the writes of one attempt at a node for the checkpoint ``id``."""

    namespace: str
    id: str
    data: bytes


class _Executing:
    """The namespaces of the nodes that execute, or whose writes are not stored yet."""

    def __init__(self) -> None:
        self._namespaces: set[str] = set()

    def begin(self, namespace: str) -> None:
        """A node begins."""
        self._namespaces.add(namespace)

    def end(self, task_id: str = "") -> None:
        """The node of this task has ended, and the graphs in it; "" is all."""
        self._namespaces = {namespace for namespace in self._namespaces if task_id not in namespace}

    def graph_of(self, task_id: str) -> str:
        """The namespace of the graph of a node that executes."""
        return next((one.rpartition("|")[0] for one in self._namespaces if one.endswith(task_id)), "")

    @contextmanager
    def stored_in(self, graph: str) -> Iterator[None]:
        """While it is entered, the calling code stores what belongs to the graph with this namespace."""
        token = _GRAPH.set(graph)
        try:
            yield
        finally:
            _GRAPH.reset(token)

    def has_others(self) -> bool:
        """Whether nodes execute beside the calling code. The nodes around it, and those in its node, do not count."""
        if (graph := _GRAPH.get()) is not None:
            return any(not graph.startswith(one) for one in self._namespaces)
        here = _unit().removeprefix(PREFIX)
        return any(not (here.startswith(one) or one.startswith(here)) for one in self._namespaces)


_GRAPH: Final[ContextVar[str | None]] = ContextVar("langgraph_graph", default=None)


class _Saver(BaseCheckpointSaver[int]):
    """LangGraph's checkpoints in the task's store, and the writes of nodes as steps.

    Of each namespace (the graph, and each running subgraph) only the newest checkpoint is kept, in a numbered slot.
    When the graph's own checkpoint advances, the slots of its subgraphs are free.
    """

    def __init__(self, task: FrameworkTask, conversation: str, serde: SerializerProtocol | None) -> None:
        super().__init__(serde=serde)
        self._task = task
        self._conversation = conversation
        self._points: dict[str, _Record] = {}
        self._values: dict[str, _ChannelValues] = {}
        self._slots: dict[str, int] = {}
        self._writes: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        self._attempts: Counter[str] = Counter()
        self._texts: set[str] = set()
        self._lock = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._errors: list[BaseException] = []
        self.executing = _Executing()
        self.streams = _Streams(task, self._next_name, self.executing)
        self.nodes: dict[str, str] = {}
        """The names of the nodes by the ids of their tasks, as far as they have begun in this run."""

    async def load(self) -> bool:
        """Reads the checkpoints, those of the conversation and of the task. Returns whether the task has any."""
        # A task's later run has checkpoints of some graphs, and a lasting subgraph's may still be the conversation's.
        if conversation := await self._task.conversation.get(self._conversation):
            for data in self._load(cast("bytes", conversation.value)):
                self._take_point(data)
        async for key, data in self._stored_values():
            self._take_point(data, int(key.removeprefix(PREFIX)))
        for stored in self._task.read_steps(f"{PREFIX}node/").values():
            self._take_writes(str(stored))
        return bool(self._slots)

    async def store_for_conversation(self) -> None:
        """Stores the newest checkpoints for the context's next task: the graph's, and those of lasting subgraphs."""
        points = [point.data for namespace, point in self._points.items() if ":" not in namespace]
        await self._task.conversation.put(self._conversation, self._dump(points))

    def checkpoint_id(self, namespace: str) -> str:
        """The id of the newest checkpoint of a graph, "" before the first."""
        point = self._points.get(namespace)
        return point.id if point else ""

    def pending_interrupts(self) -> list[Interrupt[Any]]:
        """The interrupts that wait for an answer, of the innermost graphs: outer ones repeat them, and may be older."""
        inner = "|".join(self._points)
        pending = {
            interrupt.id: interrupt
            for namespace, point in self._points.items()
            for task_id, writes in self._merged(namespace, point.id).items()
            if INTERRUPT in writes and task_id not in inner and not writes.keys() - _CONTROL
            for interrupt in writes[INTERRUPT]
        }
        return list(pending.values())

    def node_of(self, interrupt: Interrupt[Any]) -> str:
        """The name of the node that asks. The nodes around it repeat its interrupt."""
        records = [
            record
            for point in self._writes.values()
            for record in point
            for _, channel, value in record["writes"]
            if channel == INTERRUPT and interrupt.id in {one.id for one in value}
        ]
        return str(max(records, key=lambda record: (len(record["ns"]), len(record["path"])))["node"])

    def check_places(self) -> None:
        """Raises StepConflict if a graph that has read its checkpoint lacks a place at which this continues."""
        for values in self._values.values():
            if places := values.places():
                raise _conflict_at(places[0])

    def check_sends(self, nodes: Container[str]) -> None:
        """Raises StepConflict if the graph, which has these nodes, lacks one that a ``Send`` starts."""
        for send in self._values[""].get(TASKS, ()):
            if send.node not in nodes:
                raise _conflict_at(f"the node {send.node!r}")

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The newest checkpoint of the namespace. No other is stored, and LangGraph asks for no other."""
        point = self._points.get(str(config["configurable"].get("checkpoint_ns", "")))
        return self._tuple(point) if point else None

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """``aput``, for a graph that runs in a thread."""
        self._send(self.aput(config, checkpoint, metadata, new_versions))
        return self._config(config["configurable"]["checkpoint_ns"], checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """``aput_writes``, for a graph that runs in a thread."""
        self._send(self.aput_writes(config, writes, task_id, task_path))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See ``get_tuple``."""
        return self.get_tuple(config)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint in one write, after the writes before it."""
        namespace = str(config["configurable"]["checkpoint_ns"])
        async with self._lock:
            self._check_sent()
            self.check_places()
            point = {
                "ns": namespace,
                "id": checkpoint["id"],
                "checkpoint": checkpoint,
                "metadata": get_checkpoint_metadata(config, metadata),
                "deltas": self._deltas_at(namespace, checkpoint, metadata),
            }
            if not namespace and TODOS in new_versions:
                await self._report_todos(checkpoint["channel_values"].get(TODOS))
            slot = self._slots.get(namespace, next(free for free in count() if free not in self._slots.values()))
            data = self._dump(point)
            with self.executing.stored_in(namespace):
                await self._task.store.put(f"{PREFIX}{slot}", data)
            self._take_point(data, slot)
            if not namespace:
                self._free_slots()
        return self._config(namespace, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores a node's writes, questions or error as the result of its step, after its tokens."""
        configurable = config["configurable"]
        indexed = [
            (WRITES_IDX_MAP.get(channel, number), channel, value) for number, (channel, value) in enumerate(writes)
        ]
        record = {
            "ns": configurable["checkpoint_ns"],
            "id": configurable["checkpoint_id"],
            "task": task_id,
            "path": task_path,
            "node": self.nodes.get(task_id, task_path),
            "writes": indexed,
        }
        text = base64.b64encode(self._dump(record)).decode()
        self.executing.end(task_id)
        async with self._lock:
            self._check_sent()
            self.check_places()
            # A node that asks is executed anew in each run, and writes the same interrupt.
            if text in self._texts and not self.streams.is_open(task_id):
                return
            name = self._next_name(task_id)
            with self.executing.stored_in(record["ns"]):
                stored = await self.streams.finish(task_id, name, text)
            if stored != text:
                raise StepAlreadyStored
            self._take_writes(text)

    async def _report_todos(self, todos: Any) -> None:  # noqa: ANN401 - any value of a channel of this name
        """Reports a changed list as progress, once for the checkpoint that the change follows.

        It comes before the checkpoint: a later run that continues from the checkpoint does not report it.
        """
        match todos:
            case [{"content": str(), "status": str()}, *_]:
                with self._task.root(), self._task.scope(f"{PREFIX}{TODOS}/{self.checkpoint_id('')}"):
                    await self._task.report_progress([Part(data=_jsonable({TODOS: todos}))])

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What the newest checkpoint of the namespace is stored with."""
        point = self._points[str(config["configurable"].get("checkpoint_ns", ""))]
        return deltas_of(self._load(point.data)["deltas"], channels)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """See ``get_delta_channel_history``."""
        return self.get_delta_channel_history(config=config, channels=channels)

    def _deltas_at(self, namespace: str, checkpoint: Checkpoint, metadata: CheckpointMetadata) -> Deltas:
        before = self._points.get(namespace)
        if before is None or "counters_since_delta_snapshot" not in metadata:
            return {}
        stored = self._load(before.data)
        values, writes = stored["checkpoint"]["channel_values"], self._pending(namespace, before.id)
        return deltas_after(stored["deltas"], values, writes, checkpoint, metadata)

    def _next_name(self, task_id: str) -> str:
        return f"{PREFIX}node/{task_id}/{self._attempts[task_id]}"

    def _take_writes(self, text: str) -> None:
        self._texts.add(text)
        record = self._load(base64.b64decode(text))
        self._attempts.update([record["task"]])
        self._writes[record["ns"], record["id"]].append(record)

    def _take_point(self, data: bytes, slot: int | None = None) -> None:
        point = self._load(data)
        self._points[point["ns"]] = _Record(point["ns"], point["id"], data)
        if slot is not None:
            self._slots[point["ns"]] = slot

    def _free_slots(self) -> None:
        """Forgets the subgraphs of earlier checkpoints of the graph."""
        for namespace in [name for name in self._points if ":" in name]:
            parents = self._load(self._points[namespace].data)["metadata"]["parents"]
            if parents[""] != self._points[""].id:
                del self._points[namespace], self._slots[namespace]

    def _merged(self, namespace: str, checkpoint_id: str) -> dict[str, dict[str, Any]]:
        """The writes for a checkpoint by node's task and channel."""
        writes_by_task: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for task_id, channel, value in self._pending(namespace, checkpoint_id):
            writes_by_task[task_id][channel] = value
        return writes_by_task

    def _pending(self, namespace: str, checkpoint_id: str) -> list[tuple[str, str, Any]]:
        """The writes for a checkpoint in ``writes_sort_key`` order: for each node, the writes of its last attempt."""
        writes = {
            writes_sort_key(record["path"], record["task"], index): (channel, value)
            for record in self._writes[namespace, checkpoint_id]
            for index, channel, value in record["writes"]
        }
        return [(key[1], *writes[key]) for key in sorted(writes)]

    def _tuple(self, point: _Record) -> CheckpointTuple:
        stored = self._load(point.data)
        if point.namespace in self._slots:  # not from the conversation: there the former code has come to its end
            values = self._values[point.namespace] = _ChannelValues(stored["checkpoint"]["channel_values"])
            stored["checkpoint"]["channel_values"] = values
        if point.namespace and stored["metadata"]["parents"].get("") != self.checkpoint_id(""):
            # LangGraph takes a graph with versions for interrupted, if the graph around it goes on from a checkpoint. A
            # lasting subgraph that ended in an earlier step begins anew, with its state. But without versions LangGraph
            # does not ask for the history of a DeltaChannel, which would be empty.
            if stored["deltas"]:
                channels = ", ".join(stored["deltas"])
                raise TaskFailed(f"A graph with checkpointer=True cannot have a DeltaChannel here: {channels}")
            stored["checkpoint"] |= {"channel_versions": {}, "versions_seen": {}}
        pending = self._pending(point.namespace, point.id)
        own = self._config(point.namespace, point.id)
        return CheckpointTuple(own, stored["checkpoint"], stored["metadata"], None, pending)

    def _config(self, namespace: str, checkpoint_id: str) -> RunnableConfig:
        own = {"thread_id": self._task.context_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
        return {"configurable": own}

    def _dump(self, value: Any) -> bytes:  # noqa: ANN401 - any value of the serializer
        kind, data = self.serde.dumps_typed(value)
        if len(data) > SIZE_LIMIT:
            raise TaskFailed(f"The graph's state has {len(data)} bytes; at most {SIZE_LIMIT} are stored. Trim it.")
        return kind.encode() + b"\n" + data

    def _load(self, data: bytes) -> Any:  # noqa: ANN401 - any value of the serializer
        kind, _, rest = data.partition(b"\n")
        return self.serde.loads_typed((kind.decode(), rest))

    async def _stored_values(self) -> AsyncIterator[tuple[str, bytes]]:
        after = ""
        while page := await self._task.store.list(PREFIX, after=after):
            for record in page:
                yield record.key, cast("bytes", record.value)
                after = record.key

    def _send(self, call: Coroutine[Any, Any, object]) -> None:
        """Makes a call for a graph in a thread, before the next call of the graph around it, which raises its error."""

        async def send() -> None:
            try:
                await call
            except BaseException as error:  # raised by the next call
                self._errors.append(error)
                raise

        asyncio.run_coroutine_threadsafe(send(), self._loop)

    def _check_sent(self) -> None:
        if self._errors:
            raise self._errors[0]


class _Stream:
    """The output of the chat models of one attempt at a node. The node's step emits it, and ends with the node."""

    def __init__(self, task: FrameworkTask, name: str) -> None:
        self._queue: asyncio.Queue[_Action | str] = asyncio.Queue()
        self.step = asyncio.create_task(task.step(Step(name, waits=True), self._work))

    def add(self, action: _Action | str) -> None:
        """Queues an action; the node's writes are the last action."""
        self._queue.put_nowait(action)

    async def _work(self) -> str:
        while not isinstance(action := await self._queue.get(), str):
            await action()
        return action


class _Streams:
    """The streams of all running nodes."""

    def __init__(self, task: FrameworkTask, next_name: Callable[[str], str], executing: _Executing) -> None:
        self._next_name, self._executing = next_name, executing
        self._open: dict[str, _Stream] = {}
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self.task = task

    def add(self, task_id: str, action: _Action) -> None:
        """Does an action in the step of the node's task, in any thread."""
        self._loop.call_soon_threadsafe(self._add, task_id, action)

    def is_open(self, task_id: str) -> bool:
        """Whether the node has emitted in this run."""
        return task_id in self._open

    async def finish(self, task_id: str, name: str, text: str) -> str:
        """Ends the node's step with this result, and returns the stored result."""
        stream = self._open.pop(task_id, None)
        if stream:
            stream.add(text)
            return await stream.step

        async def work() -> str:
            return text

        with self.task.root():
            return await self.task.step(name, work)

    def _add(self, task_id: str, action: _Action) -> None:
        if task_id not in self._open:
            context = self._context.copy()
            context.run(_GRAPH.set, self._executing.graph_of(task_id))
            self._open[task_id] = context.run(_Stream, self.task, self._next_name(task_id))
        self._open[task_id].add(action)


class _Reply:
    """The output of a chat model: one artifact. ``key`` is the key by which the artifact's number is counted."""

    def __init__(self, task: FrameworkTask, key: tuple[str, str], artifact: str, model: str, *, silent: bool) -> None:
        self.key = key
        self.silent = silent
        self.task_id = key[0].rpartition(":")[2]
        self.model = model
        self.in_step = task.current_step is not None
        self.has_text = False
        self._task = task
        self.text = AnswerStream(task, artifact)
        self._busy = ExitStack()

    def begin(self) -> None:
        """Keeps the run from being suspended while the model works. Not in a thread."""
        self._busy.enter_context(self._task.at_work())

    async def end(self, text: str, amounts: Mapping[str, float]) -> None:
        """Records the usage, and emits the last chunk."""
        if amounts:
            await self._task.record_usage(self.model, **amounts)
        await self.text.add(text)
        await self.text.end(last=True)
        self._busy.close()


class _Listener(AsyncCallbackHandler):
    """Emits the text of chat models as artifacts named ``node@step``, and records their usage."""

    raise_error = True

    def __init__(self, streams: _Streams, nodes: dict[str, str], executing: _Executing) -> None:
        self._streams, self._executing = streams, executing
        self._nodes = nodes
        self._replies: dict[UUID, _Reply] = {}
        self._labels: dict[str, str] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._loop = asyncio.get_running_loop()

    async def on_chain_start(self, *_: object, **options: Any) -> None:  # noqa: ANN401 - the framework's
        """Stores the names of nodes; nodes of a subgraph are named after its node. A node begins anew at each try."""
        metadata, tags = options["metadata"], options["tags"]
        if "langgraph_checkpoint_ns" not in metadata:
            return
        self._label(metadata)
        if any(tag.startswith(NODE_TAG) for tag in tags) and asyncio.get_running_loop() is self._loop:
            namespace = metadata["langgraph_checkpoint_ns"]
            self._streams.task.begin_units(f"{PREFIX}{namespace}")
            self._executing.begin(namespace)
            self._counts = Counter({key: number for key, number in self._counts.items() if key[0] != namespace})

    async def on_chat_model_start(self, *_: object, run_id: UUID, **options: Any) -> None:  # noqa: ANN401 - as above
        """Opens an artifact for the model's output."""
        metadata = options["metadata"]
        if "langgraph_checkpoint_ns" not in metadata:
            return
        task = self._streams.task
        label = "/".join(text for text in (self._label(metadata), task.current_step) if text)
        key = (str(metadata["langgraph_checkpoint_ns"]), label)
        silent = TAG_NOSTREAM in options["tags"] or _answers_in_schema(options)
        self._counts[key] += not silent
        artifact = label if self._counts[key] <= 1 else f"{label}.{self._counts[key]}"
        model = str(metadata.get("ls_model_name") or "unknown")
        reply = self._replies[run_id] = _Reply(task, key, artifact, model, silent=silent)
        # At once, and not in the node's step: another node's act would end the run before that begins.
        if asyncio.get_running_loop() is self._loop:
            reply.begin()
        else:
            self._loop.call_soon_threadsafe(reply.begin)

    async def on_llm_new_token(
        self, *_: object, chunk: ChatGenerationChunk | None = None, run_id: UUID, **__: object
    ) -> None:
        """Emits a chunk."""
        reply = self._replies.get(run_id)
        if reply and chunk and not reply.silent and not self._in_thread(reply):
            reply.has_text = True
            await self._do(reply, partial(reply.text.add, str(chunk.message.text)))

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **__: object) -> None:
        """Ends the artifact. The whole output of a model that does not stream comes now."""
        reply = self._replies.pop(run_id, None)
        if reply is None:
            return
        (generation, *_), *_ = response.generations
        message = cast("AIMessage", cast("ChatGeneration", generation).message)
        rest = "" if reply.has_text or reply.silent else str(message.text)
        reply.model = str(message.response_metadata.get("model_name") or reply.model)
        usage = message.usage_metadata
        amounts = {"input_tokens": usage["input_tokens"], "output_tokens": usage["output_tokens"]} if usage else {}
        await self._do(reply, partial(reply.end, rest, amounts))

    async def on_llm_error(self, *_: object, run_id: UUID, **__: object) -> None:
        """Ends the artifact as it is. The next reply of the node replaces it."""
        if reply := self._replies.pop(run_id, None):
            self._counts[reply.key] -= not reply.silent
            await self._do(reply, partial(reply.end, "", {}))

    def _label(self, metadata: dict[str, Any]) -> str:
        """The name of a node, after the name of the node that its graph is."""
        namespace = metadata["langgraph_checkpoint_ns"]
        if namespace not in self._labels:
            self._nodes[namespace.rpartition(":")[2]] = metadata["langgraph_node"]
            path = metadata["langgraph_path"]
            place = f"[{path[1]}]" if path[0] == "__pregel_push" else ""
            outer = _label_of(namespace.rpartition("|")[0], self._labels)
            own = f"{metadata['langgraph_node']}@{metadata['langgraph_step']}{place}"
            self._labels[namespace] = f"{outer}/{own}" if outer else own
        return self._labels[namespace]

    async def _do(self, reply: _Reply, action: _Action) -> None:
        """Does an action in the step of the node, or in the step of the agent's author that calls the model."""
        if not reply.in_step:
            self._streams.add(reply.task_id, action)
        elif self._in_thread(reply):  # the step ends later than the first part of the work that is scheduled now
            self._loop.call_soon_threadsafe(self._start, action)
        else:
            await action()

    def _in_thread(self, reply: _Reply) -> bool:
        """Whether a plain function of a step, in a thread, calls the model. Then everything is emitted at its end."""
        return reply.in_step and asyncio.get_running_loop() is not self._loop

    def _start(self, action: _Action) -> None:
        self._action = asyncio.create_task(action())


def _answers_in_schema(options: Mapping[str, Any]) -> bool:
    """Whether a chat model answers in a schema: for the graph, and not for a client."""
    settings = {**options.get("invocation_params", {}), **options.get("options", {})}
    return any(settings.get(name) for name in ("ls_structured_output_format", "response_format"))


def _label_of(graph: str, labels: Mapping[str, str]) -> str | None:
    """The name of the node that a graph is, or that calls it: with a number from the second graph of a node on."""
    node, _, number = graph.rpartition("|")
    return f"{labels[node]}.{int(number) + 1}" if number.isdigit() else labels.get(graph)
