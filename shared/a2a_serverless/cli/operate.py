"""The operator's commands: webhooks of a deployed stack, and the keys that sign them.

They work on the stack's table, queue and rotator with the AWS credentials and region at hand (``AWS_ENDPOINT_URL``
for an emulator); whoever has the rights to those is an operator.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from a2a_serverless.cli.options import Json, world_of

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject, TaskKey
    from a2a_serverless.domain.push import Standing
    from a2a_serverless.services.deliveries import Operations, Switchboard

Stack = Annotated[str, typer.Option(envvar="A2A_STACK", help="The CloudFormation stack.", metavar="NAME")]
Task = Annotated[
    str, typer.Argument(help="TENANT/OWNER/TASK, percent-encoded, as `push list` prints it.", metavar="TASK")
]
Config = Annotated[str, typer.Argument(help="The configuration's id.", metavar="CONFIG")]
Limit = Annotated[int, typer.Option(help="How many at most.", min=1, max=1000)]
NAME = "a2a-serverless"


def list_pushes(
    ctx: typer.Context,
    task: Annotated[str, typer.Argument(help="Only this task; else all that were given up.", metavar="[TASK]")] = "",
    *,
    limit: Limit = 100,
    stack: Stack = NAME,
    _json: Json = False,
) -> None:
    """Show the webhooks of a task, or all in the deployment that were given up."""
    from a2a_serverless.services.deliveries import exhausted, standings

    board = _operations(ctx, stack).board
    found = standings(board.log, board.store, _key(task)) if task else exhausted(board, limit)
    terminal = world_of(ctx).terminal
    if terminal.json:
        terminal.data({"deliveries": [_printed(one) for one in found]})
        return
    for one in found:
        terminal.raw(f"{_line(one)}\n")
    if not found:
        terminal.note("There are none.")


def show_push(
    ctx: typer.Context,
    task: Task,
    config: Config,
    *,
    stack: Stack = NAME,
    _json: Json = False,
) -> None:
    """Show how a webhook stands, and its attempts."""
    from a2a_serverless.domain.errors import TaskNotFound
    from a2a_serverless.services.deliveries import standings

    board, terminal = _operations(ctx, stack).board, world_of(ctx).terminal
    found = [one for one in standings(board.log, board.store, _key(task)) if one.config.config_id == config]
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


def redrive_push(
    ctx: typer.Context,
    task: Task,
    config: Config,
    *,
    stack: Stack = NAME,
    _json: Json = False,
) -> None:
    """Try again at once what was given up, with all tries ahead of it."""
    from a2a_serverless.services.deliveries import redrive

    _change(ctx, stack, redrive, task, config)


def pause_push(
    ctx: typer.Context,
    task: Task,
    config: Config,
    *,
    stack: Stack = NAME,
    _json: Json = False,
) -> None:
    """Send a webhook nothing more until it is resumed."""
    from a2a_serverless.services.deliveries import pause

    _change(ctx, stack, pause, task, config)


def resume_push(
    ctx: typer.Context,
    task: Task,
    config: Config,
    *,
    stack: Stack = NAME,
    _json: Json = False,
) -> None:
    """Go on where a webhook was paused."""
    from a2a_serverless.services.deliveries import resume

    _change(ctx, stack, resume, task, config)


def show_keys(ctx: typer.Context, *, stack: Stack = NAME, _json: Json = False) -> None:
    """Show the key ring, without its secrets."""
    _tell_ring(ctx, _operations(ctx, stack).rotator({"command": "show"}))


def rotate_keys(ctx: typer.Context, *, stack: Stack = NAME, _json: Json = False) -> None:
    """Promote the next key, if it has been public for long enough."""
    operations = _operations(ctx, stack)
    operations.rotator({"command": "rotate"})
    _tell_ring(ctx, operations.rotator({"command": "show"}))


def revoke_key(
    ctx: typer.Context,
    kid: Annotated[str, typer.Argument(help="The key's id.", metavar="KID")],
    *,
    stack: Stack = NAME,
    _json: Json = False,
) -> None:
    """Take a key out of use and off the public list at once (an emergency)."""
    operations = _operations(ctx, stack)
    operations.rotator({"command": "revoke", "kid": kid})
    _tell_ring(ctx, operations.rotator({"command": "show"}))


def _operations(ctx: typer.Context, stack: str) -> "Operations":
    return world_of(ctx).operations(stack)


def _key(task: str) -> "TaskKey":
    from a2a_serverless.adapters.keys import key_of_path

    try:
        return key_of_path(task)
    except ValueError as error:
        raise typer.BadParameter("a task is named TENANT/OWNER/TASK, as `push list` prints it") from error


def _change(
    ctx: typer.Context,
    stack: str,
    change: "Callable[[Switchboard, TaskKey, str], object]",
    task: str,
    config: str,
) -> None:
    from a2a_serverless.services.deliveries import standings

    board, key = _operations(ctx, stack).board, _key(task)
    change(board, key, config)
    (one,) = [one for one in standings(board.log, board.store, key) if one.config.config_id == config]
    terminal = world_of(ctx).terminal
    if terminal.json:
        terminal.data(_printed(one))
    else:
        terminal.raw(f"{_line(one)}\n")


def _printed(one: "Standing") -> "JsonObject":
    from a2a_serverless.adapters.keys import path
    from a2a_serverless.wire.deliveries import print_standing

    return {"task": path(one.key.tenant, one.key.owner, one.key.task), **print_standing(one)}


def _line(one: "Standing") -> str:
    printed = _printed(one)
    where = f"{printed['task']}  {printed['id']}"
    how = f"{printed['state']}, {printed['verification']}, {printed['deliveredUpTo']}/{printed['lastEvent']} delivered"
    return f"{where}  {how}, {printed['failuresInARow']} failures in a row  {printed['url']}"


def attempt_words(attempt: "JsonObject") -> str:
    """An attempt in one line."""
    what = attempt.get("status") or attempt.get("error") or "?"
    again = f", next {attempt['nextAttemptAt']}" if "nextAttemptAt" in attempt else ""
    event = f"event {attempt['eventNumber']}" if attempt["eventNumber"] else "challenge"
    return f"{attempt['at']}  {event}, attempt {attempt['attempt']}: {what} in {attempt['milliseconds']} ms{again}"


def _tell_ring(ctx: typer.Context, ring: "JsonObject") -> None:
    terminal, shown = world_of(ctx).terminal, _with_times(ring)
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
    """The same with its times as texts."""
    from a2a_serverless.wire.timestamps import to_text

    if isinstance(value, dict):
        return {name: to_text(inner) if isinstance(inner, int) else _with_times(inner) for name, inner in value.items()}
    return [_with_times(inner) for inner in value] if isinstance(value, list) else value
