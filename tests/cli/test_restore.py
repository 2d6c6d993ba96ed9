"""The command ``restore``, from the table of one world into that of another."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.store.stores import agent_pause
from a2a_serverless.store.table import Put
from a2a_serverless_tools.operators.restoration import Restoration
from tests.cli.test_operator_commands import Deployed
from tests.echo import Asker, Writer
from tests.world import HOUR_MS, World, accepting

if TYPE_CHECKING:
    from a2a_serverless.protocol.v1 import Task
    from a2a_serverless.store.table import Action

MINUTE_MS = 60_000
_DEPLOYMENTS = count()


def new_world() -> World:
    """A deployment whose new ids no other deployment has."""
    world = World([Asker().agent])
    world.ids.last = 1000 * next(_DEPLOYMENTS)
    return world


def backup_of(world: World) -> World:
    """Another world, with the items that this world has now."""
    backup = new_world()
    backup.now = world.now
    for item in world.table.items.scan():
        backup.table.items.write(Put(item))
    return backup


def asked(world: World, *, push: bool = False) -> Task:
    """A task that has asked its question."""
    task = world.send("hello", push=push)
    world.settle(MINUTE_MS)
    return task


def restored(backup: World, world: World) -> dict[str, int]:
    deployed = Deployed(world, others={"backup": backup})
    counts: dict[str, int] = deployed.json("restore", "--table", "backup", "--yes")
    return counts


def test_an_ended_task_comes_back_and_nothing_of_it_is_sent_again() -> None:
    old, new = World([Writer().agent]), new_world()
    task = old.send("hello")
    old.settle()
    new.now = old.now
    counts = restored(old, new)
    assert (counts["tasks"], counts["unfinished"], counts["webhooks"]) == (1, 0, 0)
    assert new.get(task.id) == old.get(task.id)
    new.settle()
    assert new.receiver.effects() == []


def test_a_task_that_the_stack_has_stays_as_it_is() -> None:
    world = new_world()
    task = asked(world)
    backup = backup_of(world)
    world.cancel(task.id)
    world.settle()
    assert restored(backup, world)["tasks"] == 0
    assert world.get(task.id).status.state is TaskState.CANCELED


def test_an_unfinished_task_goes_on_where_it_was() -> None:
    old = new_world()
    task = asked(old)
    new = new_world()
    new.now = old.now
    assert restored(backup_of(old), new)["unfinished"] == 1
    new.send("red", push=False, task_id=task.id)
    new.settle(HOUR_MS)
    assert new.get(task.id).artifacts[0].text() == "hello in red"


def test_a_webhook_that_was_behind_is_given_up_until_an_operator_redrives_it() -> None:
    old, new = new_world(), new_world()
    old.receiver.answers = lambda _: Outcome(status=503)
    task = asked(old, push=True)
    new.now = old.now
    new.receiver.answers = accepting
    assert restored(backup_of(old), new)["webhooks"] == 1
    new.cancel(task.id)
    new.settle()
    assert new.receiver.effects() == []
    deployed = Deployed(new)
    assert len(deployed.json("push", "list")["deliveries"]) == 1
    assert len(deployed.json("push", "redrive", "--all")["redriven"]) == 1
    new.settle()
    assert new.receiver.effects() != []


class Interrupted(Exception):
    """The command was killed."""


@pytest.mark.parametrize("write", range(1, 12))
def test_a_restoration_that_was_killed_is_made_again(write: int) -> None:
    old = new_world()
    task = asked(old, push=True)
    new = new_world()
    new.now = old.now
    table, left = new.table.items, write

    class Dying:
        """The table of the stack, to which the command makes so many writes."""

        def write(self, *actions: Action) -> object:
            nonlocal left
            left -= 1
            if not left:
                raise Interrupted
            return table.write(*actions)

        def __getattr__(self, name: str) -> object:
            return getattr(table, name)

    backup = backup_of(old).table
    dying: Any = Dying()
    with suppress(Interrupted):
        Restoration(backup.items, backup, dying, new.clock).restore(lambda _: None)
    restored(backup_of(old), new)
    assert new.get(task.id) == old.get(task.id)
    assert restored(backup_of(old), new)["tasks"] == 0
    new.send("red", push=False, task_id=task.id)
    new.settle(HOUR_MS)
    assert new.get(task.id).artifacts[0].text() == "hello in red"


def test_a_pause_that_is_over_does_not_come_back() -> None:
    old, new = new_world(), new_world()
    asked(old)
    old.table.add_pause(agent_pause("echo"), old.now)
    new.now = old.now
    counts = restored(backup_of(old), new)
    assert (counts["tasks"], new.table.list_pauses()) == (1, {})


def test_restoring_api_keys_warns_that_keys_removed_since_work_again() -> None:
    old, new = new_world(), new_world()
    deployed = Deployed(new, others={"backup": backup_of(old)}, restored_keys=2)
    words = ("restore", "--table", "backup", "--access-table", "keys", "--yes")
    assert "API keys that were removed since then work again" in deployed.type(*words)[2]


def test_a_dry_run_writes_nothing_and_a_terminal_is_asked() -> None:
    old, new = new_world(), new_world()
    asked(old)
    new.now = old.now
    deployed = Deployed(new, others={"backup": backup_of(old)})
    assert deployed.json("restore", "--table", "backup", "--dry-run")["tasks"] == 1
    assert deployed.type("restore", "--table", "backup")[0] == 2
    deployed.answer = False
    assert deployed.type("restore", "--table", "backup")[0] == 1
    assert [*new.table.items.scan()] == []
    deployed.answer = True
    code, out, _ = deployed.type("restore", "--table", "backup")
    assert (code, "Restored 1 tasks (1 unfinished, 0 webhooks behind)" in out) == (0, True)
