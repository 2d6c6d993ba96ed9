"""Names of the library: no request can write one, take the place of one, or be taken for one."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import pytest

import a2a_serverless
from a2a_serverless.domain import budgets
from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.domain.model import OWN_NAMES
from a2a_serverless.domain.new_task import IdempotencyRecord, RequestKind
from a2a_serverless.domain.queue_messages import TickMessage
from a2a_serverless.domain.schedules import Schedule
from a2a_serverless.protocol.additions import RetryRequest
from a2a_serverless.protocol.v1 import (
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a_serverless.services import tasks, webhooks
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.retries import retry_task
from a2a_serverless.services.ticks import TickOutcome, handle_tick, message_id_of
from a2a_serverless.store import keys
from a2a_serverless.testing.deployment import LIFE
from tests.echo import Writer, agent_of
from tests.world import HOOK, ME, World, configured

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext

SOURCES: Final = Path(a2a_serverless.__file__).parent


def own_names() -> list[str]:
    """All names of metadata in the library's code, as literals."""
    trees = [ast.parse(file.read_text()) for file in SOURCES.rglob("*.py")]
    texts = {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return sorted(text for text in texts if isinstance(text, str) and text.startswith(OWN_NAMES) and text != OWN_NAMES)


def request(where: str, name: str) -> SendMessageRequest:
    metadata: Any = {name: {"requestId": "m"}, "theirs": 1}
    part = Part(text="hello", metadata=metadata if where == "message.parts[0].metadata" else None)
    message = Message(
        message_id="m", role=Role.USER, parts=(part,), metadata=metadata if where == "message.metadata" else None
    )
    return SendMessageRequest(message=message, metadata=metadata if where == "metadata" else None)


def test_the_library_s_names_in_metadata_are_found_in_its_code() -> None:
    assert {OWN_NAMES + name for name in ("budget", "percent", "retry", "schedule", "scheduled-time", "usage")} == {
        *own_names()
    }


@pytest.mark.parametrize("where", ["metadata", "message.metadata", "message.parts[0].metadata"])
@pytest.mark.parametrize("name", [*own_names(), f"{OWN_NAMES}later"])
def test_no_request_writes_a_name_of_the_library_into_metadata(name: str, where: str) -> None:
    if (where, name) == ("message.metadata", budgets.METADATA_KEY):
        pytest.skip("a client sets the budget of its task there")
    world = World([Writer(seconds=0).agent])
    with pytest.raises(InvalidParams) as refused:
        world.sent(configured(request(where, name), return_immediately=True))
    (violation,) = refused.value.violations
    assert (violation.field, violation.description) == (
        f"{where}.{name}",
        f"is a name of this deployment: only {OWN_NAMES}budget in a message's metadata is a client's",
    )
    assert not world.table.list_page(ME, None, None, 0, 10)[0]


def test_an_answer_to_a_question_may_not_write_our_own_names() -> None:
    async def ask(task: TaskContext) -> None:
        await task.ask("Well?")

    world = World([agent_of(ask)])
    task = world.send("hello", push=False)
    world.settle()
    answer = request("metadata", f"{OWN_NAMES}usage")
    answer = answer.model_copy(update={"message": answer.message.model_copy(update={"task_id": task.id})})
    with pytest.raises(InvalidParams):
        world.sent(configured(answer, return_immediately=True))


def test_the_id_of_a_tick_s_message_is_free_for_the_owner_and_takes_no_tick_away() -> None:
    nightly = Schedule("nightly", "0 2 * * ? *", "Work.", owner=ME.owner, tenant=ME.tenant)
    world = World([replace(Writer(seconds=0).agent, schedules=(nightly,))])
    tick = TickMessage(nightly.key("echo"), world.now // 60_000 * 60_000)
    message = world.request("mine", push=False).message.model_copy(update={"message_id": message_id_of(tick)})
    mine = world.sent(configured(SendMessageRequest(message=message), return_immediately=True))
    assert handle_tick(world.engine, LIFE, tick) is TickOutcome.STARTED
    assert handle_tick(world.engine, LIFE, tick) is TickOutcome.REPEATED
    assert world.sent(configured(SendMessageRequest(message=message), return_immediately=True)).id == mine.id
    assert len(world.table.list_page(ME, None, None, 0, 10)[0]) == 2


def test_the_id_of_a_retry_and_the_id_of_a_message_are_different_ids() -> None:
    async def fail(_: TaskContext) -> None:
        raise ValueError

    world, agent = World([agent_of(fail)]), agent_of(fail)
    task = world.send("hello", push=False)
    world.settle()
    (sent,) = world.get(task.id).history
    context = RequestContext(ME, "echo", "1.0")
    retried = retry_task(world.service, context, agent, task.id, RetryRequest(request_id=sent.message_id))
    assert retried.id != task.id
    repeated = retry_task(world.service, context, agent, task.id, RetryRequest(request_id=sent.message_id))
    assert repeated.id == retried.id
    retry_task(world.service, context, agent, task.id, RetryRequest(request_id="r"))
    message = sent.model_copy(update={"message_id": "r", "task_id": None, "context_id": None})
    assert isinstance(
        tasks.send(world.service, context, configured(SendMessageRequest(message=message), return_immediately=True)),
        Task,
    )


@pytest.mark.parametrize("kind", get_args(RequestKind))
@pytest.mark.parametrize("other", get_args(RequestKind))
def test_records_of_requests_of_different_kinds_have_different_places(kind: RequestKind, other: RequestKind) -> None:
    records = [IdempotencyRecord("echo", "id", "digest", "task", one) for one in (kind, other)]
    first, second = (keys.idempotency(ME.key(""), record.agent, record.message_id, record.kind) for record in records)
    assert (first == second) == (kind == other)


def test_the_webhook_of_a_call_has_an_id_that_nobody_can_guess() -> None:
    async def call(task: TaskContext) -> None:
        await task.call("write", "echo", "hello")

    world = World([agent_of(call, "parent"), Writer(seconds=600).agent])
    parent = world.send("go", agent="parent", push=False)
    world.wait(5_000)
    (child,) = (one.task for one in world.table.list_page(ME, None, None, 0, 10)[0] if one.task != parent.id)
    hooks, key = world.service.webhooks(), ME.key(child)
    (config,) = webhooks.list_configs(hooks, key, "echo")
    assert config.config_id == config.url.rpartition("/")[2]
    webhooks.add(hooks, key, "echo", TaskPushNotificationConfig(url=HOOK, id="parent"), "1.0")
    world.settle()
    assert world.get(parent.id, "parent").status.state is TaskState.COMPLETED
    assert len(webhooks.list_configs(hooks, key, "echo")) == 2
