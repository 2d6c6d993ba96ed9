"""What only DynamoDB can do to the log: half-seen transactions, refusals without reasons, blobs, older items."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from a2a_serverless.domain import decisions
from a2a_serverless.domain import head as heads
from a2a_serverless.domain.cursors import Cursor
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.model import Principal, TaskKey
from a2a_serverless.domain.new_task import IdempotencyRecord
from a2a_serverless.domain.replay import replay
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.engine.run_session import RunSession
from a2a_serverless.protocol.v1 import Artifact, Part, TaskState
from a2a_serverless.store import items, keys
from a2a_serverless.store.payloads import ITEM_TEXT_LIMIT, PayloadCorrupted
from a2a_serverless.store.task_log import REREADS
from a2a_serverless.testing.simulated_deployment import Counter
from tests.contract.backends import LIMIT, NOW, client_at, dynamo, store_on
from tests.contract.tasks import (
    EXPIRES,
    KEY,
    chunk,
    config,
    created,
    head_of,
    moved,
    opening,
    progress,
    seen,
    taken,
    talked,
    writer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from a2a_serverless.protocol.v1 import Task
    from tests.contract.backends import Store

BIG = (Part(text="x" * 2 * LIMIT),)


@pytest.fixture
def client() -> Iterator[DynamoDBClient]:
    with mock_aws(), client_at(None) as made:
        yield made


@pytest.fixture
def store(client: DynamoDBClient) -> Iterator[Store]:
    with dynamo(client, "table", lambda _: None) as made:
        yield made


class Filtered:
    """A client whose answers to queries are changed on their way, by their items and their number."""

    def __init__(self, client: DynamoDBClient, change: Callable[[list[dict[str, Any]], int], Any]) -> None:
        self._client = client
        self._change = change
        self.queries = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def query(self, **parameters: Any) -> Any:
        answer: Any = self._client.query(**parameters)
        self.queries += 1
        return {**answer, "Items": self._change(answer["Items"], self.queries)}


class Silent:
    """A client of a table that refuses without saying what it found, as an emulator may."""

    def __init__(self, client: DynamoDBClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)

        def silent(**parameters: Any) -> Any:
            try:
                return call(**parameters)
            except ClientError as error:
                error.response.pop("Item", None)  # type: ignore[typeddict-item]
                for reason in error.response.get("CancellationReasons", []):
                    reason.pop("Item", None)
                raise

        return silent


def _through(client: Any) -> Store:
    return store_on(client, "table", lambda _: None)


# ---- Half-seen transactions


def test_a_log_that_is_read_before_its_last_event_shows_is_read_again(store: Store, client: DynamoDBClient) -> None:
    change = progress(taken(store.log))
    store.log.append(change)
    last = keys.event(3)
    late = Filtered(client, lambda found, query: [item for item in found if query > 2 or item["sk"]["S"] != last])
    loaded = _through(late).log.read_log(KEY)
    assert loaded is not None
    assert (loaded[0], loaded[1][-1]) == (change.after, change.event)
    assert late.queries == 3


def test_a_whole_log_is_read_in_one_query(store: Store, client: DynamoDBClient) -> None:
    change = progress(taken(store.log))
    store.log.append(change)
    counted = Filtered(client, lambda found, _: found)
    loaded = _through(counted).log.read_log(KEY)
    assert loaded is not None
    assert (loaded[0], loaded[1][-1], counted.queries) == (change.after, change.event, 1)


def test_a_log_that_is_read_with_an_older_head_ends_where_that_head_ends(store: Store, client: DynamoDBClient) -> None:
    snapshot = taken(store.log)
    older = _stored_head(client)
    store.log.append_chunk(writer(), chunk(3))
    store.log.append(progress(heads.CurrentHead(snapshot.head, 3)))
    early = Filtered(client, lambda found, _: _with_head(found, older))
    loaded = _through(early).log.read_log(KEY)
    assert loaded is not None
    assert (loaded[0], [event.n for event in loaded[1]]) == (snapshot.head, [1, 2, 3])


def test_rule_01_a_task_that_is_read_torn_is_whole_as_of_its_head(store: Store, client: DynamoDBClient) -> None:
    snapshot = taken(store.log)
    older = _stored_head(client)
    store.log.append_chunk(writer(), chunk(3))
    change = progress(heads.CurrentHead(snapshot.head, 3), TaskState.COMPLETED)
    store.log.append(change)
    old_head = Filtered(client, lambda found, _: _with_head(found, older))
    late_event = Filtered(
        client, lambda found, query: [item for item in found if query > 2 or item["sk"]["S"] != keys.event(4)]
    )
    reads = [_through(torn).log.read_task(KEY) for torn in (old_head, late_event)]
    told = [(read[0].rev, read[1].status.state, read[1].n, len(read[1].artifacts)) for read in reads if read]
    assert told == [
        (snapshot.head.rev, TaskState.WORKING, 3, 1),
        (change.after.rev, TaskState.COMPLETED, 4, 1),
    ]


def test_a_look_never_gives_a_last_number_behind_its_head(store: Store, client: DynamoDBClient) -> None:
    taken(store.log)
    late = Filtered(client, lambda found, _: found[:1])
    assert seen(_through(late).log).last == 2


def _other_runner(store: Store, snapshot: heads.CurrentHead) -> heads.CurrentHead:
    """The task once its lease ran out and another runner has taken it."""
    change = decisions.start_run(snapshot, now=NOW + 60_000, by="the other")
    assert store.log.append(change)
    return heads.CurrentHead(change.after, change.event.n)


def _chunk_of_another(store: Store, snapshot: heads.CurrentHead) -> heads.CurrentHead:
    after = _other_runner(store, snapshot)
    event = chunk(after.last + 1)._replace(fence=after.head.fence)
    assert store.log.append_chunk(writer(), event)
    return heads.CurrentHead(after.head, event.n)


def _canceled(store: Store, snapshot: heads.CurrentHead) -> heads.CurrentHead:
    change = decisions.cancel(snapshot, now=NOW + 3, by="the client")
    assert store.log.append(change)
    return heads.CurrentHead(change.after, change.event.n)


def _told_at_length(store: Store, snapshot: heads.CurrentHead) -> heads.CurrentHead:
    """A status whose text lies outside the table."""
    change = progress(snapshot, said="x" * 2 * LIMIT)
    assert store.log.append(change)
    return heads.CurrentHead(change.after, change.event.n)


HAPPENED = (_other_runner, _chunk_of_another, _canceled, _told_at_length)


@pytest.mark.parametrize("happens", HAPPENED)
@pytest.mark.parametrize("torn", [1, 3])
def test_rule_01_a_look_at_an_older_head_and_what_moved_it_is_taken_again(
    store: Store, client: DynamoDBClient, happens: Callable[[Store, heads.CurrentHead], heads.CurrentHead], torn: int
) -> None:
    snapshot = taken(store.log)
    older = _stored_head(client)
    after = happens(store, snapshot)
    early = Filtered(client, lambda found, query: _with_head(found, older) if query <= torn else found)
    assert seen(_through(early).log) == after
    assert early.queries == torn + 1


def test_rule_01_a_look_that_stays_torn_is_not_shown(store: Store, client: DynamoDBClient) -> None:
    snapshot = taken(store.log)
    older = _stored_head(client)
    _canceled(store, snapshot)
    early = Filtered(client, lambda found, _: _with_head(found, older))
    with pytest.raises(Overloaded):
        _through(early).log.read_head(KEY)
    assert early.queries <= REREADS + 1


@pytest.mark.parametrize("parts", [(), BIG], ids=["in its item", "outside the table"])
def test_a_look_behind_which_chunks_of_the_same_run_stand_is_one_query(
    store: Store, client: DynamoDBClient, parts: tuple[Part, ...]
) -> None:
    snapshot = taken(store.log)
    store.log.append_chunk(writer(), chunk(3, *parts))
    counted = Filtered(client, lambda found, _: found)
    reads = len(store.blobs.content)
    assert seen(_through(counted).log) == heads.CurrentHead(snapshot.head, 3), "no blob is fetched: this store has none"
    assert (counted.queries, reads) == (1, len(store.blobs.content))


@pytest.mark.parametrize("happens", [_other_runner, _canceled])
def test_rule_02_a_runner_whose_look_is_torn_writes_no_chunk_behind_what_stopped_it(
    store: Store, client: DynamoDBClient, happens: Callable[[Store, heads.CurrentHead], heads.CurrentHead]
) -> None:
    snapshot = taken(store.log)
    older = _stored_head(client)
    early = Filtered(client, lambda found, query: _with_head(found, older) if query == 1 else found)
    runner = RunSession(_through(early).log, Counter(), lambda: NOW, snapshot)
    runner.emit(Artifact(artifact_id="document", parts=(Part(text="late"),)), 1, append=False, last=True)
    last = happens(store, snapshot).last
    with pytest.raises(decisions.LeaseLost):
        runner.flush()
    loaded = store.log.read_log(KEY)
    assert loaded is not None
    assert loaded[1][-1].n == last, "nothing stands behind it"


def _stored_head(client: DynamoDBClient) -> dict[str, Any]:
    place = {"pk": {"S": keys.task(KEY)}, "sk": {"S": keys.HEAD}}
    return client.get_item(TableName="table", Key=place)["Item"]


def _with_head(found: list[dict[str, Any]], head: dict[str, Any]) -> list[dict[str, Any]]:
    """What a query finds that has seen one half of a transaction: its events, and the head before it."""
    return [head if item["sk"]["S"] == keys.HEAD else item for item in found]


def test_a_log_that_stays_torn_is_not_shown(store: Store, client: DynamoDBClient) -> None:
    taken(store.log)
    torn = Filtered(client, lambda found, _: [item for item in found if item["sk"]["S"] != keys.event(1)])
    with pytest.raises(Overloaded):
        _through(torn).log.read_log(KEY)


# ---- Folds


def _replayed(store: Store) -> None:
    """A task of three events whose log has a snapshot up to the second."""
    snapshot = taken(store.log)
    assert store.log.update_head(snapshot.head, decisions.set_snapshot(snapshot.head, 1, store.log.store_snapshot(KEY)))
    store.log.append_chunk(writer(), chunk(3))


def _whole(store: Store) -> Task:
    return replay(KEY.task, "context", store.log.read(KEY, 0))


def test_rule_01_a_task_with_a_fold_that_is_read_torn_is_whole_as_of_its_head(
    store: Store, client: DynamoDBClient
) -> None:
    _replayed(store)
    older, whole = _stored_head(client), store.log.read_task(KEY)
    assert store.log.append(progress(seen(store.log), TaskState.COMPLETED))
    torn: Any = Filtered(client, lambda found, _: _with_head(found, older))
    assert store_on(torn, "table", lambda _: None, store.blobs).log.read_task(KEY) == whole


def test_a_fold_lies_under_tenant_owner_and_task(store: Store) -> None:
    _replayed(store)
    assert [name.rpartition("/")[0] for name in store.blobs.content] == ["tenant/owner/task-1"]


def test_events_in_a_snapshot_are_not_read_from_the_table(store: Store, client: DynamoDBClient) -> None:
    _replayed(store)
    whole = _whole(store)
    for n in (1, 2):
        client.delete_item(TableName="table", Key={"pk": {"S": keys.task(KEY)}, "sk": {"S": keys.event(n)}})
    assert store.log.read_task(KEY) == (head_of(store.log), whole)
    assert store.log.read_task_at(head_of(store.log), 3) == whole


def _another_form(content: bytes) -> bytes:
    return json.dumps({**json.loads(content), "v": 2}).encode()


@pytest.mark.parametrize(
    "harm", [lambda _: b"", lambda content: content[:-1] + b" ", lambda _: None], ids=["cut", "changed", "gone"]
)
def test_a_fold_that_is_damaged_or_gone_is_as_good_as_none(store: Store, harm: Callable[[bytes], Any]) -> None:
    _replayed(store)
    [(name, content)] = store.blobs.content.items()
    store.blobs.delete(name)
    if (harmed := harm(content)) is not None:
        store.blobs.put(name, harmed)
    assert store.log.read_task(KEY) == (head_of(store.log), _whole(store))
    assert store.log.read_task_at(head_of(store.log), 3) == _whole(store)


def test_a_fold_in_the_form_of_another_release_is_as_good_as_none(store: Store) -> None:
    _replayed(store)
    content = _another_form(next(iter(store.blobs.content.values())))
    digest = sha256(content).hexdigest()
    store.blobs.put(f"tenant/owner/task-1/{digest}", content)
    head = head_of(store.log)
    assert store.log.update_head(head, decisions.set_snapshot(head, 1, f"2 {len(content)} {digest}"))
    assert store.log.read_task(KEY) == (head_of(store.log), _whole(store))


def test_rule_04_a_log_of_five_megabytes_is_read_in_one_query_that_ends_where_its_fold_does(
    client: DynamoDBClient,
) -> None:
    with dynamo(client, "long", lambda _: None, limit=ITEM_TEXT_LIMIT) as store:
        snapshot, text = taken(store.log), Part(text="x" * 250_000)
        for n in range(3, 23):
            store.log.append_chunk(writer(), chunk(n, text, append=n > 3))
        calls = Filtered(client, lambda found, _: found)
        reader = store_on(calls, "long", lambda _: None, store.blobs, ITEM_TEXT_LIMIT)  # type: ignore[arg-type]
        before = reader.log.read_task(KEY)
        assert calls.queries > 5
        assert store.log.update_head(
            snapshot.head, decisions.set_snapshot(snapshot.head, 1, store.log.store_snapshot(KEY))
        )
        store.log.append_chunk(writer(), chunk(23, text, append=True))
        calls.queries = 0
        read = reader.log.read_task(KEY)
        assert calls.queries == 1
        assert before is not None
        assert read is not None
        assert read[1].artifacts[0].text() == before[1].artifacts[0].text() + str(text.value)


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_content_that_is_not_asked_for_is_not_read(store: Store, *, with_snapshot: bool) -> None:
    talked(store.log, with_snapshot=with_snapshot)
    everything, little = store.log.read_part(KEY, None, artifacts=True), store.log.read_part(KEY, 1, artifacts=False)
    assert everything
    assert little
    assert (everything.size // 70_000, little.size // 70_000) == (4, 0)
    for name in [name for name, content in store.blobs.content.items() if len(content) > 70_000]:
        store.blobs.delete(name)
    read = store.log.read_part(KEY, 0, artifacts=False)
    assert read
    assert read.task == little.task.limited(0)
    assert (read.task.metadata, read.task.status.message) == ({"order": 7}, little.task.status.message)


# ---- Refusals that do not say what was found


def test_own_writes_are_known_again_although_the_refusal_does_not_show_them(
    store: Store, client: DynamoDBClient
) -> None:
    silent = _through(Silent(client))
    new, receipt = opening(sent="message"), IdempotencyRecord("echo", "again", "digest", KEY.task)
    assert [silent.log.create(new), silent.log.create(new)] == [None, None]
    change = decisions.start_run(seen(store.log), now=NOW, by="me")
    assert [silent.log.append(change, receipt), silent.log.append(change, receipt)] == [True, True]
    event = chunk(3)
    assert [silent.log.append_chunk(writer(), event), silent.log.append_chunk(writer(), event)] == [True, True]
    after = moved(change.after, lease_until=5)
    assert [silent.log.update_head(change.after, after), silent.log.update_head(change.after, after)] == [True, True]
    result = StepResult("", 1)
    assert silent.log.store_step(writer(), "step", result) == result
    assert silent.log.store_step(writer(), "step", StepResult("", 2)) == result


def test_a_foreign_write_is_not_taken_for_ones_own_although_the_refusal_does_not_show_it(
    store: Store, client: DynamoDBClient
) -> None:
    silent = _through(Silent(client))
    snapshot = taken(store.log)
    store.log.append(progress(snapshot))
    assert not silent.log.append(progress(snapshot))
    assert not silent.log.append_chunk(writer(), chunk(3))
    assert not silent.log.update_head(snapshot.head, moved(snapshot.head))
    created(store.log, KEY._replace(task="task-2"), sent="message")
    again = opening(KEY._replace(task="task-3"), sent="message")
    assert silent.log.create(again) == store.log.find_idempotency(KEY, "echo", "message")


def test_a_move_is_known_again_although_the_refusal_does_not_show_it(store: Store, client: DynamoDBClient) -> None:
    created(store.log, push="hook")
    silent, cursor = _through(Silent(client)), Cursor("hook", "first")
    claim = replace(cursor, lease_no=1, holder="me")
    assert [silent.push.move_cursor(KEY, cursor, claim), silent.push.move_cursor(KEY, cursor, claim)] == [True, True]
    assert not silent.push.move_cursor(KEY, cursor, replace(claim, holder="you"))


# ---- Blobs


def test_big_content_is_stored_before_the_event_that_points_to_it(store: Store) -> None:
    taken(store.log)
    event = chunk(3, *BIG)
    store.log.append_chunk(writer(), event)
    (name,) = store.blobs.content
    assert name.startswith("tenant/owner/task-1/")
    assert store.log.read(KEY, 2) == [event]


def test_a_status_is_looked_at_without_fetching_big_content(store: Store) -> None:
    taken(store.log)
    store.log.append_chunk(writer(), chunk(3, *BIG))
    store.blobs.content.clear()
    assert seen(store.log).last == 3
    with pytest.raises(PayloadCorrupted):
        store.log.read_log(KEY)


def test_a_step_with_a_big_result_is_read_back_and_checked(store: Store) -> None:
    created(store.log)
    store.log.store_step(writer(), "step", StepResult("", "x" * 2 * LIMIT))
    (name,) = store.blobs.content
    store.blobs.content[name] = b"something else"
    with pytest.raises(PayloadCorrupted):
        store.log.read_steps(KEY)


# ---- What cannot be stored, and what others stored


@pytest.mark.parametrize(
    "key", [TaskKey("x" * 301, "o", "t"), TaskKey("t", "é" * 51, "t"), TaskKey("t", "o", "x" * 301)]
)
def test_a_task_whose_key_could_not_be_read_back_is_refused(store: Store, key: TaskKey) -> None:
    assert store.log.read_head(key) is None
    with pytest.raises(ValueError, match="too long to be stored"):
        store.log.create(opening(key))
    assert store.log.read_head(key) is None


def test_a_webhook_whose_id_could_not_be_read_back_is_refused(store: Store) -> None:
    head = created(store.log).head
    assert store.push.get_config(KEY, "x" * 301) is None
    with pytest.raises(ValueError, match="too long to be stored"):
        store.push.add_config(head, moved(head), config("x" * 301), Cursor("x" * 301, "first"))
    assert head_of(store.log) == head


@pytest.mark.parametrize("sk", [keys.HEAD, keys.event(1), keys.step("step"), keys.push("hook"), keys.cursor("hook")])
def test_items_that_a_later_release_wrote_are_refused_in_words(store: Store, client: DynamoDBClient, sk: str) -> None:
    created(store.log, push="hook")
    store.log.store_step(writer(), "step", StepResult("", 1))
    _set(client, sk, "v", {"N": "3"})
    reads: list[Callable[[], object]] = [partial(read, KEY) for read in (store.log.read_log, store.log.read_steps)]
    reads += [partial(read, KEY, "hook") for read in (store.push.get_config, store.push.get_cursor)]
    with pytest.raises(items.UnknownVersion, match="stored in form 3; this release reads form"):
        [read() for read in reads]


def test_a_list_leaves_out_the_webhooks_that_a_newer_release_wrote(store: Store, client: DynamoDBClient) -> None:
    created(store.log, push="hook")
    for sk in (keys.push("hook"), keys.cursor("hook")):
        _set(client, sk, "v", {"N": "3"})
    assert (store.push.list_configs(KEY), store.push.list_cursors(KEY)) == ([], [])


def test_a_newer_release_may_add_attributes_that_this_one_leaves_alone(store: Store, client: DynamoDBClient) -> None:
    head = created(store.log).head
    _set(client, keys.HEAD, "news", {"S": "kept"})
    assert store.log.update_head(head, moved(head))
    place = {"pk": {"S": keys.task(KEY)}, "sk": {"S": keys.HEAD}}
    assert client.get_item(TableName="table", Key=place)["Item"]["news"] == {"S": "kept"}


def test_a_configuration_without_its_cursor_can_be_deleted(store: Store, client: DynamoDBClient) -> None:
    created(store.log, push="hook")
    client.delete_item(TableName="table", Key={"pk": {"S": keys.task(KEY)}, "sk": {"S": keys.cursor("hook")}})
    store.push.remove_config(KEY, "hook", "first")
    assert store.push.list_configs(KEY) == []


def test_a_daily_count_of_an_owner_expires_after_the_next_day(store: Store, client: DynamoDBClient) -> None:
    day = NOW // 86_400_000
    assert store.owners.count(Principal("tenant", "owner"), keys.UPLOADED, day, 86_400_000, 100, 1_000)
    (item,) = client.scan(TableName="table")["Items"]
    assert item["expires"] == {"N": str((day + 2) * 86_400)}


def test_every_item_of_a_task_has_the_expiry_of_the_task(store: Store, client: DynamoDBClient) -> None:
    snapshot = taken(store.log)
    store.log.append_chunk(writer(), chunk(3))
    store.log.store_step(writer(), "step", StepResult("", 1))
    store.push.add_config(snapshot.head, moved(snapshot.head), config(), Cursor("hook", "first"))
    found = client.scan(TableName="table")["Items"]
    assert {item["expires"]["N"] for item in found} == {str(EXPIRES)}
    assert len(found) == 7


def _set(client: DynamoDBClient, sk: str, attribute: str, value: Any) -> None:
    client.update_item(
        TableName="table",
        Key={"pk": {"S": keys.task(KEY)}, "sk": {"S": sk}},
        UpdateExpression="SET #a = :v",
        ExpressionAttributeNames={"#a": attribute},
        ExpressionAttributeValues={":v": value},
    )
