"""Rule 6, and what holds after an erasure: a run writes only while it has its task (``store.task_log``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.decisions import cancel, hand_over, renew_lease, resume_run
from a2a_serverless.domain.head import CurrentHead, Head
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.domain.values import StoredText, ValueScope
from a2a_serverless.protocol.v1 import Part, TaskState
from tests.contract.backends import LIMIT, NOW
from tests.contract.tasks import KEY, by, chunk, progress, seen, taken

if TYPE_CHECKING:
    from tests.contract.backends import Store

LARGE = Part(text="x" * 2 * LIMIT)
VALUE, LARGE_VALUE = StoredText("key", "text", "v"), StoredText("key", "x" * 2 * LIMIT, "v")


Write = Callable[["Store", Head], object]
WRITES_OF_RUNS: dict[str, Write] = {
    "a chunk": lambda store, head: store.log.append_chunk(head, chunk(3)),
    "a large chunk": lambda store, head: store.log.append_chunk(head, chunk(3, LARGE)),
    "a step": lambda store, head: store.log.store_step(head, "step", StepResult("", 1)),
    "a large step": lambda store, head: store.log.store_step(head, "step", StepResult("", "x" * 2 * LIMIT)),
    "a callback": lambda store, head: store.log.store_callback(head, "address", "call"),
    "a status": lambda store, head: store.log.append(progress(CurrentHead(head, 2))),
    "a value": lambda store, head: store.values.put_value(head, ValueScope(KEY), VALUE, None),
    "a large value": lambda store, head: store.values.put_value(head, ValueScope(KEY), LARGE_VALUE, None),
    "a renewal": lambda store, head: store.log.update_head(head, renew_lease(head, head.fence, now=NOW + 3)),
}
"""The writes of a run with this head."""


@pytest.mark.parametrize("write", WRITES_OF_RUNS)
def test_a_run_that_slept_through_its_task_s_erasure_writes_nothing_more(store: Store, write: str) -> None:
    head = taken(store.log).head
    assert store.log.append(cancel(seen(store.log), now=NOW + 3, by=by()))
    store.erasure_store.erase_task(KEY)
    store.now.ms = head.lease_until
    assert not WRITES_OF_RUNS[write](store, head)
    assert store.left() == 0
    assert store.blobs.content == {}


@pytest.mark.parametrize("write", WRITES_OF_RUNS)
def test_rule_06_a_run_that_slept_through_its_lease_writes_only_if_nobody_else_has_its_task(
    store: Store, write: str
) -> None:
    head = taken(store.log).head
    store.now.ms = head.lease_until
    assert WRITES_OF_RUNS[write](store, head)


@pytest.mark.parametrize("write", WRITES_OF_RUNS)
def test_rule_06_a_run_that_slept_through_its_lease_writes_nothing_if_another_has_its_task(
    store: Store, write: str
) -> None:
    head = taken(store.log).head
    assert store.log.update_head(head, resume_run(head, now=head.lease_until, by="the other"))
    store.now.ms = head.lease_until
    before = store.left()
    assert not WRITES_OF_RUNS[write](store, head)
    assert (store.left(), store.blobs.content) == (before, {})


def test_rule_06_of_two_runs_that_take_a_task_in_the_same_millisecond_one_gets_it(store: Store) -> None:
    head = taken(store.log).head
    free = hand_over(head, head.fence, now=NOW + 2)
    assert store.log.update_head(head, free)
    first, second = (resume_run(free, now=NOW + 3, by=run) for run in ("first", "second"))
    assert store.log.update_head(free, first)
    assert not store.log.update_head(free, second)
    assert store.log.update_head(free, first), "its answer was lost, so it is sent again"


def test_the_task_of_a_call_is_stored_in_a_canceled_task_but_not_in_an_erased_task(store: Store) -> None:
    head, sent = taken(store.log).head, StepResult("", {"task": "other"})
    assert store.log.append(cancel(seen(store.log), now=NOW + 3, by=by()))
    store.now.ms = head.lease_until
    assert store.log.store_step(head, "@call/c/sent", sent, of_run=False) == sent
    store.erasure_store.erase_task(KEY)
    assert store.log.store_step(head, "@call/c/sent", sent, of_run=False) is None
    assert store.left() == 0


def test_rule_02_a_run_that_has_ended_its_task_writes_nothing_behind_the_end(store: Store) -> None:
    done = progress(taken(store.log), TaskState.COMPLETED)
    assert store.log.append(done)
    before = store.left()
    assert not store.log.append_chunk(done.after, chunk(4))
    assert store.log.store_step(done.after, "step", StepResult("", 1)) is None
    assert store.values.put_value(done.after, ValueScope(KEY), VALUE, None) is None
    assert store.left() == before


def test_rule_02_a_chunk_behind_the_final_status_is_not_shown(store: Store) -> None:
    head = taken(store.log).head
    assert store.log.append(progress(seen(store.log), TaskState.COMPLETED))
    assert store.log.append_chunk(head, chunk(4)), "by a run that knows no better"
    read = store.log.read_task(KEY)
    assert read
    assert (read[1].status.state, read[1].artifacts) == (TaskState.COMPLETED, ())
