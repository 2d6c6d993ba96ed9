"""One stored item that cannot be read stops no loop over many: each loop does the others, and logs that one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.aws.batches import make_queue_handler
from a2a_serverless.domain.access import ApiKey
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.queue_messages import DeliveryMessage, WorkMessage, to_json
from a2a_serverless.protocol.v1 import ListTasksRequest, Message, Part, Role, SendMessageRequest, TaskState
from a2a_serverless.protocol.v1 import TaskPushNotificationConfig as Webhook
from a2a_serverless.services import webhooks
from a2a_serverless.services.briefs import BriefFilter, list_briefs
from a2a_serverless.services.deliver import deliver
from a2a_serverless.services.listing import list_tasks
from a2a_serverless.services.pauses import Pauses
from a2a_serverless.services.relay import relay
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.streams import start_stream
from a2a_serverless.services.sweep import sweep
from a2a_serverless.services.tasks import send
from a2a_serverless.services.webhook_statuses import list_deliveries
from a2a_serverless.store import keys
from a2a_serverless.store.api_keys import PARTITION, ApiKeyStore
from a2a_serverless.store.items import UNREADABLE
from a2a_serverless.store.stores import PauseStore, agent_pause, owner_pause
from a2a_serverless_tools.operators.deliveries import DeliveryAdmin, DeliverySelection, list_exhausted, redrive_all
from tests.contexts import Context
from tests.contract.tasks import SPOILED, spoil
from tests.echo import Asker, Writer, agent_of
from tests.world import HOOK, ME, MINUTE_MS, World

if TYPE_CHECKING:
    from a2a_serverless import TaskContext
    from a2a_serverless.domain.model import TaskKey

NAMES: Final = ("a", "b", "c")
ITEMS: Final[dict[str, dict[str, Any]]] = {
    "of a newer release": {"v": {"N": "99"}},
    "without a form": {"v": None},
}


def plant(world: World, pk: str, sk: str, how: str = "of a newer release") -> None:
    """Makes the stored item unreadable."""
    item = world.table.items.partitions[pk][sk]
    for name, value in ITEMS[how].items():
        if value is None:
            del item[name]
        else:
            item[name] = value


def world_with_webhooks(**more: Any) -> tuple[World, TaskKey]:
    """A task that has ended, with three webhooks that know nothing of it yet."""
    trusting = EgressPolicy(trusted_domains=("example.com",))
    world = World([Writer(seconds=0).agent], policy=trusting, **more)
    key = ME.key(world.send("hello", push=False).id)
    world.settle()
    world.queue.clear()
    for name in NAMES:
        webhooks.add(world.service.webhooks(), key, "echo", Webhook(url=HOOK, id=name), "1.0")
    world.queue.clear()
    return world, key


def unreadable(caplog: pytest.LogCaptureFixture, what: str = "item") -> int:
    return sum(record.getMessage() == f"{what} unreadable" for record in caplog.records)


@pytest.mark.parametrize("how", ["of a newer release", "without a form"])
def test_the_relay_enqueues_the_other_webhooks_and_the_other_tasks(how: str, caplog: pytest.LogCaptureFixture) -> None:
    world, key = world_with_webhooks()
    other = ME.key(world.send("hello", push=False).id)
    webhooks.add(world.service.webhooks(), other, "echo", Webhook(url=HOOK, id="d"), "1.0")
    world.queue.clear()
    plant(world, keys.task(key), keys.cursor("b"), how)
    assert relay(world.table, world.queue, [key, other], world.now) == 3
    expected = [DeliveryMessage(key, "a"), DeliveryMessage(key, "c"), DeliveryMessage(other, "d")]
    assert list(world.queue.ready()) == expected
    assert unreadable(caplog) == 1


def test_the_sweeper_enqueues_the_other_webhooks_of_a_task_and_comes_again_until_all_can_be_read() -> None:
    world, key = world_with_webhooks()
    head = world.table.read_head(key).head
    assert world.table.update_head(head, head._replace(due_at=world.now, rev=head.rev + 1))
    plant(world, keys.task(key), keys.cursor("b"))
    waits: list[int] = []
    for _ in range(4):
        sweep(world.sweeper)
        enqueued = [message.config_id for message in world.queue.ready() if isinstance(message, DeliveryMessage)]
        assert set(enqueued) == {"a", "c"}
        world.queue.clear()
        waits.append(world.table.read_head(key).head.due_at - world.now)
        world.now += waits[-1]
    assert waits == [MINUTE_MS, 2 * MINUTE_MS, 4 * MINUTE_MS, 8 * MINUTE_MS], "ever less often"
    world.table.items.partitions[keys.task(key)][keys.cursor("b")]["v"] = {"N": "1"}
    sweep(world.sweeper)
    enqueued = [message.config_id for message in world.queue.ready() if isinstance(message, DeliveryMessage)]
    assert {*enqueued} == {*NAMES}


def test_a_task_that_has_ended_and_whose_only_webhook_cannot_be_read_stays_due() -> None:
    world, key = world_with_webhooks()
    for name in NAMES:
        plant(world, keys.task(key), keys.cursor(name))
    head = world.table.read_head(key).head
    assert world.table.update_head(head, head._replace(due_at=world.now, rev=head.rev + 1))
    sweep(world.sweeper)
    assert world.table.read_head(key).head.due_at == world.now + MINUTE_MS


def test_the_notifier_delivers_the_other_messages_of_a_batch() -> None:
    world, key = world_with_webhooks()
    plant(world, keys.task(key), keys.cursor("b"))
    plant(world, keys.task(key), keys.push("c"))
    records = [
        {"messageId": name, "body": json.dumps(to_json(DeliveryMessage(key, name)))} for name in ("b", "c", "a", "b")
    ]
    handler = make_queue_handler(DeliveryMessage, lambda message, left, _: deliver(world.post, message, left))
    failures = handler({"Records": records}, Context())
    assert failures == {"batchItemFailures": [{"itemIdentifier": "b"}] * 2}
    positions = {name: world.table.get_cursor(key, name).position for name in ("a", "c")}
    assert (positions["a"] > 0, positions["c"]) == (True, 0)


@pytest.mark.parametrize("place", [keys.HEAD, keys.event(1)], ids=["head", "event"])
def test_the_sweeper_and_the_workers_do_the_other_tasks(place: str) -> None:
    world = World([Writer(seconds=0).agent])
    tasks = [ME.key(world.send("hello", push=False).id) for _ in range(3)]
    world.queue.clear()
    plant(world, keys.task(tasks[1]), place)
    world.now += MINUTE_MS
    sweep(world.sweeper)
    enqueued = list(world.queue.ready())
    assert [WorkMessage(tasks[at]) in enqueued for at in (0, 2)] == [True, True]
    for key in (tasks[0], tasks[2]):
        world.run(key)
        assert world.get(key.task).status.state is TaskState.COMPLETED


@pytest.mark.parametrize("how", SPOILED)
def test_a_list_with_an_unreadable_task_has_the_other_tasks(how: str, caplog: pytest.LogCaptureFixture) -> None:
    world = World([Writer().agent])
    tasks = [world.send("hello", push=False).id for _ in range(3)]
    spoil(world.table, ME.key(tasks[1]), how)
    page = list_tasks(world.service.lister(), ME, "echo", ListTasksRequest())
    assert {task.id for task in page.tasks} == {tasks[0], tasks[2]}
    assert unreadable(caplog, "task") == 1
    briefs: Any = list_briefs(world.service.lister(), ME, BriefFilter({"echo"}), None)
    assert {tasks[0], tasks[2]} <= {brief["task"] for brief in briefs["tasks"]}


def test_an_entry_of_the_index_that_cannot_be_read_ends_no_list(caplog: pytest.LogCaptureFixture) -> None:
    """Its state is of a newer release. Pages go on after it."""
    world = World([Writer().agent])
    tasks = []
    for _ in range(6):
        tasks.append(world.send("hello", push=False).id)
        world.now += 1
    world.table.items.partitions[keys.task(ME.key(tasks[2]))][keys.HEAD]["state"] = {"S": "dreaming"}
    seen, after = list[str](), None
    while True:
        entries, after = world.table.list_page(ME, None, after, 0, 2)
        seen += [entry.task for entry in entries]
        if after is None:
            break
    assert seen == [task for task in reversed(tasks) if task != tasks[2]]
    assert unreadable(caplog) == 1
    assert len(list_tasks(world.service.lister(), ME, "echo", ListTasksRequest()).tasks) == 5


@pytest.mark.parametrize("how", SPOILED)
def test_a_stream_of_another_task_goes_on(how: str) -> None:
    world = World([Writer().agent])
    spoiled, whole = (ME.key(world.send("hello", push=False).id) for _ in range(2))
    spoil(world.table, spoiled, how)
    assert start_stream(world.table, whole, "echo", None).head.key == whole
    with pytest.raises((*UNREADABLE, Overloaded)):  # a chunk before its time looks like a head that is still to come
        start_stream(world.table, spoiled, "echo", None)


def test_the_webhooks_of_a_task_are_listed_without_one_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    world, key = world_with_webhooks()
    plant(world, keys.task(key), keys.push("b"))
    listed = webhooks.list_configs(world.service.webhooks(), key, "echo")
    assert [config.config_id for config in listed] == ["a", "c"]
    assert [one.config.config_id for one in list_deliveries(world.table, world.table, key, "echo")] == ["a", "c"]
    assert unreadable(caplog) == 2
    webhooks.add(world.service.webhooks(), key, "echo", Webhook(url=HOOK, id="d"), "1.0")


def test_the_deliveries_of_a_task_are_listed_without_an_attempt_that_cannot_be_read() -> None:
    world, key = world_with_webhooks()
    world.settle()
    attempts = world.table.list_attempts(key)
    assert len(attempts) > 2
    first = attempts[0]
    plant(world, keys.task(key), keys.attempt(first.config_id, first.n, first.k, first.at))
    assert world.table.list_attempts(key) == attempts[1:]


def test_operators_list_and_redrive_the_other_webhooks() -> None:
    world, key = world_with_webhooks()
    other = ME.key(world.send("hello", push=False).id)
    webhooks.add(world.service.webhooks(), other, "echo", Webhook(url=HOOK, id="d"), "1.0")
    for one, name in [*((key, name) for name in NAMES), (other, "d")]:
        cursor = world.table.get_cursor(one, name)
        state = type(cursor.state).EXHAUSTED
        assert world.table.move_cursor(one, cursor, replace(cursor, state=state, due_at=world.now))
    world.queue.clear()
    admin = DeliveryAdmin(world.table, world.table, world.queue, world.service.clock)
    plant(world, keys.task(key), keys.cursor("b"))
    plant(world, keys.task(other), keys.HEAD)
    assert [one.config.config_id for one in list_exhausted(admin, 10, DeliverySelection())] == ["a", "c"]
    assert sorted(redrive_all(admin, DeliverySelection(host="hooks.example.com"))) == [
        (key, "a"),
        (key, "c"),
        (other, "d"),
    ]


def test_a_pause_that_cannot_be_read_holds_and_the_other_pauses_too() -> None:
    world = World([Writer().agent])
    pauses = PauseStore(world.table.items)
    for name in (agent_pause("echo"), owner_pause(ME)):
        pauses.add_pause(name, world.now)
    plant(world, keys.PAUSES, agent_pause("echo"))
    assert pauses.list_pauses() == {agent_pause("echo"): 0, owner_pause(ME): world.now}
    reader = Pauses(pauses.list_pauses, lambda: world.now)
    assert reader.find("echo", ME)
    assert reader.find("other", Principal("t", "o")) is None


def test_a_list_with_an_unreadable_api_key_has_the_other_keys() -> None:
    world = World([Writer().agent])
    store = ApiKeyStore(world.table.items)
    for digest in ("0" * 64, "1" * 64, "2" * 64):
        store.add(ApiKey(digest, ME, "note", world.now, frozenset({"a2a"})))
    plant(world, PARTITION, "1" * 64)
    assert [key.digest[0] for key in store.list_all()] == ["0", "2"]


@pytest.mark.parametrize("how", SPOILED)
def test_an_agent_gets_the_other_tasks_of_its_conversation(how: str) -> None:
    counts: list[int] = []

    async def work(task: TaskContext) -> str:
        counts.append(len(await task.get_previous_tasks()))
        return "done"

    world = World([agent_of(work)])
    first, second = (world.send("hello", push=False, context_id="talk").id for _ in range(2))
    spoil(world.table, ME.key(second), how)
    request = world.request("hello", push=False, context_id="talk")
    message = request.message.model_copy(update={"reference_task_ids": (first, second)})
    third = world.sent(request.model_copy(update={"message": message})).id
    world.run(ME.key(third))
    assert counts == [1]
    assert world.get(third).status.state is TaskState.COMPLETED


def test_a_message_to_a_conversation_answers_the_question_of_another_task() -> None:
    world = World([Asker().agent])
    spoiled, asking = (world.send("hello", push=False, context_id="talk").id for _ in range(2))
    world.settle()
    plant(world, keys.task(ME.key(spoiled)), keys.HEAD, "without a form")
    message = Message(message_id="m", role=Role.USER, parts=(Part(text="yes"),), context_id="talk")
    sent: Any = send(
        world.service, RequestContext(ME, "echo", "1.0", answers_by_context=True), SendMessageRequest(message=message)
    )
    assert sent.id == asking
