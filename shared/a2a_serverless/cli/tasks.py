"""The commands that talk to agents: send, get, watch, cancel, deliveries."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from a2a_serverless.cli.files import save
from a2a_serverless.cli.following import send_and_follow
from a2a_serverless.cli.following import watch as watched
from a2a_serverless.cli.formatting import item_json, item_line, result_text, sent_json, task_json, task_rows
from a2a_serverless.cli.inbox import InboxClient
from a2a_serverless.cli.input import read_binary, read_source
from a2a_serverless.cli.operator_commands import attempt_words
from a2a_serverless.cli.options import LOCAL_URL, Agent, CliContext, Json, TaskId, Url, context_of, find
from a2a_serverless.client import DiscoveredAgent, StreamResponse, text_message
from a2a_serverless.client.discovery import fetch
from a2a_serverless.client.files import download, file_part
from a2a_serverless.domain.model import Message, PushRequest, SendRequest, Task, TaskState
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL

ENDED_BADLY = 3
YOUR_TURN = 4

Text = Annotated[str, typer.Argument(help="The message; - reads stdin.", metavar="[TEXT]", show_default=False)]
File = Annotated[Path | None, typer.Option("--file", "-f", help="Send this file.", metavar="PATH")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Save its artifacts in this folder.", metavar="FOLDER")]
Answers = Annotated[str | None, typer.Option("--task", help="Answer the question of this task.", metavar="TASK")]
Context = Annotated[str | None, typer.Option(help="Continue this conversation.", metavar="CONTEXT")]
Refers = Annotated[list[str] | None, typer.Option("--refer", help="Refer to this task. Repeatable.", metavar="TASK")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Follow the task to its end, or only start it.")]
Webhook = Annotated[str | None, typer.Option(help="Notify this URL.", metavar="URL")]
InboxUrl = Annotated[str | None, typer.Option("--inbox", help="Notify the receiver that runs there.", metavar="URL")]
OnlyText = Annotated[bool, typer.Option("--text", help="Print only the text of its artifacts.")]


def send(  # noqa: PLR0913 - the options of a command
    ctx: typer.Context,
    agent: Agent,
    text: Text = "",
    *,
    file: File = None,
    task: Answers = None,
    context: Context = None,
    refer: Refers = None,
    wait: Wait = True,
    webhook: Webhook = None,
    inbox: InboxUrl = None,
    out: Out = None,
    url: Url = LOCAL_URL,
    _json: Json = False,
) -> None:
    """Send a message to an agent, and follow its task.

    The agent's answer or artifacts go to stdout, its progress to stderr.
    """
    cli = context_of(ctx)
    binary = read_binary(file) if file else None
    said, media_type = (text, None) if binary else read_source(text, file, cli.stdin)
    message = text_message(said, media_type, context_id=context, task_id=task)
    message = replace(message, reference_task_ids=tuple(refer or ()))
    found = find(cli, url, agent)
    if binary:
        part = file_part(found.client, *binary)
        message = replace(message, parts=(*(message.parts if said else ()), part))
    request = SendRequest(message, return_immediately=not wait, push=_push(cli, webhook, inbox))
    if wait:
        _follow(cli, found, agent, send_and_follow(found, request, cli.sleep), out)
    else:
        _hand_in(cli, agent, found.client.send(request))


def get(
    ctx: typer.Context,
    agent: Agent,
    task: TaskId,
    *,
    text: OnlyText = False,
    out: Out = None,
    url: Url = LOCAL_URL,
    _json: Json = False,
) -> None:
    """Show a task as it is now."""
    cli = context_of(ctx)
    found = find(cli, url, agent).client.get(task)
    if cli.terminal.json:
        cli.terminal.data(task_json(found))
    elif text:
        cli.terminal.raw(_ended(result_text(found)))
    else:
        cli.terminal.rows(task_rows(found))
    _save(cli, found, out)


def watch(
    ctx: typer.Context,
    agent: Agent,
    task: TaskId,
    *,
    url: Url = LOCAL_URL,
    _json: Json = False,
) -> None:
    """Follow a task until it ends or needs you. With --json one line for each event."""
    cli = context_of(ctx)
    state = None
    for item in watched(find(cli, url, agent), task, cli.sleep):
        if cli.terminal.json:
            cli.terminal.data(item_json(item), one_line=True)
        else:
            cli.terminal.out.print(item_line(item), soft_wrap=True)
        state = item.state or state
    raise typer.Exit(_code(state))


def cancel(
    ctx: typer.Context,
    agent: Agent,
    task: TaskId,
    *,
    url: Url = LOCAL_URL,
    _json: Json = False,
) -> None:
    """Cancel a task. Its worker stops."""
    cli = context_of(ctx)
    canceled = find(cli, url, agent).client.cancel(task)
    if cli.terminal.json:
        cli.terminal.data(task_json(canceled))
    else:
        cli.terminal.rows(task_rows(canceled))


def deliveries(ctx: typer.Context, agent: Agent, task: TaskId, *, url: Url = LOCAL_URL, _json: Json = False) -> None:
    """Show the webhooks of a task and their attempts. Only deployments of this project support it."""
    cli = context_of(ctx)
    client = find(cli, url, agent).client
    address = f"{client.url}/tasks/{quote(task, safe='')}/deliveries"
    document: Any = fetch(address, cli.transport, {"A2A-Version": "1.0", **client.headers})
    if cli.terminal.json:
        cli.terminal.data(document)
        return
    for one in document["deliveries"]:
        cli.terminal.rows([(name, str(value)) for name, value in one.items() if name != "attempts"])
        for attempt in one["attempts"]:
            cli.terminal.raw(f"  {attempt_words(attempt)}\n")
    if not document["deliveries"]:
        cli.terminal.note("The task has no webhooks.")


def _push(cli: CliContext, webhook: str | None, inbox: str | None) -> PushRequest | None:
    if webhook and inbox:
        raise typer.BadParameter("give only one of --webhook and --inbox")
    if inbox:
        return InboxClient(inbox, cli.transport).expect()
    return PushRequest(webhook, token=cli.environment.get("A2A_WEBHOOK_TOKEN")) if webhook else None


def _hand_in(cli: CliContext, agent: str, sent: Task | Message) -> None:
    """Prints only the task's id to stdout, so that a script can use it."""
    terminal = cli.terminal
    if terminal.json:
        terminal.data(sent_json(sent))
    elif isinstance(sent, Message):
        terminal.raw(_ended(sent.text()))
    else:
        terminal.raw(f"{sent.task_id}\n")
        terminal.note(f"It is {sent.status.state}. To follow it: {cli.program} watch {agent} {sent.task_id}")


def _follow(
    cli: CliContext, found: DiscoveredAgent, agent: str, items: Iterator[StreamResponse], out: Path | None
) -> None:
    task_id = ""
    for item in items:
        if isinstance(item.content, Message):
            _answer(cli, item.content)
            return
        cli.terminal.note(item_line(item))
        task_id = item.content.task_id
    task = found.client.get(task_id)
    _result(cli, task, out)
    code = _code(task.status.state)
    if code == YOUR_TURN:
        cli.terminal.note(f'Your turn: {cli.program} send {agent} --task {task.task_id} "..."')
    raise typer.Exit(code)


def _answer(cli: CliContext, message: Message) -> None:
    if cli.terminal.json:
        cli.terminal.data(sent_json(message))
    else:
        cli.terminal.raw(_ended(message.text()))


def _result(cli: CliContext, task: Task, out: Path | None) -> None:
    if cli.terminal.json:
        cli.terminal.data(sent_json(task))
    elif out is None:
        cli.terminal.raw(_ended(result_text(task)))
    _save(cli, task, out)


def _save(cli: CliContext, task: Task, out: Path | None) -> None:
    for path in save(task.artifacts, out, fetch=lambda url: download(url, cli.transport)) if out else ():
        cli.terminal.note(f"Saved {path}")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _code(state: TaskState | None) -> int:
    """Returns the exit code for a task's state."""
    if state in INTERRUPTED:
        return YOUR_TURN
    return ENDED_BADLY if state in TERMINAL - {TaskState.COMPLETED} else 0
