"""An agent sees of its caller's tasks and conversations what that caller may see: by the scopes of the last message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.access import Caller
from a2a_serverless.protocol.v1 import Task
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.tasks import send
from tests.echo import agent_of
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless.domain.task_context import TaskContext

MINE = "a2a:reader"
READS_BOTH = "a2a:reader a2a:secret:read"
USES_BOTH = "a2a:reader a2a:secret"
ALL = "a2a"


async def keep(task: TaskContext) -> str:
    await task.conversation.put("shared", task.text())
    return "kept"


def ids(tasks: Sequence[Task]) -> str:
    return " ".join(one.id for one in tasks)


def sent(world: World, agent: str, scopes: str, text: str = "hello", **fields: str | tuple[str, ...]) -> Task:
    request = world.request(text, push=False)
    request = request.model_copy(update={"message": request.message.model_copy(update=fields)})
    caller = Caller(ME, frozenset(scopes.split()))
    task = send(world.service, RequestContext(ME, agent, "1.0", caller), request)
    assert isinstance(task, Task)
    world.settle()
    return world.get(task.id, agent)


def said(task: Task) -> str:
    return task.status.message.text() if task.status.message else ""


@pytest.mark.parametrize(("scopes", "seen"), [(MINE, False), (READS_BOTH, True), ("a2a:read a2a:reader", True)])
def test_a_task_of_an_agent_that_the_caller_may_not_read_is_not_shown_by_another_agent(
    scopes: str, *, seen: bool
) -> None:
    async def look(task: TaskContext) -> str:
        return f"{ids(await task.get_referenced_tasks())}/{ids(await task.get_previous_tasks())}"

    world = World([agent_of(keep, "secret"), agent_of(look, "reader")])
    secret = sent(world, "secret", ALL)
    shown = sent(world, "reader", scopes, context_id=secret.context_id, reference_task_ids=(secret.id,))
    assert said(shown) == (f"{secret.id}/{secret.id}" if seen else "/")


def test_tasks_that_the_caller_may_not_read_do_not_hide_older_ones_that_it_may() -> None:
    async def look(task: TaskContext) -> str:
        return ids(await task.get_previous_tasks(1))

    world = World([agent_of(keep, "secret"), agent_of(look, "reader")])
    first = sent(world, "reader", MINE)
    for _ in range(4):
        sent(world, "secret", ALL, context_id=first.context_id)
    assert said(sent(world, "reader", MINE, context_id=first.context_id)) == first.id


def test_the_last_message_decides_what_a_task_shows() -> None:
    async def look(task: TaskContext) -> str:
        await task.ask("Whom?")
        return ids(await task.get_previous_tasks())

    world = World([agent_of(keep, "secret"), agent_of(look, "reader")])
    secret = sent(world, "secret", ALL)
    asked = sent(world, "reader", ALL, context_id=secret.context_id)
    assert said(sent(world, "reader", MINE, task_id=asked.id)) == ""


@pytest.mark.parametrize(("scopes", "answer"), [(MINE, "Your credentials lack the scope a2a:secret:read."), (ALL, "x")])
def test_a_value_of_the_conversation_is_read_with_the_scope_to_read_its_agent(scopes: str, answer: str) -> None:
    async def look(task: TaskContext) -> str:
        found = await task.conversation.get("shared")
        return str(found and found.value)

    world = World([agent_of(keep, "secret"), agent_of(look, "reader")])
    secret = sent(world, "secret", ALL, "x")
    shown = sent(world, "reader", scopes, context_id=secret.context_id)
    assert (said(shown), shown.status.state) == (answer, "rejected" if scopes == MINE else "completed")


@pytest.mark.parametrize(
    ("scopes", "own", "keys"),
    [(MINE, "az", "['a', 'z']"), (MINE, "tu", "['t', 'u']"), (READS_BOTH, "az", "['a', 'shared']")],
)
def test_a_list_of_values_leaves_out_those_that_the_caller_may_not_read(scopes: str, own: str, keys: str) -> None:
    async def look(task: TaskContext) -> str:
        for key in own:
            await task.conversation.put(key, 1)
        return str([one.key for one in await task.conversation.list(limit=2)])

    world = World([agent_of(keep, "secret"), agent_of(look, "reader")])
    secret = sent(world, "secret", ALL)
    assert said(sent(world, "reader", scopes, context_id=secret.context_id)) == keys


@pytest.mark.parametrize("version", [None, ""])
@pytest.mark.parametrize("how", ["put", "delete"])
def test_a_value_of_the_conversation_is_replaced_with_the_scope_to_use_its_agent(how: str, version: str | None) -> None:
    async def change(task: TaskContext) -> str:
        if how == "put":
            await task.conversation.put("shared", "mine", version=version)
        else:
            await task.conversation.delete("shared", version=version)
        return "done"

    async def look(task: TaskContext) -> str:
        found = await task.conversation.get("shared")
        return str(found and found.value)

    world = World([agent_of(keep, "secret"), agent_of(change, "reader"), agent_of(look, "other")])
    secret = sent(world, "secret", ALL, "x")
    refused = sent(world, "reader", READS_BOTH, context_id=secret.context_id)
    assert said(refused) == "Your credentials lack the scope a2a:secret."
    assert said(sent(world, "other", ALL, context_id=secret.context_id)) == "x"
    if version is None:
        assert said(sent(world, "reader", USES_BOTH, context_id=secret.context_id)) == "done"
