"""The operator's commands, over a world in the same process."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from rich.console import Console

from a2a_serverless.domain.model import path
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.protocol.protojson import timestamp_text
from a2a_serverless.testing.memory import MemoryBlobStore
from a2a_serverless.testing.simulated_loop import START
from a2a_serverless_tools.cli.app import run
from a2a_serverless_tools.cli.formatting import moment
from a2a_serverless_tools.cli.operator_commands import moment_of
from a2a_serverless_tools.cli.options import CliContext as Outside
from a2a_serverless_tools.cli.terminal import Terminal
from a2a_serverless_tools.operators.deliveries import DeliveryAdmin, Operations
from a2a_serverless_tools.operators.deployed import FunctionFailed, StackName, StackNotFound
from a2a_serverless_tools.operators.erasure import ERASE_AFTER_MS, ErasureService
from a2a_serverless_tools.operators.erasure_store import ErasureStore
from a2a_serverless_tools.operators.restoration import Restoration
from tests.doubles import MemoryApiKeyStore
from tests.echo import Writer
from tests.world import HOUR_MS, ME, World, accepting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless_tools.operators.queues import QueueDepth

RING: JsonObject = {
    "current": {"kid": "kid-1", "madeAt": 1_790_000_000_000, "signsSince": 1_790_000_000_000},
    "next": {"kid": "kid-2", "madeAt": 1_790_000_000_000, "promotableAt": 1_790_003_720_000},
    "previous": [{"kid": "kid-0", "until": 1_790_000_900_000}],
}


@dataclass
class Deployed:
    """A world with one task whose webhook was given up, and a rotator that notes its commands."""

    world: World
    commands: list[Mapping[str, str]] = field(default_factory=list)
    rings: list[JsonObject] = field(default_factory=lambda: [RING])
    answer: bool | None = None
    asked: list[str] = field(default_factory=list)
    failure: Exception | None = None
    depths: list[QueueDepth] = field(default_factory=list)
    others: dict[str, World] = field(default_factory=dict)
    restored_keys: int = 0

    def operations(self, stack: StackName) -> Operations:
        if stack != StackName("a2a-serverless"):
            raise StackNotFound(f"the stack {stack.name} cannot be read")
        table, clock = self.world.table, self.world.clock
        erasure = ErasureService(
            log=table,
            store=table,
            erasure_store=ErasureStore(table.items),
            blobs=MemoryBlobStore(),
            api_keys=MemoryApiKeyStore(),
            clock=clock,
            ids=self.world.ids,
        )
        if self.failure:
            raise self.failure
        admin = DeliveryAdmin(table, table, self.world.queue, clock)
        return Operations(
            admin,
            self.rotator,
            erasure,
            table,
            lambda: self.depths,
            self.restoration,
            lambda _: self.restored_keys,
        )

    def restoration(self, name: str) -> Restoration:
        """From the table of the world ``others[name]``."""
        source = self.others[name].table
        return Restoration(source.items, source, self.world.table.items, self.world.clock)

    def rotator(self, command: Mapping[str, str]) -> JsonObject:
        self.commands.append(command)
        if command["command"] == "rotate" and len(self.rings) > 1:
            self.rings.pop(0)
        return self.rings[0]

    def ask(self, question: str) -> bool:
        self.asked.append(question)
        return bool(self.answer)

    def type(self, *arguments: str, state: Path | None = None) -> tuple[int, str, str]:
        out, err = (Console(file=io.StringIO(), width=200, highlight=False) for _ in range(2))
        environment = {"A2A_STATE": str(state)} if state else {}
        outside = Outside(
            Terminal(out, err),
            environment=environment,
            operations=self.operations,
            ask=None if self.answer is None else self.ask,
        )
        with pytest.raises(SystemExit) as ended:
            run(arguments, outside)
        assert isinstance(ended.value.code, int)
        return ended.value.code, _written(out), _written(err)

    def json(self, *arguments: str) -> Any:
        code, out, err = self.type(*arguments, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)


def _written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def deployed() -> Deployed:
    world = World([Writer().agent])
    world.receiver.answers = lambda _: Outcome(status=404)
    world.send("hello")
    world.settle(10 * HOUR_MS)
    world.receiver.answers = accepting
    return Deployed(world)


def test_push_list_shows_an_exhausted_delivery_with_its_task_and_state(deployed: Deployed) -> None:
    (one,) = deployed.json("push", "list")["deliveries"]
    key = deployed.world.table.list_exhausted()[0][0]
    assert one["task"] == path(key.tenant, key.owner, key.task)
    assert (one["state"], one["verification"]) == ("exhausted", "verified")
    code, out, _ = deployed.type("push", "list")
    assert (code, out.count("exhausted")) == (0, 1)


def test_a_redriven_webhook_hears_the_rest_and_is_given_up_no_more(deployed: Deployed) -> None:
    (one,) = deployed.json("push", "list")["deliveries"]
    assert deployed.json("push", "redrive", one["task"], one["id"])["state"] == "active"
    deployed.world.settle()
    shown = deployed.json("push", "show", one["task"], one["id"])
    assert shown["deliveredUpTo"] == shown["lastEvent"]
    assert [attempt.get("status") for attempt in shown["attempts"]].count(404) == 5
    code, out, err = deployed.type("push", "list")
    assert (code, out, err) == (0, "", "There are no such webhooks.\n")


@pytest.mark.parametrize(
    ("meant", "hits"),
    [
        (["--all"], 1),
        (["--host", "hooks.example.com"], 1),
        (["--host", "HOOKS.example.com"], 1),
        (["--host", "example.com"], 0),
        (["--host", "hooks.example.com:443"], 0),
        (["--since", timestamp_text(START)], 1),
        (["--since", timestamp_text(START + 9 * HOUR_MS)], 0),
        (["--host", "hooks.example.com", "--since", timestamp_text(START + 9 * HOUR_MS)], 0),
        (["--since", "2020-01-01T00:00:00Z"], 1),
        (["--since", "2999-01-01T00:00:00Z", "--host", "hooks.example.com"], 0),
    ],
)
def test_push_redrive_selects_deliveries_by_host_and_time(deployed: Deployed, meant: list[str], hits: int) -> None:
    before = deployed.json("push", "list")["deliveries"]
    redriven = deployed.json("push", "redrive", *meant)["redriven"]
    assert redriven == [{"task": one["task"], "id": one["id"]} for one in before] * hits
    assert len(deployed.json("push", "list")["deliveries"]) == 1 - hits
    code, out, err = deployed.type("push", "redrive", "--all")
    assert (code, out.count("tenant/me/"), err) == (0, 1 - hits, f"Redriven: {1 - hits}.\n")


def test_push_list_selects_exhausted_deliveries_by_host_and_time(deployed: Deployed) -> None:
    assert len(deployed.json("push", "list", "--host", "HOOKS.example.com")["deliveries"]) == 1
    assert deployed.json("push", "list", "--host", "example.com")["deliveries"] == []
    assert deployed.json("push", "list", "--since", "2999-01-01T00:00:00Z")["deliveries"] == []


@pytest.mark.parametrize("wrong", [[], ["t/o/k"], ["t/o/k", "c", "--all"], ["--since", "5x"], ["--since", "0h"]])
def test_a_redrive_names_one_webhook_or_says_which_are_meant(deployed: Deployed, wrong: list[str]) -> None:
    assert deployed.type("push", "redrive", *wrong)[0] == 2


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "9" * 5000, "x"])
def test_a_limit_that_is_no_number_from_1_to_1000_is_refused(deployed: Deployed, limit: str) -> None:
    assert deployed.type("push", "list", "--limit", limit)[0] == 2


def test_a_time_ago_is_taken_from_now() -> None:
    assert moment_of("2h", START) == START - 2 * HOUR_MS
    assert moment_of("3d", START) < moment_of("90m", START)


def test_the_stack_of_this_machine_is_found_by_its_state(deployed: Deployed, tmp_path: Path) -> None:
    code, _, err = deployed.type("push", "list", "--local", state=tmp_path)
    assert code == 1
    assert "emulator: is not running" in err
    assert "a2a-serverless up" in err


def test_a_webhook_is_paused_and_resumed(deployed: Deployed) -> None:
    (one,) = deployed.json("push", "list")["deliveries"]
    where = (one["task"], one["id"])
    deployed.json("push", "redrive", *where)
    assert deployed.json("push", "pause", *where)["state"] == "paused"
    assert deployed.json("push", "resume", *where)["state"] == "active"
    code, _, err = deployed.type("push", "resume", *where)
    assert code == 1
    assert "not paused" in err


def test_the_attempts_of_a_webhook_are_told_line_by_line(deployed: Deployed) -> None:
    (one,) = deployed.json("push", "list")["deliveries"]
    code, out, _ = deployed.type("push", "show", one["task"], one["id"])
    assert code == 0
    assert "challenge, attempt 1: 200" in out
    assert "event 1, attempt 5: 404" in out


def test_a_task_that_is_not_there_and_a_name_that_is_none_are_refused(deployed: Deployed) -> None:
    for command in ("show", "redrive", "pause", "resume"):
        assert deployed.type("push", command, "tenant/me/none", "x")[0] == 1
    assert deployed.type("push", "list", "none")[0] == 2


def test_the_key_ring_is_shown_turned_and_cleared_of_a_key(deployed: Deployed) -> None:
    assert deployed.json("keys", "show")["next"]["promotableAt"] == "2026-09-21T15:15:20.000Z"
    assert "kid-1" in deployed.type("keys", "rotate")[1]
    deployed.type("keys", "revoke", "kid-0")
    assert [command["command"] for command in deployed.commands] == ["show", "show", "rotate", "show", "revoke", "show"]
    assert deployed.commands[4]["kid"] == "kid-0"


def test_a_key_is_revoked_whose_id_looks_like_an_option(deployed: Deployed) -> None:
    kid = "-uKufknUq6L5dzCorR7RdVe0OsrQRH9l2EefNkCvXqA"
    assert deployed.type("keys", "revoke", kid, "--json")[0] == 0
    assert deployed.commands[0]["kid"] == kid
    assert deployed.type("keys", "revoke", "kid-0", "--unknown")[0] == 2


def test_a_rotation_that_did_nothing_says_so_and_why(deployed: Deployed) -> None:
    code, _, err = deployed.type("keys", "rotate")
    assert (code, err) == (
        0,
        "Not rotated: the next key may sign from 2026-09-21T15:15:20.000Z, when receivers have read it.\n",
    )
    assert deployed.json("keys", "rotate")["rotated"] is False


def test_keys_rotate_says_whether_the_keys_have_rotated(deployed: Deployed) -> None:
    deployed.rings.append(RING | {"current": RING["next"] | {"signsSince": 1}})  # type: ignore[operator]
    assert deployed.json("keys", "rotate")["rotated"] is True
    deployed.rings.append(RING)
    assert deployed.type("keys", "rotate")[2] == ""


def test_a_stack_that_is_not_there_is_said_so_with_what_helps(deployed: Deployed) -> None:
    code, _, err = deployed.type("keys", "show", "--stack", "other")
    assert code == 1
    assert "the stack other cannot be read" in err
    assert "--stack" in err


# ---- Erasing


@pytest.mark.parametrize("what", ["task", "context", "owner"])
def test_erase_counts_the_tasks_with_dry_run_and_deletes_them_with_yes(deployed: Deployed, what: str) -> None:
    task = deployed.world.sent(deployed.world.request("secret"))
    path = {"task": f"tenant/me/{task.id}", "context": f"tenant/me/{task.context_id}", "owner": "tenant/me"}[what]
    counted = deployed.json("erase", what, path, "--dry-run")
    assert counted["tasks"] == (2 if what == "owner" else 1)
    assert deployed.world.table.read_head(ME.key(task.id)) is not None
    code, out, _ = deployed.type("erase", what, path, "--yes")
    assert (code, out.partition(",")[0]) == (0, f"Erased {counted['tasks']} tasks")
    assert deployed.world.table.read_head(ME.key(task.id)) is None
    assert deployed.json("erase", what, path, "--dry-run")["tasks"] == 0


@pytest.mark.parametrize("line", ["task tenant/me", "owner tenant", "owner tenant/me/task", "context //", "owner /me"])
def test_erasing_by_an_incomplete_name_is_a_usage_error(deployed: Deployed, line: str) -> None:
    assert deployed.type("erase", *line.split(), "--yes")[0] == 2


@pytest.mark.parametrize(("answer", "code"), [(True, 0), (False, 1)])
def test_before_it_erases_it_says_how_much_and_asks(deployed: Deployed, *, answer: bool, code: int) -> None:
    task = deployed.world.sent(deployed.world.request("secret"))
    deployed.answer = answer
    assert deployed.type("erase", "task", f"tenant/me/{task.id}")[0] == code
    (question,) = deployed.asked
    assert question.startswith("Erase 1 tasks, ")
    assert "stack a2a-serverless" in question
    assert (deployed.world.table.read_head(ME.key(task.id)) is None) == answer


def test_without_a_terminal_to_ask_on_nothing_is_erased(deployed: Deployed) -> None:
    task = deployed.world.sent(deployed.world.request("secret"))
    assert deployed.type("erase", "task", f"tenant/me/{task.id}")[0] == 2
    assert deployed.world.table.read_head(ME.key(task.id)) is not None


def test_erase_says_how_many_tasks_are_left_and_until_when(deployed: Deployed) -> None:
    task = deployed.world.sent(deployed.world.request("secret"))
    deployed.world.settle()
    ended = deployed.world.table.read_head(ME.key(task.id))
    assert ended
    code, out, err = deployed.type("erase", "owner", "tenant/me", "--yes")
    until = moment(ended.head.status_at + ERASE_AFTER_MS)
    assert (code, out.partition(",")[0]) == (0, "Erased 2 tasks")
    assert err == f"Tasks left: 1. Until {until} their runs may still write.\n"


def test_for_programs_it_prints_what_it_has_erased_and_nothing_else(deployed: Deployed) -> None:
    task = deployed.world.sent(deployed.world.request("secret"))
    erased = deployed.json("erase", "task", f"tenant/me/{task.id}", "--yes")
    assert (erased["tasks"], erased["blobs"], erased["apiKeys"]) == (1, 0, 0)
    assert erased.keys() == {"tasks", "items", "blobs", "apiKeys"}
    assert set(deployed.json("erase", "task", f"tenant/me/{task.id}", "--yes").values()) == {0}


# ---- What AWS refuses

QUERY = "User: arn:aws:iam::111122223333:user/duty is not authorized to perform: dynamodb:Query on resource: tasks"


@pytest.mark.parametrize(
    ("code", "text", "kind", "words"),
    [
        ("AccessDeniedException", QUERY, "AccessDenied", "AWS denies dynamodb:Query"),
        ("AccessDenied", "Access Denied", "AccessDenied", "AWS denies ListObjectsV2"),
        ("ExpiredTokenException", "The token has expired", "CredentialsExpired", "have expired"),
        ("InternalServerError", "Try again", "CommandFailed", "AWS has not done it"),
    ],
)
def test_an_error_of_aws_is_shown_with_the_permission_and_a_remedy(
    deployed: Deployed, code: str, text: str, kind: str, words: str
) -> None:
    deployed.failure = ClientError({"Error": {"Code": code, "Message": text}}, "ListObjectsV2")
    status, _, err = deployed.type("push", "list")
    assert status == 1
    assert words in err
    assert "name it with --stack" not in err
    assert ("docs/roles.md" in err) == (kind == "AccessDenied")
    printed = json.loads(deployed.type("erase", "owner", "tenant/me", "--yes", "--json")[1])
    assert printed["error"]["kind"] == kind


def test_of_a_function_that_failed_the_command_says_where_its_error_is(deployed: Deployed) -> None:
    deployed.failure = FunctionFailed("stack-Rotator failed: ClientError; see the log.")
    status, _, err = deployed.type("keys", "show")
    assert status == 1
    assert "what helps: `logs --errors` names what it raised, and where" in err
