"""The commands that talk to agents: send, get, watch, cancel, tasks retry, deliveries.

What one of them alone needs is imported in it: a shell that completes its options must not wait for that.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

import typer

from a2a_serverless.client import ClientEvent, DiscoveredAgent, HttpError, Unreachable, text_message
from a2a_serverless.client.errors import objects_in
from a2a_serverless.domain.agent import WEBHOOK_EXTENSIONS
from a2a_serverless.domain.budgets import KINDS, METADATA_KEY, read_budget
from a2a_serverless.domain.errors import A2AError, TaskNotFound
from a2a_serverless.domain.model import Json, JsonObject
from a2a_serverless.domain.push_configs import WebhookEvents
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.http_client.transport import is_local
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.protocol.strict_json import loads
from a2a_serverless.protocol.v1 import (
    Artifact,
    Message,
    Part,
    Task,
    TaskPushNotificationConfig,
    TaskState,
    stream_response,
)
from a2a_serverless_tools.cli.file_transfer import download, file_part
from a2a_serverless_tools.cli.files import read_binary, read_file, read_text, save, text_part
from a2a_serverless_tools.cli.following import make_request, send_and_follow
from a2a_serverless_tools.cli.following import watch as watched
from a2a_serverless_tools.cli.formatting import answer_text, item_json, item_line, result_text, task_rows
from a2a_serverless_tools.cli.options import (
    Agent,
    CliContext,
    EndedTask,
    Last,
    NoReceiver,
    TaskId,
    Url,
    WrongUsage,
    check_url,
    fetch_of_task,
    find,
    find_task,
)
from a2a_serverless_tools.cli.terminal import Explained, quote_words

ENDED_BADLY = 3
YOUR_TURN = 4
INTERRUPTED_BY_USER = 130
LONGEST = 80
REFERENCE = re.compile(r"\(reference ([0-9a-f]{8})\)")
ADMINS_ONLY = {401, 403}

Text = Annotated[str, typer.Argument(help="The message; - reads stdin.", metavar="[TEXT]", show_default=False)]
Files = Annotated[list[Path] | None, typer.Option("--file", "-f", help="Send this file. Repeatable.", metavar="PATH")]
Data = Annotated[list[str] | None, typer.Option(help="Send this JSON value as data. Repeatable.", metavar="JSON")]
Metadata = Annotated[str, typer.Option(help="The message's metadata: a JSON object.", metavar="JSON")]
Bounds = Annotated[
    list[str] | None,
    typer.Option("--budget", help="What the task may spend: usd, tokens or steps. Repeatable.", metavar="KIND=AMOUNT"),
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Save its artifacts in this folder.", metavar="FOLDER")]
Answers = Annotated[
    str, typer.Option("--task", help="Answer the question of this task; the beginning of its id.", metavar="TASK")
]
ToLast = Annotated[bool, typer.Option("--last", help="Answer the question of your task that has changed last.")]
Context = Annotated[str | None, typer.Option(help="Continue this conversation.", metavar="CONTEXT")]
Refers = Annotated[list[str] | None, typer.Option("--refer", help="Refer to this task. Repeatable.", metavar="TASK")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Follow the task to its end, or only start it.")]
Webhook = Annotated[
    str | None,
    typer.Option(help="Notify this URL of yours. Its token is in A2A_WEBHOOK_TOKEN, if it wants one.", metavar="URL"),
]
InboxUrl = Annotated[
    str | None,
    typer.Option("--inbox", help="Notify this project's receiver at URL; first a token is got there.", metavar="URL"),
]
Events = Annotated[
    WebhookEvents | None,
    typer.Option("--webhook-events", help="Notify it of the states, also of the whole task at its end, or of all."),
]
FromStep = Annotated[str | None, typer.Option("--from", help="Repeat from this step on.", metavar="STEP")]
_Show: TypeAlias = Callable[[ClientEvent, TaskState | None], None]
OnlyText = Annotated[bool, typer.Option("--text", help="Print only its result.")]


def send(  # noqa: PLR0913 - the options of a command
    cli: CliContext,
    agent: Agent,
    text: Text = "",
    *,
    file: Files = None,
    data: Data = None,
    metadata: Metadata = "",
    budget: Bounds = None,
    task: Answers = "",
    last: ToLast = False,
    context: Context = None,
    refer: Refers = None,
    wait: Wait = True,
    webhook: Webhook = None,
    inbox: InboxUrl = None,
    webhook_events: Events = None,
    out: Out = None,
    url: Url = "",
) -> None:
    """Send a message to an agent, and follow its task.

    Its result goes to stdout: the artifacts, and the message with which it completes. Its progress goes to stderr.
    """
    draft = _Draft(cli, text, file or [], data or [], metadata, budget or [])
    check_addresses(webhook, inbox)
    if webhook_events and not (webhook or inbox):
        raise typer.BadParameter("--webhook-events needs --webhook or --inbox")
    remote = find(cli, url, agent)
    if webhook_events:
        remote = _with_events(remote, agent, webhook_events)
    task_id = find_task(cli, remote, agent, task, last=last) if task or last else None
    refers = tuple(find_task(cli, remote, agent, one, last=False) for one in refer or ())
    message = text_message("-", context_id=context, task_id=task_id)
    fields = {"reference_task_ids": refers, "parts": draft.parts(remote), "metadata": draft.metadata or None}
    message = message.model_copy(update=fields)
    push = _push(cli, webhook, inbox, agent)
    request = make_request(message, push=push, wait=wait)
    place = _Place(agent, url, push is not None)
    with _explain_end(cli, remote, place, task_id), _explain_webhook(webhook):
        if wait:
            _follow(cli, remote, place, send_and_follow(remote, request, cli.sleep), out, task_id if last else None)
        else:
            _hand_in(cli, place, remote.client.send(request))


def get(  # noqa: PLR0913 - the options of a command
    cli: CliContext,
    agent: Agent,
    task: TaskId = "",
    *,
    last: Last = False,
    text: OnlyText = False,
    out: Out = None,
    url: Url = "",
) -> None:
    """Show a task as it is now."""
    remote = find(cli, url, agent)
    current = remote.client.get(find_task(cli, remote, agent, task, last=last))
    cli.terminal.result(as_json(current), _ended(result_text(current)) if text else task_rows(current))
    save_artifacts(cli, current.artifacts, out)


def watch(cli: CliContext, agent: Agent, task: TaskId = "", *, last: Last = False, url: Url = "") -> None:
    """Follow a task until it ends or needs you. With --json one line for each event."""

    def show(item: ClientEvent, before: TaskState | None) -> None:
        if cli.terminal.json:
            cli.terminal.data(item_json(item), one_line=True)
        else:
            cli.terminal.out.print(item_line(item, before), soft_wrap=True)

    remote = find(cli, url, agent)
    task_id = find_task(cli, remote, agent, task, last=last)
    _, state = _show_items(cli, _Place(agent, url), watched(remote, task_id, cli.sleep), show, task_id)
    raise typer.Exit(_code(state))


def cancel(cli: CliContext, agent: Agent, task: TaskId = "", *, last: Last = False, url: Url = "") -> None:
    """Cancel a task. Its worker stops."""
    remote = find(cli, url, agent)
    canceled = remote.client.cancel(find_task(cli, remote, agent, task, last=last))
    cli.terminal.result(as_json(canceled), task_rows(canceled))


def retry(  # noqa: PLR0913 - the options of a command
    cli: CliContext,
    agent: Agent,
    task: TaskId = "",
    *,
    from_step: FromStep = None,
    last: Last = False,
    wait: Wait = True,
    out: Out = None,
    url: Url = "",
) -> None:
    """Retry a failed task: a new task takes over what ended well, and goes on from the step that failed.

    Only deployments of this project support it. Each start of this command makes a task.
    """
    from a2a_serverless_tools.cli.retries import post_retry

    remote, place = find(cli, url, agent), _Place(agent, url)
    task_id = find_task(cli, remote, agent, task, last=last)
    new_task = post_retry(remote.client, task_id, from_step, place.command(cli, "trace", task_id))
    if wait:
        _follow(cli, remote, place, watched(remote, new_task.id, cli.sleep), out)
    else:
        _hand_in(cli, place, new_task)


def deliveries(cli: CliContext, agent: Agent, task: TaskId = "", *, last: Last = False, url: Url = "") -> None:
    """Show the webhooks of a task and their attempts. Only deployments of this project support it."""
    from a2a_serverless_tools.cli.operator_commands import show_webhook

    remote = find(cli, url, agent)
    document = fetch_of_task(remote.client, find_task(cli, remote, agent, task, last=last), "deliveries")
    if cli.terminal.json:
        cli.terminal.data(document)
        return
    for webhook in document["deliveries"]:
        show_webhook(cli.terminal, webhook)
    if not document["deliveries"]:
        cli.terminal.note("The task has no webhooks.")


def save_artifacts(cli: CliContext, artifacts: Iterable[Artifact], out: Path | None) -> None:
    """Saves artifacts in the folder ``out``, if there is one, and says so."""
    for path in save(artifacts, out, fetch=lambda url: download(url, cli.transport)) if out else ():
        cli.terminal.note(f"Saved {path}")


class _Draft:
    """The content of a message, as the options give it. It is checked before anything is sent. Raises BadParameter."""

    def __init__(
        self, cli: CliContext, text: str, files: list[Path], data: list[str], metadata: str, budget: list[str]
    ) -> None:
        if not (text or files or data):
            raise typer.BadParameter("give TEXT, - (for stdin), --file PATH or --data JSON")
        self._cli, self._text = cli, read_text(text, cli.stdin)
        self._files = [(path, read_binary(path) or read_file(path)) for path in files]
        self._data = [_parse_json("--data", one) for one in data]
        value = _parse_json("--metadata", metadata) if metadata else {}
        if not isinstance(value, dict):
            raise typer.BadParameter("--metadata needs a JSON object")
        self.metadata: JsonObject = value | ({METADATA_KEY: _parse_budget(budget)} if budget else {})

    def parts(self, remote: DiscoveredAgent) -> tuple[Part, ...]:
        """The parts of the message, for an agent: a big file is uploaded to it."""
        card = remote.card
        takes = [*card.default_input_modes, *(mode for skill in card.skills for mode in skill.input_modes)]
        send = partial(file_part, remote.client, self._cli.request)
        files = [text_part(path, takes) if isinstance(file, str) else send(*file) for path, file in self._files]
        text = [Part(text=self._text)] if self._text else []
        return (*text, *files, *(Part(data=value) for value in self._data))


def _parse_json(option: str, text: str) -> Json:
    try:
        return loads(text.encode(), name=option)
    except A2AError as error:
        raise typer.BadParameter(str(error)) from None


def _parse_budget(bounds: list[str]) -> JsonObject:
    """The budget of a message's metadata. Raises BadParameter."""
    amounts: JsonObject = {}
    for bound in bounds:
        kind, _, amount = bound.partition("=")
        try:
            amounts[kind] = float(amount)
            read_budget({METADATA_KEY: amounts})
        except ValueError:
            text = f"--budget {bound}: write one of {', '.join(f'{kind}=AMOUNT' for kind in KINDS)}"
            raise typer.BadParameter(text) from None
    return amounts


def _push(cli: CliContext, webhook: str | None, inbox: str | None, agent: str) -> TaskPushNotificationConfig | None:
    if inbox:
        return _expect(cli, inbox, agent.rstrip("/").rpartition("/")[2])
    return TaskPushNotificationConfig(url=webhook, token=cli.environment.get("A2A_WEBHOOK_TOKEN")) if webhook else None


def _with_events(remote: DiscoveredAgent, agent: str, events: WebhookEvents) -> DiscoveredAgent:
    """The agent, with a client that asks for these events. Raises WrongUsage if its card does not offer that."""
    uri = WEBHOOK_EXTENSIONS[events].uri
    if not any(
        extension.get("uri") == uri for extension in objects_in(remote.document.get("capabilities"), "extensions")
    ):
        raise WrongUsage(f"The card of {agent} does not offer {uri}.", "leave --webhook-events out")
    return replace(remote, client=remote.client.with_extensions(uri))


def check_addresses(webhook: str | None, inbox: str | None) -> None:
    """Raises BadParameter, or WrongUsage for an address without scheme."""
    if webhook and inbox:
        raise typer.BadParameter("give only one of --webhook and --inbox")
    for option, address in (("--webhook", webhook), ("--inbox", inbox)):
        if address:
            check_url(option, address)


def _expect(cli: CliContext, inbox: str, agent: str) -> TaskPushNotificationConfig:
    """Registers a token at a receiver. Raises NoReceiver."""
    from a2a_serverless_tools.cli.inbox import InboxClient

    parts = urlsplit(inbox)
    remedy = f"`{cli.program} dev` or `up` starts a receiver, and prints the URL of its inbox"
    if parts.path.strip("/"):
        remedy = f"--inbox {parts.scheme}://{parts.netloc}"
    try:
        return InboxClient(inbox, cli.transport).expect(agent)
    except Unreachable as error:
        raise NoReceiver(f"There is no answer from the receiver at {inbox}: {error.why}.", remedy) from error
    except HttpError as error:
        if error.status in ADMINS_ONLY:
            text = f"The receiver at {inbox} registers tokens only for its administrator (HTTP {error.status})."
            remedy = "register a token there yourself; then --webhook URL with its token in A2A_WEBHOOK_TOKEN"
            raise NoReceiver(text, remedy) from error
        raise NoReceiver(f"There is no webhook receiver at {inbox} (HTTP {error.status}).", remedy) from error


@contextmanager
def _explain_webhook(webhook: str | None) -> Iterator[None]:
    """Raises WrongUsage with a URL that is allowed, if the agent refuses that of ``--webhook``."""
    try:
        yield
    except A2AError as refused:
        if not webhook or not any(one.field.endswith("PushNotificationConfig.url") for one in refused.violations):
            raise
        reason = str(refused).partition(" is refused: ")[2] or str(refused)
        raise WrongUsage(f"The agent refuses the webhook {webhook}: {reason}", _allowed(webhook)) from refused


def _allowed(webhook: str) -> str:
    """A URL that may be meant by one that is refused."""
    parts = urlsplit(webhook)
    if parts.scheme != "http":
        return "docs/webhooks.md says which URLs are allowed"
    if not is_local(webhook):
        return f"--webhook https://{webhook.partition('://')[2]}"
    place = f"{parts.port}{parts.path}" if parts.port else "PORT/PATH"
    return (
        f"on this machine --webhook http://127.0.0.1:{place}, not localhost; "
        "--inbox for the receiver of `dev` or `up`; a deployment in AWS needs https"
    )


@contextmanager
def _explain_end(cli: CliContext, remote: DiscoveredAgent, place: "_Place", task_id: str | None) -> Iterator[None]:
    """Raises EndedTask if a message was refused because its task has ended."""
    try:
        yield
    except A2AError as refused:
        task = _read_task(remote, task_id) if task_id else None
        if task is None or task.status.state not in TERMINAL:
            raise
        remedy = place.command(cli, "send", "--context", task.context_id, message='"..."')
        raise EndedTask(f"The task {task.id} has ended: it is {task.status.state}.", remedy) from refused


def _read_task(remote: DiscoveredAgent, task_id: str) -> Task | None:
    with suppress(A2AError, HttpError, Unreachable):
        return remote.client.get(task_id, history_length=0)
    return None


@dataclass(frozen=True)
class _Place:
    """An agent and the deployment, as they were named on the command line, and whether a webhook was."""

    agent: str
    url: str
    has_webhook: bool = False

    def command(self, cli: CliContext, command: str, *rest: str, message: str = "") -> str:
        """A command line to copy, for the same agent. The words come from an agent, so they are in quotes."""
        where = ["--url", self.url] if self.url and "://" not in self.agent else []
        words = [cli.program, command, quote_words(self.agent, *rest), message, quote_words(*where)]
        return " ".join(filter(None, words))


def _show_items(
    cli: CliContext, place: _Place, items: Iterator[ClientEvent], show: _Show, task_id: str = ""
) -> tuple[str, TaskState | None]:
    """Shows each item; returns the task's id and last state. Ctrl-C ends the command, not the task, and says so."""
    state = None
    try:
        while item := _next(cli, items):
            show(item, state)
            task_id, state = item.task_id or task_id, item.state or state
    except KeyboardInterrupt:
        text = f"Interrupted. The task {task_id} goes on." if task_id else "Interrupted before the agent answered."
        remedy = place.command(cli, "watch", task_id) if task_id else place.command(cli, "tasks list")
        cli.terminal.fail(Explained("Interrupted", text, remedy))
        raise typer.Exit(INTERRUPTED_BY_USER) from None
    return task_id, state


def _next(cli: CliContext, items: Iterator[ClientEvent]) -> ClientEvent | None:
    with cli.terminal.waiting("Following the task; Ctrl-C leaves it running"):
        return next(items, None)


def _hand_in(cli: CliContext, place: _Place, answer: Task | Message) -> None:
    """Prints only the task's id to stdout, so that a script can use it."""
    if isinstance(answer, Message):
        _show_message(cli, place, answer)
    else:
        cli.terminal.result(as_json(stream_response(answer)), f"{answer.id}\n")
        cli.terminal.note(f"It is {answer.status.state}. To follow it: {place.command(cli, 'watch', answer.id)}")


def _show_message(cli: CliContext, place: _Place, message: Message) -> None:
    cli.terminal.result(as_json(stream_response(message)), _ended(message.text()))
    if place.has_webhook:
        cli.terminal.note("The agent answered without a task, so no webhook is sent: webhooks are about tasks.")


def _follow(
    cli: CliContext,
    remote: DiscoveredAgent,
    place: _Place,
    items: Iterator[ClientEvent],
    out: Path | None,
    shown_id: str | None = None,
) -> None:
    numbers: set[int | None] = set()  # only deployments of this project number events

    def show(item: ClientEvent, before: TaskState | None) -> None:
        if isinstance(item.content, Message):
            _show_message(cli, place, item.content)
            raise typer.Exit
        if item.state and not before and item.task_id != shown_id:
            cli.terminal.note(f"Task {item.task_id}")
        cli.terminal.note(item_line(item, before, with_answer=cli.terminal.json))
        numbers.add(item.n)

    task_id, _ = _show_items(cli, place, items, show)
    task = remote.client.get(task_id)
    cli.terminal.result(as_json(stream_response(task)), _ended(answer_text(task) if out else result_text(task)))
    save_artifacts(cli, task.artifacts, out)
    code = _code(task.status.state)
    if any(numbers) and place.has_webhook:
        _note_failed_webhooks(cli, remote, place, task.id)
    if any(numbers) and code != YOUR_TURN:
        cli.terminal.note(f"Timeline: {place.command(cli, 'trace', task.id)}")
    if any(numbers) and task.status.state is TaskState.FAILED:
        _note_reference(cli, remote, task)
    if code == YOUR_TURN:
        answer = place.command(cli, "send", "--task", task.id, message='"..."')
        cli.terminal.note(f"Your turn: {answer}")
    raise typer.Exit(code)


def _note_reference(cli: CliContext, remote: DiscoveredAgent, task: Task) -> None:
    """Says where the error is shown to which the message of a failed task refers."""
    reference = REFERENCE.search(task.status.message.text() if task.status.message else "")
    if not reference:
        return
    stack = "" if is_local(remote.client.url) else " --stack STACK"
    cli.terminal.note(f"Why: {cli.program} logs --task {task.id}{stack}")


def _note_failed_webhooks(cli: CliContext, remote: DiscoveredAgent, place: _Place, task_id: str) -> None:
    """Says of each webhook of the task what its last attempt got, or until when its host is paused."""
    from a2a_serverless_tools.cli.operator_commands import attempt_result, webhook_state

    with suppress(TaskNotFound, HttpError, Unreachable):
        for webhook in fetch_of_task(remote.client, task_id, "deliveries")["deliveries"]:
            why = f"Why: {place.command(cli, 'deliveries', task_id)}"
            if "hostPaused" in webhook:
                cli.terminal.note(f"Webhook: {webhook_state(webhook)}. {why}")
            elif webhook["failuresInARow"] and webhook["attempts"]:
                cli.terminal.note(f"Webhook: the last attempt got {attempt_result(webhook['attempts'][-1])}. {why}")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _code(state: TaskState | None) -> int:
    """Returns the exit code for a task's state."""
    if state in INTERRUPTED:
        return YOUR_TURN
    return ENDED_BADLY if state in TERMINAL - {TaskState.COMPLETED} else 0
