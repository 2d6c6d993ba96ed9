"""The operator's commands: webhooks of a deployed stack, and the keys that sign them.

They use the stack's table, queue and rotator with the current AWS credentials and region; anyone with permissions for
those is an operator (docs/roles.md). ``--local`` means the stack that ``up`` has started, and ignores the AWS settings.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any

import typer

from a2a_serverless.domain.errors import TaskNotFound
from a2a_serverless.domain.model import Json, JsonObject, TaskKey, key_of_path, path
from a2a_serverless.domain.push_configs import WebhookStatus
from a2a_serverless.protocol.additions import Delivery
from a2a_serverless.protocol.protojson import as_json, read_timestamp, timestamp_text
from a2a_serverless.services.webhook_statuses import list_statuses
from a2a_serverless_tools.cli.formatting import moment
from a2a_serverless_tools.cli.options import StackContext
from a2a_serverless_tools.cli.terminal import Terminal
from a2a_serverless_tools.operators.deliveries import (
    DeliveryAdmin,
    DeliverySelection,
    list_exhausted,
    pause,
    redrive,
    redrive_all,
    resume,
)

_AGO = re.compile(r"([1-9][0-9]{0,5})([mhd])")
HEAD = ("TASK", "CONFIG", "STATE", "URL")
REASON = "the reason is in its inbox, or its log (on this machine: a2a-serverless logs receiver)"
REFUSED = f"tell the receiver's owner the status and the time; {REASON}"
NOT_VERIFIED = f"check the receiver's audience (the URL), issuer, keys and clock; {REASON}"
UNANSWERED = "check that the receiver runs, and that the URL is right"
PAUSED = "start the receiver; `push redrive` by an operator tries it now (the receiver of `up`: start `up` again)"
UNAUTHORIZED = 401
_UNIT_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}

Task = Annotated[
    str,
    typer.Argument(
        help="TENANT/OWNER/TASK, percent-encoded, as `deliveries` and `push list` print it.", metavar="TASK"
    ),
]
ListedTask = Annotated[str, typer.Argument(help="Only this task; else all that were given up.", metavar="[TASK]")]
OneTask = Annotated[str, typer.Argument(help="TENANT/OWNER/TASK.", metavar="[TASK]")]
Config = Annotated[str, typer.Argument(help="The configuration's id.", metavar="CONFIG")]
OneConfig = Annotated[str, typer.Argument(help="The configuration's id.", metavar="[CONFIG]")]
Every = Annotated[bool, typer.Option("--all", help="All that were given up.")]
Limit = Annotated[int, typer.Option(help="The largest number of results.", min=1, max=1000)]
Host = Annotated[str, typer.Option(help="Only webhooks of this host (or host:port).", metavar="HOST")]
Since = Annotated[
    str,
    typer.Option(
        help="Only webhooks that were given up, or failed first, since then: 2h, or a timestamp.", metavar="WHEN"
    ),
]
Kid = Annotated[str, typer.Argument(help="The key's id.", metavar="KID")]


def list_pushes(
    stack: StackContext, task: ListedTask = "", *, host: Host = "", since: Since = "", limit: Limit = 100
) -> None:
    """Show the webhooks of a task, or all that were given up; with --host also those that wait for a next attempt."""
    given_up = _selection(stack, host, since)
    statuses = _statuses(stack, task) if task else list_exhausted(stack.admin, limit, given_up)
    stack.terminal.table({"deliveries": [webhook_form(one) for one in statuses]}, HEAD, [*map(webhook_cells, statuses)])
    if not statuses:
        stack.terminal.note("There are no such webhooks.")


def show_push(stack: StackContext, task: Task, config: Config) -> None:
    """Show the state of a webhook, and its attempts."""
    statuses = _statuses(stack, task, config)
    if not statuses:
        raise TaskNotFound("The push notification configuration was not found.")
    if stack.terminal.json:
        stack.terminal.data(webhook_form(statuses[0]))
    else:
        show_webhook(stack.terminal, webhook_form(statuses[0]))


def redrive_push(
    stack: StackContext,
    task: OneTask = "",
    config: OneConfig = "",
    *,
    every: Every = False,
    host: Host = "",
    since: Since = "",
) -> None:
    """Redrive a webhook, or all that were given up; with --host also those that wait there for their next attempt.

    It is tried at once. A host that does not answer gets one such attempt in 30 seconds.
    """
    many = every or bool(host or since)
    if many == bool(task) or bool(task) != bool(config):
        raise typer.BadParameter("name one webhook (TASK and CONFIG), or several by --host, --since or --all")
    if many:
        _redrive_all(stack, _selection(stack, host, since))
    else:
        _change(stack, redrive, task, config)


def pause_push(stack: StackContext, task: Task, config: Config) -> None:
    """Stop deliveries to a webhook until it is resumed."""
    _change(stack, pause, task, config)


def resume_push(stack: StackContext, task: Task, config: Config) -> None:
    """Resume deliveries to a paused webhook where they stopped."""
    _change(stack, resume, task, config)


def show_keys(stack: StackContext) -> None:
    """Show the key ring, without its secrets."""
    _show_ring(stack, _read_ring(stack))


def _call_rotator(stack: StackContext, **command: str) -> JsonObject:
    with stack.terminal.waiting("Waiting for the rotator"):
        return stack.operations.rotator(command)


def _read_ring(stack: StackContext) -> Any:  # noqa: ANN401 - any JSON
    return _with_times(_call_rotator(stack, command="show"))


def _show_ring(stack: StackContext, ring: Any) -> None:  # noqa: ANN401 - any JSON
    current, following, previous = ring["current"], ring["next"], ring["previous"]
    rows = [
        ("current", f"{current['kid']}  signs since {current['signsSince']}"),
        ("next", f"{following['kid']}  may sign from {following['promotableAt']}"),
        *((f"previous {n}", f"{old['kid']}  public until {old['until']}") for n, old in enumerate(previous, 1)),
    ]
    stack.terminal.result(ring, rows)


def rotate_keys(stack: StackContext) -> None:
    """Promote the next key, if it has been public for long enough."""
    before = _read_ring(stack)
    _call_rotator(stack, command="rotate")
    ring = _read_ring(stack)
    is_same = ring["current"]["kid"] == before["current"]["kid"]
    _show_ring(stack, {"rotated": not is_same, **ring})
    if is_same:
        since = ring["next"]["promotableAt"]
        stack.terminal.note(f"Not rotated: the next key may sign from {since}, when receivers have read it.")


def revoke_key(stack: StackContext, kid: Kid) -> None:
    """Revoke a key at once, also in the public key set (for emergencies)."""
    _call_rotator(stack, command="revoke", kid=kid)
    show_keys(stack)


def show_webhook(terminal: Terminal, webhook: JsonObject) -> None:
    """Writes a webhook as rows, and one line for each attempt; what helps, if the last one failed."""
    fields = {name: value for name, value in webhook.items() if name not in {"attempts", "hostPaused"}}
    terminal.rows([(_label(name), str(value)) for name, value in (fields | {"state": webhook_state(webhook)}).items()])
    attempts: Any = webhook["attempts"]
    for attempt in attempts:
        again = f", next {attempt['nextAttemptAt']}" if "nextAttemptAt" in attempt else ""
        event = f"event {attempt['eventNumber']}" if attempt["eventNumber"] else "challenge"
        tried = (
            f"{event}, attempt {attempt['attempt']}: {attempt_result(attempt)} in {attempt['milliseconds']} ms{again}"
        )
        terminal.raw(f"  {attempt['at']}  {tried}\n")
    if "hostPaused" in webhook:
        terminal.note(f"  what helps: {PAUSED}")
    elif attempts and webhook["failuresInARow"]:
        terminal.note(f"  what helps: {_remedy(attempts[-1])}")


def _remedy(attempt: Any) -> str:  # noqa: ANN401 - any JSON
    if "status" not in attempt:
        return UNANSWERED
    return NOT_VERIFIED if attempt["status"] == UNAUTHORIZED else REFUSED


def webhook_state(webhook: Any) -> str:  # noqa: ANN401 - any JSON
    """The state of a webhook; if its host is paused, until when and why."""
    pause = webhook.get("hostPaused")
    if not pause:
        return str(webhook["state"])
    until = moment(read_timestamp(pause["until"]))
    return f"host paused until {until} after {pause['unanswered']} unanswered"


def attempt_result(attempt: Any) -> str:  # noqa: ANN401 - any JSON
    """What an attempt got: the status of the answer, or the name of an error."""
    return str(attempt.get("status") or attempt.get("error") or "?")


def _label(name: str) -> str:
    """The name of a JSON member for people: ``Delivered up to``."""
    return "URL" if name == "url" else re.sub("[A-Z]", lambda match: f" {match[0].lower()}", name).capitalize()


def moment_of(text: str, now: int) -> int:
    """Parses ``30m``, ``12h`` or ``2d`` (before ``now``, ms), or a timestamp; returns ms since the epoch.

    Raises BadParameter.
    """
    ago = _AGO.fullmatch(text)
    if ago:
        return now - int(ago[1]) * _UNIT_MS[ago[2]]
    try:
        return read_timestamp(text)
    except ValueError:
        raise typer.BadParameter("30m, 12h or 2d (ago), or a timestamp such as 2026-05-28T09:30:00Z") from None


def _selection(stack: StackContext, host: str, since: str) -> DeliverySelection:
    return DeliverySelection(host=host or None, since=moment_of(since, stack.admin.clock.now()) if since else None)


def task_key(task: str) -> TaskKey:
    """The key of the task that is named TENANT/OWNER/TASK. Raises BadParameter."""
    try:
        return key_of_path(task)
    except ValueError as error:
        text = "a task is named TENANT/OWNER/TASK: `deliveries AGENT TASK` prints it, and so does `push list`"
        raise typer.BadParameter(text) from error


def _statuses(stack: StackContext, task: str, config: str = "") -> list[WebhookStatus]:
    """Returns the webhooks of a task, or the one with this configuration's id."""
    key = task_key(task)
    snapshot = stack.admin.log.read_head(key)
    if snapshot is None:
        raise TaskNotFound
    statuses = list_statuses(stack.admin.store, snapshot)
    return [one for one in statuses if config in {"", one.config.config_id}]


def _change(
    stack: StackContext, change: Callable[[DeliveryAdmin, TaskKey, str], object], task: str, config: str
) -> None:
    key = task_key(task)
    change(stack.admin, key, config)
    (one,) = _statuses(stack, task, config)
    stack.terminal.table(webhook_form(one), HEAD, [webhook_cells(one)])


def _redrive_all(stack: StackContext, selection: DeliverySelection) -> None:
    redriven: list[Json] = []
    for key, config_id in redrive_all(stack.admin, selection):
        redriven.append({"task": _path(key), "id": config_id})
        if not stack.terminal.json:
            stack.terminal.raw(f"{_path(key)}  {config_id}\n")
    if stack.terminal.json:
        stack.terminal.data({"redriven": redriven})
    stack.terminal.note(f"Redriven: {len(redriven)}.")


def _path(key: TaskKey) -> str:
    return path(*key)


def webhook_form(one: WebhookStatus) -> JsonObject:
    """A webhook as JSON."""
    return as_json(Delivery.of(one, _path(one.key)))


def webhook_cells(one: WebhookStatus) -> list[str]:
    """The cells of a webhook in a table with ``HEAD``."""
    cursor = one.cursor
    how = f"{webhook_state(webhook_form(one))}, {cursor.verification}, {cursor.position}/{one.last} delivered"
    return [_path(one.key), one.config.config_id, f"{how}, {cursor.attempt} failures in a row", one.config.url]


def _with_times(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Returns a copy with the times (integers) as timestamps."""
    if isinstance(value, dict):
        return {
            name: timestamp_text(inner) if isinstance(inner, int) else _with_times(inner)
            for name, inner in value.items()
        }
    return [_with_times(inner) for inner in value] if isinstance(value, list) else value
