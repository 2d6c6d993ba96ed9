"""Whatever is done to them, in whatever order: the memory twin and DynamoDB (moto) answer alike and hold the same."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from moto import mock_aws

from a2a_serverless.domain import decisions
from a2a_serverless.domain.cursors import Cursor, CursorState, Verification
from a2a_serverless.domain.decisions import Change
from a2a_serverless.domain.errors import IllegalTransition
from a2a_serverless.domain.events import Incoming, StatusEvent
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.new_task import IdempotencyRecord, NewTask
from a2a_serverless.domain.replay import replay
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.store.keys import SHARDS
from tests.contract.backends import NOW, Store, client_at, dynamo, memory
from tests.contract.tasks import EXPIRES, KEY, attempt, by, chunk, config, message, opening, writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey

T = TypeVar("T")
TASKS = [KEY._replace(task=f"task-{number}") for number in range(2)]
ME = Principal(KEY.tenant, KEY.owner)
_tables = (f"equivalence-{number}" for number in count())

tasks = st.sampled_from(TASKS)
small = st.integers(0, 3)
ids = st.sampled_from(["a", "b"])
states = st.sampled_from(list(TaskState))
cursor_states = st.sampled_from(list(CursorState))
verifications = st.sampled_from(list(Verification))
past = st.integers(0, 50)


class Twins(RuleBasedStateMachine):
    """Every rule does the same to both; ``past`` picks what was true some time ago, as a slow writer would."""

    def __init__(self) -> None:
        super().__init__()
        self.openings: list[NewTask] = []
        self.changes: list[Change] = []
        self.heads: list[Head] = []
        self.cursors: list[Cursor] = []

    @initialize()
    def begin(self) -> None:
        self.exits = ExitStack()
        self.exits.enter_context(mock_aws())
        client = self.exits.enter_context(client_at(None))
        self.stores = (memory(), self.exits.enter_context(dynamo(client, next(_tables), lambda _: None)))

    def teardown(self) -> None:
        with self.exits:
            self.compare()
            for store in self.stores:
                store.now.ms = EXPIRES * 1000
            self.compare()

    def both(self, call: Callable[[Store], T]) -> T:
        ours, theirs = (_outcome(call, store) for store in self.stores)
        assert ours == theirs
        return ours  # type: ignore[return-value]

    @rule(key=tasks, sent=st.none() | ids, push=st.none() | ids)
    def create(self, key: TaskKey, sent: str | None, push: str | None) -> None:
        self.openings.append(opening(key, sent=sent, push=push))
        self.both(lambda store: store.log.create(self.openings[-1]))

    @rule(ago=past)
    def create_again(self, ago: int) -> None:
        if self.openings:
            self.both(lambda store: store.log.create(_ago(self.openings, ago)))

    @rule(key=tasks, state=states, message_id=st.none() | ids, more=small)
    def append(self, key: TaskKey, state: TaskState, message_id: str | None, more: int) -> None:
        snapshot = self.both(lambda store: store.log.read_head(key))
        if snapshot is None:
            return
        incoming = Incoming(message(message_id=message_id)) if message_id else None
        event = StatusEvent(snapshot.last + 1, NOW + more, by(), state, incoming=incoming, fence=more)
        after = snapshot.head._replace(
            state=state, n=event.n, status_at=event.at, rev=snapshot.head.rev + 1, fence=more
        )
        self._append(Change(snapshot.head, after._replace(due_at=NOW + more if more else None), event), message_id)

    @rule(ago=past, message_id=st.none() | ids)
    def append_again(self, ago: int, message_id: str | None) -> None:
        if self.changes:
            self._append(_ago(self.changes, ago), message_id)

    def _append(self, change: Change, message_id: str | None) -> None:
        self.changes.append(change)
        receipt = IdempotencyRecord("echo", message_id, "digest", change.before.key.task) if message_id else None
        self.both(lambda store: store.log.append(change, receipt))

    @rule(key=tasks, back=small)
    def append_chunk(self, key: TaskKey, back: int) -> None:
        """The next number, or one that is taken, under the head's fence: nobody writes behind a gap."""
        snapshot = self.both(lambda store: store.log.read_head(key))
        if snapshot:
            event = chunk(max(snapshot.last + 1 - back, 1))._replace(fence=snapshot.head.fence)
            self.both(lambda store: store.log.append_chunk(writer(key), event))

    @rule(key=tasks, ago=past, number=small)
    def update_head(self, key: TaskKey, ago: int, number: int) -> None:
        self._see(key)
        if self.heads:
            before = _ago(self.heads, ago)
            after = decisions.reschedule(
                before._replace(lease_until=number), at=NOW + number or None, enqueued=bool(number)
            )
            self.both(lambda store: store.log.update_head(before, after))

    @rule(key=tasks)
    def store_snapshot(self, key: TaskKey) -> None:
        self._see(key)
        with suppress(IllegalTransition):
            name = self.both(lambda store: store.log.store_snapshot(key))
            head = self.both(lambda store: store.log.read_head(key))
            if head:
                self.both(
                    lambda store: store.log.update_head(
                        head.head, head.head._replace(snapshot=name, rev=head.head.rev + 1)
                    )
                )

    @rule(key=tasks, name=ids, value=small)
    def store_step(self, key: TaskKey, name: str, value: int) -> None:
        self.both(lambda store: store.log.store_step(writer(key), name, StepResult(name, value)))

    @rule(key=tasks, ago=past, name=ids, incarnation=ids, replaces=st.booleans())
    def add_config(self, key: TaskKey, ago: int, name: str, incarnation: str, replaces: bool) -> None:  # noqa: FBT001
        self._see(key)
        replaced = self.both(lambda store: store.push.get_cursor(key, name)) if replaces else None
        if self.heads:
            before, new = _ago(self.heads, ago), config(name, incarnation)
            cursor = Cursor(name, incarnation)
            self.both(lambda store: store.push.add_config(before, decisions.mark_push(before), new, cursor, replaced))

    @rule(key=tasks, ago=past)
    def close_config(self, key: TaskKey, ago: int) -> None:
        self.cursors += self.both(lambda store: store.push.list_cursors(key))
        if self.cursors:
            before = _ago(self.cursors, ago)
            self.both(lambda store: store.push.close_config(key, before))

    @rule(key=tasks, ago=past, number=small, state=cursor_states, verification=verifications)
    def move_cursor(self, key: TaskKey, ago: int, number: int, state: CursorState, verification: Verification) -> None:
        self.cursors += self.both(lambda store: store.push.list_cursors(key))
        if self.cursors:
            before = _ago(self.cursors, ago)
            after = replace(before, position=number, state=state, lease_no=number, due_at=number or None)
            after = replace(after, verification=verification)
            self.both(lambda store: store.push.move_cursor(key, before, after))

    @rule(key=tasks, name=ids, incarnation=ids)
    def remove_config(self, key: TaskKey, name: str, incarnation: str) -> None:
        self.both(lambda store: store.push.remove_config(key, name, incarnation))

    @rule(key=tasks, name=ids, n=small, k=small)
    def record_attempt(self, key: TaskKey, name: str, n: int, k: int) -> None:
        self.both(lambda store: store.push.record_attempt(key, attempt(name, n, k), EXPIRES))

    @rule()
    def compare(self) -> None:
        self.both(lambda store: [_everything(store, key) for key in TASKS])
        self.both(_indexed)

    def _see(self, key: TaskKey) -> None:
        snapshot = self.both(lambda store: store.log.read_head(key))
        if snapshot:
            self.heads.append(snapshot.head)


def _everything(store: Store, key: TaskKey) -> list[Any]:
    reads = [store.log.read_head(key), store.log.read_log(key), store.log.read(key, 1), dict(store.log.read_steps(key))]
    tasks_read = [_read(store, key), _read_at(store, key)]
    webhooks = [store.push.list_configs(key), store.push.list_cursors(key), store.push.list_attempts(key)]
    return [
        *reads,
        *tasks_read,
        *webhooks,
        [store.log.find_idempotency(key, "echo", message_id) for message_id in ("a", "b")],
    ]


def _read(store: Store, key: TaskKey) -> object:
    """The task, which is what its log folds to. Some of these logs nobody could have written."""
    loaded = store.log.read_log(key)
    try:
        read = store.log.read_task(key)
        assert read == (loaded and (loaded[0], replay(key.task, "context", loaded[1])))
    except IllegalTransition:
        return None
    return read


def _read_at(store: Store, key: TaskKey) -> object:
    snapshot = store.log.read_head(key)
    try:
        return snapshot and store.log.read_task_at(snapshot.head, max(1, snapshot.last - 1))
    except IllegalTransition:
        return None


def _indexed(store: Store) -> list[Any]:
    due = (row for shard in range(SHARDS) for row in store.log.list_due(shard, NOW + 10**9))
    given_up = sorted(store.push.list_exhausted(), key=repr)
    return [
        sorted(due, key=repr),
        given_up,
        store.index.list_page(ME, None, None, 0, 3),
        store.index.list_page(ME, "context", None, 0, 1),
    ]


def _outcome(call: Callable[[Store], object], store: Store) -> object:
    try:
        return call(store)
    except RuntimeError as error:
        return repr(error)


def _ago(seen: list[T], ago: int) -> T:
    return seen[-1 - ago % len(seen)]


TestTwins = Twins.TestCase
# Not made smaller when it fails: moto copies its tables at every transaction, so that would take many minutes.
TestTwins.settings = settings(
    max_examples=12, stateful_step_count=40, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate)
)
