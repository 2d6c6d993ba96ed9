"""Erasing leaves nothing, touches nobody else, and goes on where it was interrupted."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws

from a2a_serverless.domain.access import ApiKey
from a2a_serverless.domain.call_records import OpenedCall
from a2a_serverless.domain.challenges import ChallengeState
from a2a_serverless.domain.contents import UPLOADS, StoredFile
from a2a_serverless.domain.decisions import cancel, follow_up, start_run
from a2a_serverless.domain.events import Incoming
from a2a_serverless.domain.model import DAY_MS, Principal, TaskKey, path
from a2a_serverless.domain.new_task import IdempotencyRecord
from a2a_serverless.domain.outside_events import event_digest
from a2a_serverless.domain.record_names import call_name
from a2a_serverless.domain.schedules import SCHEDULE
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.domain.values import StoredText, ValueScope
from a2a_serverless.protocol.v1 import Part
from a2a_serverless.services.retries import METADATA_KEY
from a2a_serverless.store.keys import UPLOADED
from a2a_serverless.testing.simulated_deployment import Counter
from a2a_serverless_tools.operators.erasure import (
    ERASE_AFTER_MS,
    Counts,
    ErasureScope,
    ErasureService,
    Progress,
    count,
    erase,
)
from a2a_serverless_tools.operators.erasure_store import PAGE
from tests.contract.backends import LIMIT, NOW, client_at, dynamo, store_on
from tests.contract.tasks import EXPIRES, KEY, attempt, by, chunk, config, message, opening, seen, taken, writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.contract.backends import Store

NEARBY = pytest.mark.parametrize("store", ["memory", "moto_client"], indirect=True)  # the first test is for all stores
ALICE = Principal(KEY.tenant, KEY.owner)
BOB = Principal(KEY.tenant, "bob")
MOST_CALLS_ARE_SEEN = 20
BIG = Part(text="x" * (LIMIT + 1))


class Clock:
    """The store's clock, which sleeping moves."""

    def __init__(self, store: Store) -> None:
        self._now = store.now

    def now(self) -> int:
        return self._now.ms

    def sleep(self, seconds: float) -> None:
        self._now.ms += int(seconds * 1000)


def wanted(principal: Principal, **part: str) -> ErasureScope:
    return ErasureScope(principal, **part)


def erasure(store: Store) -> ErasureService:
    return ErasureService(
        log=store.log,
        store=store.push,
        erasure_store=store.erasure_store,
        blobs=store.blobs,
        api_keys=store.api_keys,
        clock=Clock(store),
        ids=Counter(),
    )


def erase_all(given: ErasureService, scope: ErasureScope) -> Counts:
    return erase(given, scope, lambda _: None)


def store_call(store: Store, key: TaskKey, callback: str) -> None:
    """A call of the task, with this callback address."""
    name, url = call_name(callback), f"https://a.example.com/callbacks/{callback}"
    opened = OpenedCall("child", "digest", "message", "token", NOW, url, "https://a.example.com/child")
    store.log.store_step(writer(key), name.opened, StepResult("d", opened.value))
    store.log.store_callback(writer(key), callback, name.opened)


def full(store: Store, key: TaskKey = KEY) -> None:
    """A task with one of everything, in the middle of a run."""
    sent = f"message of {key.task}"
    made = opening(key, sent=sent, push="hook", parts=(BIG,))
    assert made.event.incoming
    message = made.event.incoming.message.model_copy(update={"message_id": sent})
    event = made.event._replace(incoming=replace(made.event.incoming, message=message))
    assert store.log.create(made._replace(event=event)) is None
    snapshot = seen(store.log, key)
    assert store.log.append(start_run(snapshot, now=NOW + 1, by=by()))
    store.log.append_chunk(writer(key), chunk(3, BIG))
    store.log.store_snapshot(key)
    store.log.store_step(writer(key), "step", StepResult("d", "x" * (LIMIT + 1)))
    store_call(store, key, f"call-{key.owner}-{key.task}")
    address = event_digest(f"event-{key.owner}-{key.task}")
    opened = StepResult("", f"https://api.example.com/events/event-{key.owner}-{key.task}")
    assert store.log.store_callback(writer(key), address, "@event/paid", ("@event/paid", opened))
    store.push.record_attempt(key, attempt(), EXPIRES)
    head = seen(store.log, key).head
    for scope in (ValueScope(key), ValueScope(key, head.context_id)):
        store.values.put_value(head, scope, StoredText("key", f"{key.task} {'x' * LIMIT}", "v1"), None)


def owned(store: Store, principal: Principal) -> None:
    """What is kept of an owner itself."""
    store.owners.count(principal, UPLOADED, NOW // DAY_MS, DAY_MS, 1, 10)
    store.owners.lease_stream(principal, "stream", NOW + 60_000)
    store.push.count_webhook(principal.key("any"), NOW // 86_400_000, 10)
    store.push.store_challenge_state(
        principal.key("any"), "hooks.example.com", ChallengeState(), ChallengeState(sent=1), EXPIRES
    )
    store.api_keys.add(ApiKey(f"digest-of-{principal.owner}", principal, "", NOW))


@pytest.mark.requirement(123)
def test_an_owner_is_erased_with_everything_and_nobody_else(store: Store) -> None:
    for principal in (ALICE, BOB):
        full(store, principal.key("task-1"))
        owned(store, principal)
    before, blobs = store.left(), len(store.blobs.content)
    done = erase_all(erasure(store), wanted(ALICE))
    assert (done.tasks, done.api_keys) == (1, 1)
    assert (store.left(), len(store.blobs.content)) == (before // 2, blobs // 2)
    assert [key.principal for key in store.api_keys.list_all()] == [BOB]
    assert count(erasure(store), wanted(ALICE)) == Counts()
    assert store.log.read_log(BOB.key("task-1")) is not None
    assert store.log.find_callback("call-bob-task-1") is not None
    erase_all(erasure(store), wanted(BOB))
    assert (store.left(), store.blobs.content) == (0, {})


@NEARBY
def test_a_task_is_erased_with_its_receipt_and_addresses_and_the_next_one_stays(store: Store) -> None:
    full(store)
    full(store, KEY._replace(task="task-2"))
    done = erase_all(erasure(store), wanted(ALICE, task="task-1"))
    of_tasks = [name for name in store.blobs.content if "/%40" not in name]  # the conversation's values stay
    assert (done.tasks, done.blobs) == (1, len(of_tasks))
    assert store.log.find_idempotency(KEY, "echo", "message of task-1") is None
    assert store.log.find_idempotency(KEY, "echo", "message of task-2") is not None
    assert store.log.read_head(KEY) is None
    assert store.log.find_callback("call-owner-task-1") is None
    assert store.log.find_callback(event_digest("event-owner-task-1")) is None
    assert store.log.find_callback(event_digest("event-owner-task-2")) is not None
    assert store.push.list_configs(KEY) == []
    assert seen(store.log, KEY._replace(task="task-2")).last == 3


@NEARBY
def test_erasing_a_task_erases_its_uploads_and_no_others(store: Store) -> None:
    uploads = path(KEY.tenant, KEY.owner, UPLOADS)
    mine, other = (StoredFile(UPLOADS, letter * 64, 3) for letter in "ab")
    for file in (mine, other):
        store.blobs.put(f"{uploads}/{file.sha256}", b"abc")
    store.log.create(opening(KEY, parts=(Part(url=mine.address),)))
    assert erase_all(erasure(store), wanted(ALICE, task="task-1")).blobs == 1
    assert list(store.blobs.content) == [f"{uploads}/{other.sha256}"]


@NEARBY
def test_a_retry_is_erased_with_the_record_of_its_request_and_without_that_of_the_failed_task_s_message(
    store: Store,
) -> None:
    store.log.create(opening(sent="m-1"))
    new = opening(KEY._replace(task="task-2"), sent="m-1")
    assert new.event.incoming
    retried = replace(new.event.incoming, metadata={METADATA_KEY: {"taskId": "task-1", "requestId": "r"}})
    receipt = IdempotencyRecord("echo", "r", "digest", "task-2", "retry")
    store.log.create(new._replace(event=new.event._replace(incoming=retried), idempotency=receipt))
    assert store.log.find_idempotency(KEY, "echo", "r", "retry") == receipt
    erase_all(erasure(store), wanted(ALICE, task="task-2"))
    found = [store.log.find_idempotency(KEY, "echo", "m-1"), store.log.find_idempotency(KEY, "echo", "r", "retry")]
    assert [one and one.task for one in found] == ["task-1", None]


@NEARBY
def test_the_task_of_a_tick_is_erased_with_the_record_of_the_tick(store: Store) -> None:
    new = opening(sent="tick")
    assert new.event.incoming
    incoming = replace(new.event.incoming, metadata={SCHEDULE: "nightly"})
    incoming = replace(incoming, message=incoming.message.model_copy(update={"message_id": "tick"}))
    receipt = IdempotencyRecord("echo", "tick", "", KEY.task, "tick")
    store.log.create(new._replace(event=new.event._replace(incoming=incoming), idempotency=receipt))
    assert store.log.find_idempotency(KEY, "echo", "tick", "tick") == receipt
    erase_all(erasure(store), wanted(ALICE, task=KEY.task))
    assert store.log.find_idempotency(KEY, "echo", "tick", "tick") is None


@NEARBY
def test_erasing_a_task_erases_uploads_receipts_and_callbacks_of_its_messages_and_calls(store: Store) -> None:
    files = [StoredFile(UPLOADS, letter * 64, 3) for letter in "ab"]
    for file in files:
        store.blobs.put(f"{path(KEY.tenant, KEY.owner, UPLOADS)}/{file.sha256}", b"abc")
    store.log.create(opening(sent="m-1", parts=(Part(url=files[0].address),)))
    answer = Incoming(message(Part(url=files[1].address), message_id="m-2"))
    receipt = IdempotencyRecord("echo", "m-2", "digest", KEY.task)
    assert store.log.append(follow_up(seen(store.log), answer, now=NOW + 1, by=by()), receipt)
    for name in ("one", "two"):
        store_call(store, KEY, name)
    erase_all(erasure(store), wanted(ALICE, task="task-1"))
    assert [store.log.find_idempotency(KEY, "echo", sent) for sent in ("m-1", "m-2")] == [None, None]
    assert [store.log.find_callback(name) for name in ("one", "two")] == [None, None]
    assert (store.left(), store.blobs.content) == (0, {})


@NEARBY
def test_a_context_is_erased_and_other_contexts_stay(store: Store) -> None:
    full(store)
    elsewhere = opening(KEY._replace(task="task-2"))
    other = elsewhere._replace(head=elsewhere.head._replace(context_id="another"))
    store.log.create(other)
    assert count(erasure(store), wanted(ALICE, context="context")).tasks == 1
    elsewhere_too = ValueScope(KEY, "another")
    store.values.put_value(seen(store.log).head, elsewhere_too, StoredText("key", "stays", "v1"), None)
    erase_all(erasure(store), wanted(ALICE, context="context"))
    assert store.log.read_head(KEY) is None
    assert store.values.get_value(ValueScope(KEY, "context"), "key") is None
    stays = store.values.get_value(elsewhere_too, "key")
    assert stays
    assert (stays.text, stays.version) == ("stays", "v1")
    assert store.blobs.content == {}
    assert seen(store.log, KEY._replace(task="task-2")).head.context_id == "another"


@NEARBY
def test_counting_says_what_erasing_would_do_and_changes_nothing(store: Store) -> None:
    full(store)
    owned(store, ALICE)
    before, blobs = store.left(), len(store.blobs.content)
    found = count(erasure(store), wanted(ALICE))
    assert (found.tasks, found.blobs, found.api_keys) == (1, blobs, 1)
    assert (store.left(), len(store.blobs.content)) == (before, blobs)
    assert not seen(store.log).head.is_terminal


@NEARBY
def test_counting_a_context_or_an_owner_counts_what_they_share(store: Store) -> None:
    full(store)
    of_tasks = store.erasure_store.count_items(KEY)
    assert count(erasure(store), wanted(ALICE, task="task-1")).items == of_tasks
    assert store.erasure_store.count_context_items(ALICE, "context") == 1, "the conversation's value"
    assert count(erasure(store), wanted(ALICE, context="context")).items == of_tasks + 1
    owned(store, ALICE)
    shared = store.erasure_store.count_owner_items(ALICE)
    assert count(erasure(store), wanted(ALICE)).items == of_tasks + shared
    assert shared == store.erasure_store.erase_owner(ALICE) > 1
    assert of_tasks == store.erasure_store.erase_task(KEY) > 1


@NEARBY
@pytest.mark.parametrize("part", [{"task": "task-1"}, {"context": "context"}, {}])
def test_erasing_reports_what_counting_had_said_but_for_what_comes_and_goes_on_the_way(
    store: Store, part: dict[str, str]
) -> None:
    """The cancel's event comes on top, and what the log names: a record, two addresses. Two of a webhook go before."""
    full(store)
    owned(store, ALICE)
    counted = count(erasure(store), wanted(ALICE, **part))
    conversations = [name for name in store.blobs.content if "/%40" in name]
    assert counted.blobs == len(store.blobs.content) - (len(conversations) if "task" in part else 0)
    done = erase_all(erasure(store), wanted(ALICE, **part))
    assert done == replace(counted, items=counted.items + 1 + 3 - 2)


@pytest.mark.parametrize("store", ["memory"], indirect=True)
def test_an_owner_of_more_tasks_than_a_page_of_them_is_counted_and_erased_whole(store: Store) -> None:
    for number in range(2 * PAGE + 1):
        store.log.create(opening(KEY._replace(task=f"task-{number}")))
    assert count(erasure(store), wanted(ALICE)).tasks == 2 * PAGE + 1
    assert erase_all(erasure(store), wanted(ALICE)).tasks == 2 * PAGE + 1
    assert store.left() == 0


@NEARBY
def test_a_task_that_runs_is_canceled_and_left_until_its_runner_must_have_noticed(store: Store) -> None:
    taken(store.log)
    store.log.create(opening(KEY._replace(task="never-ran")))
    waits: list[Progress] = []

    def report(progress: Progress) -> None:
        if progress.left:
            waits.append(progress)
            assert seen(store.log).head.state == "canceled"
            assert store.log.read_head(KEY._replace(task="never-ran")) is None

    assert erase(erasure(store), wanted(ALICE), report).tasks == 2
    assert waits == [Progress(Counts(tasks=1, items=waits[0].erased.items), 1, NOW + ERASE_AFTER_MS)]
    assert store.now.ms == NOW + ERASE_AFTER_MS
    assert store.left() == 0


@NEARBY
def test_a_task_that_ends_while_it_is_canceled_is_left_as_long(store: Store) -> None:
    taken(store.log)
    store.now.ms += 2 * ERASE_AFTER_MS
    service = erasure(store)

    def ends() -> None:
        snapshot = seen(store.log)
        assert store.log.append(cancel(snapshot, now=store.now.ms, by="another"))

    broken, _ = disturbed(store, 3, ends, after=True)  # of the keys, the task's items, its head
    waits: list[Progress] = []
    erase(replace(broken, erasure_store=service.erasure_store, api_keys=service.api_keys), wanted(ALICE), waits.append)
    assert [one.until for one in waits if one.left] == [NOW + 3 * ERASE_AFTER_MS]


class Interrupted(Exception):
    """The line went dead."""


class Disturbed:
    """A port at whose n-th call something happens, before it or after it took effect; all ports count together."""

    def __init__(self, real: Any, happens: Callable[[], object], left: list[int], *, after: bool) -> None:
        self._real = real
        self._happens = happens
        self._left = left
        self._after = after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)

        def called(*arguments: Any, **named: Any) -> Any:
            self._left[0] -= 1
            now = self._left[0] == 0
            if now and not self._after:
                self._happens()
            answer = found(*arguments, **named)
            if now and self._after:
                self._happens()
            return answer

        return called


def disturbed(store: Store, at: int, happens: Callable[[], object], *, after: bool) -> tuple[ErasureService, list[int]]:
    """A rubber at whose call number ``at`` something happens, and how many calls are left until then."""
    left = [at]
    ports = {"log": store.log, "store": store.push, "erasure_store": store.erasure_store}
    ports |= {"blobs": store.blobs, "api_keys": store.api_keys}
    changed: Any = {name: Disturbed(port, happens, left, after=after) for name, port in ports.items()}
    return replace(erasure(store), **changed), left


def dies() -> None:
    raise Interrupted


def filled(store: Store, number: int) -> None:
    """Two owners, each with a task and all that is kept of it; ``number`` tells the tasks of all calls apart."""
    store.now.ms = NOW
    for principal in (ALICE, BOB):
        full(store, principal.key(f"task-{number}"))
        owned(store, principal)


@pytest.mark.parametrize("store", ["memory"], indirect=True)
@pytest.mark.parametrize("after", [False, True])
def test_erasing_an_owner_after_a_death_at_any_call_leaves_only_other_owners(store: Store, *, after: bool) -> None:
    at, left = 1, [0]
    while left[0] <= 0:
        filled(store, at)
        of_both, blobs = store.left(), len(store.blobs.content)
        broken, left = disturbed(store, at, dies, after=after)
        with suppress(Interrupted):
            erase_all(broken, wanted(ALICE))
        erase_all(erasure(store), wanted(ALICE))
        assert (store.left(), len(store.blobs.content)) == (of_both // 2, blobs // 2), at
        assert [key.principal for key in store.api_keys.list_all()] == [BOB]
        erase_all(erasure(store), wanted(BOB))
        assert (store.left(), store.blobs.content, store.api_keys.list_all()) == (0, {}, [])
        at += 1
    assert at > MOST_CALLS_ARE_SEEN


@pytest.mark.parametrize("store", ["memory"], indirect=True)
@pytest.mark.parametrize("after", [False, True])
def test_two_erasers_at_once_leave_nothing_and_touch_nobody_else(store: Store, *, after: bool) -> None:
    """At each call of the one, another one begins and ends."""
    at, left = 1, [0]
    while left[0] <= 0:
        filled(store, at)
        of_both, blobs = store.left(), len(store.blobs.content)
        one, left = disturbed(store, at, partial(erase_all, erasure(store), wanted(ALICE)), after=after)
        erase_all(one, wanted(ALICE))
        assert (store.left(), len(store.blobs.content)) == (of_both // 2, blobs // 2), at
        assert [key.principal for key in store.api_keys.list_all()] == [BOB]
        erase_all(erasure(store), wanted(BOB))
        at += 1
    assert at > MOST_CALLS_ARE_SEEN


@pytest.mark.parametrize("after", [False, True])
def test_erasing_an_owner_after_a_death_at_a_request_to_dynamodb_leaves_no_item(*, after: bool) -> None:
    """At every thirteenth request, because each is a whole erasing."""
    with mock_aws(), client_at(None) as client, dynamo(client, "erased", lambda _: None) as store:
        at, left = 1, [0]
        while left[0] <= 0:
            store.now.ms = NOW
            full(store, ALICE.key(f"task-{at}"))
            owned(store, ALICE)
            left = [at]
            failing: Any = Disturbed(client, dies, left, after=after)
            broken = replace(store_on(failing, "erased", lambda _: None, store.blobs, LIMIT), now=store.now)
            with suppress(Interrupted):
                erase_all(erasure(broken), wanted(ALICE))
            erase_all(erasure(store), wanted(ALICE))
            assert (store.left(), store.blobs.content) == (0, {}), at
            at += 13
        assert at > MOST_CALLS_ARE_SEEN


@pytest.mark.parametrize("deleted", [1, 3])
def test_a_task_that_is_half_erased_still_has_its_head_by_which_it_is_found(deleted: int) -> None:
    with mock_aws(), client_at(None) as client, dynamo(client, "erased", lambda _: None) as store:
        full(store)
        failing: Any = Disturbed(client, dies, [2 + deleted], after=False)  # the keys are read first
        with pytest.raises(Interrupted):
            store_on(failing, "erased", lambda _: None, store.blobs, LIMIT).erasure_store.erase_task(KEY)
        assert store.erasure_store.list_tasks(ALICE, None, None) == ([KEY], None)
        store.erasure_store.erase_task(KEY)
        assert store.erasure_store.list_tasks(ALICE, None, None) == ([], None)


@NEARBY
def test_progress_is_reported_task_by_task(store: Store) -> None:
    for number in range(3):
        store.log.create(opening(KEY._replace(task=f"task-{number}")))
    met: list[Progress] = []
    done = erase(erasure(store), wanted(ALICE), met.append)
    assert [(one.erased.tasks, one.left) for one in met] == [(1, 0), (2, 0), (3, 0)]
    assert done.tasks == 3
    assert count(erasure(store), wanted(ALICE)) == Counts()


@NEARBY
def test_a_task_that_an_owner_sends_during_the_erasing_is_erased(store: Store) -> None:
    taken(store.log)

    def report(progress: Progress) -> None:
        if progress.left:
            store.log.create(opening(KEY._replace(task="meanwhile")))

    assert erase(erasure(store), wanted(ALICE), report).tasks == 2
    assert count(erasure(store), wanted(ALICE)) == Counts()


@NEARBY
def test_erasing_an_owner_erases_tasks_that_have_expired(store: Store) -> None:
    store.log.create(opening(sent="m-1"))
    store.now.ms = EXPIRES * 1000
    assert store.log.read_head(KEY) is None
    assert count(erasure(store), wanted(ALICE)).tasks == 1
    erase_all(erasure(store), wanted(ALICE))
    assert store.left() <= 1  # the receipt of a log that nobody can read any more ends with it


@NEARBY
def test_config_and_cursor_of_a_task_are_closed_before_they_go(store: Store) -> None:
    store.log.create(opening(push="hook"))
    cursor = store.push.get_cursor(KEY, "hook")
    assert cursor is not None
    assert store.push.move_cursor(KEY, cursor, replace(cursor, lease_until=NOW + 5_000, lease_no=1, holder="notifier"))
    erase_all(erasure(store), wanted(ALICE))
    assert store.now.ms >= NOW + 5_000
    assert store.push.get_config(KEY, config().config_id) is None
