"""The operator's commands: webhooks of a deployed stack, and the keys that sign them.

They use the stack's table, queue and rotator with the current AWS credentials and region; anyone with rights to those
is an operator. ``--local`` means the stack that ``up`` has started, and ignores the AWS settings.
"""

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from a2a_serverless.cli.options import Json, context_of

if TYPE_CHECKING:
    from a2a_serverless.domain.deployed import StackName
    from a2a_serverless.domain.model import Json as JsonValue
    from a2a_serverless.domain.model import JsonObject, TaskKey
    from a2a_serverless.domain.push import WebhookStatus
    from a2a_serverless.services.delivery_admin import DeliveryAdmin, Operations, Selection

LOCAL = "a2a_serverless.local"


def _set_local(ctx: typer.Context, value: bool) -> bool:  # noqa: FBT001 - Typer calls it
    ctx.meta[LOCAL] = value
    return value


Stack = Annotated[str, typer.Option(envvar="A2A_STACK", help="The CloudFormation stack.", metavar="NAME")]
Local = Annotated[
    bool, typer.Option("--local", help="The stack that `up` has started on this machine.", callback=_set_local)
]
Task = Annotated[
    str, typer.Argument(help="TENANT/OWNER/TASK, percent-encoded, as `push list` prints it.", metavar="TASK")
]
Config = Annotated[str, typer.Argument(help="The configuration's id.", metavar="CONFIG")]
Limit = Annotated[int, typer.Option(help="The largest number of results.", min=1, max=1000)]
NAME = "a2a-serverless"
_AGO = re.compile(r"([1-9][0-9]{0,5})([mhd])")
_UNIT_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}


def moment_of(text: str) -> int:
    """Parses ``30m``, ``12h`` or ``2d`` (ago), or a timestamp; returns ms since the epoch. Raises BadParameter."""
    from a2a_serverless.protocol.timestamps import from_text

    ago = _AGO.fullmatch(text)
    if ago:
        return time.time_ns() // 1_000_000 - int(ago[1]) * _UNIT_MS[ago[2]]
    try:
        return from_text(text)
    except ValueError:
        raise typer.BadParameter("30m, 12h or 2d (ago), or a timestamp such as 2026-05-28T09:30:00Z") from None


Host = Annotated[str, typer.Option(help="Only webhooks of this host (or host:port).", metavar="HOST")]
Since = Annotated[
    str, typer.Option(help="Only webhooks that were given up since then: 2h, or a timestamp.", metavar="WHEN")
]


def list_pushes(
    ctx: typer.Context,
    task: Annotated[str, typer.Argument(help="Only this task; else all that were given up.", metavar="[TASK]")] = "",
    *,
    host: Host = "",
    since: Since = "",
    limit: Limit = 100,
    stack: Stack = NAME,
    _local: Local = False,
    _json: Json = False,
) -> None:
    """Show the webhooks of a task, or all webhooks that were given up."""
    from a2a_serverless.services.delivery_admin import list_exhausted, list_statuses

    admin = _operations(ctx, stack).admin
    given_up = _selection(host, since)
    found = list_statuses(admin.log, admin.store, _key(task)) if task else list_exhausted(admin, limit, given_up)
    terminal = context_of(ctx).terminal
    if terminal.json:
        terminal.data({"deliveries": [_printed(one) for one in found]})
        return
    for one in found:
        terminal.raw(f"{_line(one)}\n")
    if not found:
        terminal.note("There are no such webhooks.")


def show_push(
    ctx: typer.Context,
    task: Task,
    config: Config,
    *,
    stack: Stack = NAME,
    _local: Local = False,
    _json: Json = False,
) -> None:
    """Show the state of a webhook, and its attempts."""
    from a2a_serverless.domain.errors import TaskNotFound
    from a2a_serverless.services.delivery_admin import list_statuses

    admin, terminal = _operations(ctx, stack).admin, context_of(ctx).terminal
    found = [one for one in list_statuses(admin.log, admin.store, _key(task)) if one.config.config_id == config]
    if not found:
        raise TaskNotFound("The push notification configuration was not found.")
    printed: Any = _printed(found[0])
    if terminal.json:
        terminal.data(printed)
        return
    attempts = printed.pop("attempts")
    terminal.rows([(name, str(value)) for name, value in printed.items()])
    for attempt in attempts:
        terminal.raw(f"  {attempt_words(attempt)}\n")


def redrive_push(  # noqa: PLR0913 - the options of a command
    ctx: typer.Context,
    task: Annotated[str, typer.Argument(help="TENANT/OWNER/TASK.", metavar="[TASK]")] = "",
    config: Annotated[str, typer.Argument(help="The configuration's id.", metavar="[CONFIG]")] = "",
    *,
    every: Annotated[bool, typer.Option("--all", help="All that were given up.")] = False,
    host: Host = "",
    since: Since = "",
    stack: Stack = NAME,
    _local: Local = False,
    _json: Json = False,
) -> None:
    """Redrive webhooks that were given up: one, or all that match --host and --since."""
    from a2a_serverless.services.delivery_admin import redrive

    many = every or bool(host or since)
    if many == bool(task) or bool(task) != bool(config):
        raise typer.BadParameter("name one webhook (TASK and CONFIG), or several by --host, --since or --all")
    if many:
        _redrive_all(ctx, stack, _selection(host, since))
    else:
        _change(ctx, stack, redrive, task, config)


def pause_push(
    ctx: typer.Context,
    task: Task,
    config: Config,
    *,
    stack: Stack = NAME,
    _local: Local = False,
    _json: Json = False,
) -> None:
    """Stop deliveries to a webhook until it is resumed."""
    from a2a_serverless.services.delivery_admin import pause

    _change(ctx, stack, pause, task, config)


def resume_push(
    ctx: typer.Context,
    task: Task,
    config: Config,
    *,
    stack: Stack = NAME,
    _local: Local = False,
    _json: Json = False,
) -> None:
    """Resume deliveries to a paused webhook where they stopped."""
    from a2a_serverless.services.delivery_admin import resume

    _change(ctx, stack, resume, task, config)


def show_keys(ctx: typer.Context, *, stack: Stack = NAME, _local: Local = False, _json: Json = False) -> None:
    """Show the key ring, without its secrets."""
    _tell_ring(ctx, _operations(ctx, stack).rotator({"command": "show"}))


def rotate_keys(ctx: typer.Context, *, stack: Stack = NAME, _local: Local = False, _json: Json = False) -> None:
    """Promote the next key, if it has been public for long enough."""
    operations = _operations(ctx, stack)
    operations.rotator({"command": "rotate"})
    _tell_ring(ctx, operations.rotator({"command": "show"}))


def revoke_key(
    ctx: typer.Context,
    kid: Annotated[str, typer.Argument(help="The key's id.", metavar="KID")],
    *,
    stack: Stack = NAME,
    _local: Local = False,
    _json: Json = False,
) -> None:
    """Revoke a key at once, also in the public key set (for emergencies)."""
    operations = _operations(ctx, stack)
    operations.rotator({"command": "revoke", "kid": kid})
    _tell_ring(ctx, operations.rotator({"command": "show"}))


def _operations(ctx: typer.Context, stack: str) -> "Operations":
    return context_of(ctx).operations(stack_meant(ctx, stack))


def stack_meant(ctx: typer.Context, name: str) -> "StackName":
    """Returns the stack of that name in the AWS account, or with ``--local`` the stack on this machine."""
    from a2a_serverless.domain.deployed import StackName

    if not ctx.meta.get(LOCAL):
        return StackName(name)
    from a2a_serverless.cli.stack import find_paths
    from a2a_serverless.stack.emulator import running_emulator

    return StackName(NAME, running_emulator(find_paths(context_of(ctx).environment.get("A2A_STATE"))).url)


def _key(task: str) -> "TaskKey":
    from a2a_serverless.adapters.dynamodb.keys import key_of_path

    try:
        return key_of_path(task)
    except ValueError as error:
        raise typer.BadParameter("a task is named TENANT/OWNER/TASK, as `push list` prints it") from error


def _change(
    ctx: typer.Context,
    stack: str,
    change: "Callable[[DeliveryAdmin, TaskKey, str], object]",
    task: str,
    config: str,
) -> None:
    from a2a_serverless.services.delivery_admin import list_statuses

    admin, key = _operations(ctx, stack).admin, _key(task)
    change(admin, key, config)
    (one,) = [one for one in list_statuses(admin.log, admin.store, key) if one.config.config_id == config]
    terminal = context_of(ctx).terminal
    if terminal.json:
        terminal.data(_printed(one))
    else:
        terminal.raw(f"{_line(one)}\n")


def _selection(host: str, since: str) -> "Selection":
    from a2a_serverless.services.delivery_admin import Selection

    return Selection(host, moment_of(since) if since else 0)


def _redrive_all(ctx: typer.Context, stack: str, selection: "Selection") -> None:
    from a2a_serverless.adapters.dynamodb.keys import path
    from a2a_serverless.services.delivery_admin import redrive_all

    terminal, done = context_of(ctx).terminal, 0
    admin = _operations(ctx, stack).admin
    redriven: list[JsonValue] = []
    for key, config_id in redrive_all(admin, selection):
        done += 1
        name = path(key.tenant, key.owner, key.task)
        redriven.append({"task": name, "id": config_id})
        if not terminal.json:
            terminal.raw(f"{name}  {config_id}\n")
    if terminal.json:
        terminal.data({"redriven": redriven})
    else:
        terminal.note(f"Redriven: {done}.")


def _printed(one: "WebhookStatus") -> "JsonObject":
    from a2a_serverless.adapters.dynamodb.keys import path
    from a2a_serverless.wire.deliveries import print_standing

    return {"task": path(one.key.tenant, one.key.owner, one.key.task), **print_standing(one)}


def _line(one: "WebhookStatus") -> str:
    printed = _printed(one)
    where = f"{printed['task']}  {printed['id']}"
    how = f"{printed['state']}, {printed['verification']}, {printed['deliveredUpTo']}/{printed['lastEvent']} delivered"
    return f"{where}  {how}, {printed['failuresInARow']} failures in a row  {printed['url']}"


def attempt_words(attempt: "JsonObject") -> str:
    """Formats an attempt in one line."""
    what = attempt.get("status") or attempt.get("error") or "?"
    again = f", next {attempt['nextAttemptAt']}" if "nextAttemptAt" in attempt else ""
    event = f"event {attempt['eventNumber']}" if attempt["eventNumber"] else "challenge"
    return f"{attempt['at']}  {event}, attempt {attempt['attempt']}: {what} in {attempt['milliseconds']} ms{again}"


def _tell_ring(ctx: typer.Context, ring: "JsonObject") -> None:
    terminal, shown = context_of(ctx).terminal, _with_times(ring)
    if terminal.json:
        terminal.data(shown)
        return
    keys: Any = shown
    terminal.rows(
        [
            ("current", f"{keys['current']['kid']}  signs since {keys['current']['signsSince']}"),
            ("next", f"{keys['next']['kid']}  may sign from {keys['next']['promotableAt']}"),
            *(
                (f"previous {n}", f"{old['kid']}  public until {old['until']}")
                for n, old in enumerate(keys["previous"], 1)
            ),
        ]
    )


def _with_times(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Returns a copy with the times (integers) as timestamps."""
    from a2a_serverless.protocol.timestamps import to_text

    if isinstance(value, dict):
        return {name: to_text(inner) if isinstance(inner, int) else _with_times(inner) for name, inner in value.items()}
    return [_with_times(inner) for inner in value] if isinstance(value, list) else value
