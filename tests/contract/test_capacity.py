"""What storage costs in DynamoDB's units, indexes and idempotency counted, for an ordinary task.

dynoxide reports the units, by rules that its authors have recorded of DynamoDB.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.adapters.clock import SystemClock, UuidIds
from a2a_serverless.domain import decisions
from a2a_serverless.domain import head as heads
from a2a_serverless.domain.access import Caller, Quota
from a2a_serverless.domain.cursors import Cursor
from a2a_serverless.domain.events import Incoming
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.new_task import IdempotencyRecord, NewTask
from a2a_serverless.domain.values import StoredText, ValueScope
from a2a_serverless.protocol.v1 import Artifact, ListTasksRequest, Message, Part, Role, TaskState
from a2a_serverless.services.listing import TaskLister, list_tasks
from a2a_serverless.services.rate_limiter import RateLimiter
from a2a_serverless.store import keys
from a2a_serverless.testing.memory import MemorySealer
from tests.contract.backends import NOW, dynamo
from tests.contract.meter import Meter, metering
from tests.contract.tasks import attempt, by, chunk, config, moved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from a2a_serverless.domain.head import CurrentHead
    from tests.contract.backends import Store

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration, pytest.mark.xdist_group("dynoxide_client")]

TASK: Final = "0b8f7c1e-5f9e-4f0b-9d2e-1f5a7d3c9e11"
KEY: Final = Principal("acme", "auth0|5f7c8ec7c33c6c004bbafe82").key(TASK)
CONTEXT: Final = "7d9a4f8a-30f2-4a53-8c1b-3b8a2c5d7e90"
DAY_MS: Final = 86_400_000
LIFE: Final = decisions.TaskLifetime(7 * DAY_MS, 30 * DAY_MS)
CALLER: Final = Caller(
    Principal(KEY.tenant, KEY.owner), frozenset({"a2a:document", "a2a:outline", "a2a:read"}), key="d" * 64
)
KILOBYTE: Final = 1024
TEXT: Final = "Write a short document about the sea. " * 13


@pytest.fixture
def metered(dynoxide_client: DynamoDBClient) -> Iterator[tuple[Store, Meter]]:
    """A store on dynoxide and a meter on its client."""
    with dynamo(dynoxide_client, "capacity", time.sleep) as store, metering(dynoxide_client) as meter:
        yield store, meter


def _opening(push: str | None = None) -> NewTask:
    message = Message(message_id="5b1f2c3d-message", role=Role.USER, parts=(Part(text=TEXT),), context_id=CONTEXT)
    head, event = decisions.submit(
        KEY, "document", CONTEXT, Incoming(message), now=NOW, by=by(), life=LIFE, push=push is not None, caller=CALLER
    )
    receipt = IdempotencyRecord("document", message.message_id, "d" * 64, TASK)
    return NewTask(head, event, receipt, ((config(push), Cursor(push, "i" * 36)),) if push else ())


def _run(store: Store) -> CurrentHead:
    """Submitted, working, one small artifact, completed: as the api and a worker write it."""
    assert store.log.create(_opening()) is None
    taken = decisions.start_run(heads.CurrentHead(_opening().head, 1), now=NOW + 200, by=by())
    assert store.log.append(taken)
    artifact = Artifact(artifact_id="document", parts=(Part(text=TEXT),), name="document.md")
    assert store.log.append_chunk(taken.after, chunk(3)._replace(artifact=artifact))
    done = decisions.report_status(
        heads.CurrentHead(taken.after, 3), 1, TaskState.COMPLETED, None, now=NOW + 900, by=by()
    )
    assert store.log.append(done)
    return heads.CurrentHead(done.after, 4)


def test_a_queued_task_with_one_small_artifact_costs_28_units_in_5_calls_at_most(metered: tuple[Store, Meter]) -> None:
    store, meter = metered
    _run(store)
    assert meter.writes == len(meter.calls) == 4
    assert meter.units <= 28


def test_a_head_stays_below_one_kilobyte(metered: tuple[Store, Meter], dynoxide_client: DynamoDBClient) -> None:
    store, _ = metered
    _run(store)
    where = {"pk": {"S": keys.task(KEY)}, "sk": {"S": keys.HEAD}}
    item: dict[str, Any] = dict(dynoxide_client.get_item(TableName="capacity", Key=where)["Item"])
    values = (text for value in item.values() for text in value.values())
    size = sum(map(len, item)) + sum(1 if text is True else len(text.encode()) for text in values)
    assert size < KILOBYTE


def test_a_poll_of_the_status_is_one_strong_read_of_one_unit(metered: tuple[Store, Meter]) -> None:
    store, meter = metered
    _run(store)
    meter.reset()
    store.log.read_head(KEY)
    assert (meter.calls, meter.units) == (["Query"], 1.0)


def test_a_log_below_a_megabyte_is_loaded_in_one_call(metered: tuple[Store, Meter]) -> None:
    store, meter = metered
    assert store.log.create(_opening()) is None
    taken = decisions.start_run(heads.CurrentHead(_opening().head, 1), now=NOW + 200, by=by())
    assert store.log.append(taken)
    for n in range(3, 500):
        event = chunk(n)._replace(artifact=Artifact(artifact_id="document", parts=(Part(text="x" * 1700),)))
        assert store.log.append_chunk(taken.after, event)
    meter.reset()
    loaded = store.log.read_log(KEY)
    assert loaded is not None
    assert len(loaded[1]) == 499
    assert meter.calls == ["Query"]


def test_a_page_of_tasks_is_one_query_of_an_index_and_one_of_each_task_that_is_shown(
    metered: tuple[Store, Meter],
) -> None:
    store, meter = metered
    for number in range(5):
        opening = _opening()
        key = KEY._replace(task=f"{TASK}-{number}")
        head = opening.head._replace(key=key)
        receipt = IdempotencyRecord("document", f"m-{number}", "d" * 64, key.task)
        assert store.log.create(opening._replace(head=head, idempotency=receipt)) is None
    lister, query = (
        TaskLister(store.log, store.index, MemorySealer()),
        ListTasksRequest(context_id=CONTEXT, page_size=2),
    )
    principal = Principal(KEY.tenant, KEY.owner)
    meter.reset()
    first = list_tasks(lister, principal, "document", query)
    assert (len(first.tasks), first.total_size, meter.calls) == (2, 5, ["Query"] * 3)
    meter.reset()
    second = list_tasks(lister, principal, "document", query.model_copy(update={"page_token": first.next_page_token}))
    assert (len(second.tasks), meter.calls) == (2, ["Query"] * 3)


def test_a_lease_is_renewed_for_one_unit_because_no_index_carries_it(metered: tuple[Store, Meter]) -> None:
    store, meter = metered
    store.log.create(_opening())
    head = _opening().head
    meter.reset()
    assert store.log.update_head(head, moved(head, lease_until=NOW + 30_000))
    assert (meter.calls, meter.units) == (["UpdateItem"], 1.0)


def test_a_delivered_webhook_adds_3_units_at_most(metered: tuple[Store, Meter]) -> None:
    store, meter = metered
    opening = _opening(push="hook")
    store.log.create(opening)
    ((_, cursor),) = opening.pushes
    claimed = replace(cursor, lease_no=1, lease_until=NOW + 30_000, holder="h" * 36)
    meter.reset()
    assert store.push.move_cursor(KEY, cursor, claimed)
    store.push.record_attempt(KEY, attempt(), opening.head.expires)
    assert store.push.move_cursor(KEY, claimed, replace(claimed, position=1, lease_until=0, holder=""))
    assert meter.units <= 3


def test_a_chunk_costs_one_unit_for_each_kilobyte(metered: tuple[Store, Meter]) -> None:
    store, meter = metered
    store.log.create(_opening())
    meter.reset()
    event = chunk(2)._replace(artifact=Artifact(artifact_id="document", parts=(Part(text="x" * 1500),)))
    store.log.append_chunk(_opening().head._replace(lease_until=2**50), event)
    assert (meter.calls, meter.units) == (["PutItem"], 2.0)


@pytest.mark.parametrize("context", [None, CONTEXT])
def test_a_small_value_is_one_call_of_four_units_and_without_a_version_a_read_more(
    metered: tuple[Store, Meter], context: str | None
) -> None:
    store, meter = metered
    assert store.log.create(_opening()) is None
    taken = decisions.start_run(heads.CurrentHead(_opening().head, 1), now=NOW + 200, by=by())
    assert store.log.append(taken)
    meter.reset()
    value, scope = StoredText("checkpoint", "x" * 500, "v1"), ValueScope(KEY, context)
    assert store.values.put_value(taken.after, scope, value, "") == "v1"
    assert (meter.calls, meter.units) == (["TransactWriteItems"], 4)
    meter.reset()
    assert store.values.put_value(taken.after, scope, replace(value, version="v2"), None) == "v2"
    assert (meter.calls, meter.units) == (["GetItem", "TransactWriteItems"], 5)


def test_ten_sends_are_reserved_for_one_call_and_one_unit(metered: tuple[Store, Meter]) -> None:
    store, meter = metered
    meter.reset()
    RateLimiter(store.owners, SystemClock(), UuidIds(), Quota(sends=1200)).admit_send(Principal(KEY.tenant, KEY.owner))
    assert (meter.calls, meter.units) == (["UpdateItem"], 1.0)
