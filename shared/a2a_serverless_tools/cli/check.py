"""The command that checks a deployment from outside, for its owner after a deploy.

Each check is one function: it returns a description, or raises CheckFailed.
"""

import base64
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from rich.text import Text

from a2a_serverless.client import (
    Client,
    ClientEvent,
    ClientRequest,
    ClientResponse,
    DiscoveredAgent,
    HttpError,
    Transport,
    Unreachable,
    agents_of,
    text_message,
)
from a2a_serverless.client.discovery import fetch
from a2a_serverless.client.errors import objects_in
from a2a_serverless.domain.errors import A2AError, InvalidParams, TaskNotFound, Unauthenticated
from a2a_serverless.domain.model import JsonObject
from a2a_serverless.http_client.transport import is_local
from a2a_serverless.protocol.v1 import Message, SendMessageRequest, Task, TaskPushNotificationConfig, TaskState
from a2a_serverless_tools.cli.catalog import CATALOG_PATH
from a2a_serverless_tools.cli.errors import explain
from a2a_serverless_tools.cli.file_transfer import INLINE_PART_BYTES, download, file_part
from a2a_serverless_tools.cli.following import SETTLED, make_request
from a2a_serverless_tools.cli.inbox import InboxClient, InboxEntry
from a2a_serverless_tools.cli.options import AUTHORIZATION, STACK, CliContext, Local, StackContext, find

if TYPE_CHECKING:
    from a2a_serverless.domain.remotes import Remote
    from a2a_serverless_tools.operators.deployed import StackName

SHOWN_S = 0.1
FAILED = 1
STYLES = {"PASS": "green", "FAIL": "red", "SKIP": "yellow"}
WIDTH = 15
PREFERRED: Final = "document"
TEXT: Final = "The history of lighthouses, from fires on the shore to lamps that nobody keeps."
# A text of several parts, so that an agent that works part by part sends its stream for longer.
STREAMED: Final = "# Lighthouses\n" + "".join(
    f"\n## {title}\n\n{title} once lit the coast. Ships passed. Keepers wrote it down.\n"
    for title in ("Fires", "Candles", "Oil lamps", "Mirrors", "Lenses", "Gas", "Electric lamps", "Satellites")
)
BUFFERED: Final = 0.1  # of the whole time: if all items arrive within this share of it, the stream was buffered
SPREAD_S: Final = 0.1  # items that arrive over a longer time did not arrive in one piece
SHORT_S: Final = 1.0
PAUSE_S: Final = 0.5
UNAUTHORIZED: Final = 401
OTHER: Final = "A2A_OTHER_AUTHORIZATION"
# Link-local, private, and no TLS. A deployment in the emulator accepts this machine's own addresses.
PRIVATE: Final = ("https://169.254.169.254/latest/meta-data/", "https://10.0.0.1/a2a", "http://example.com/a2a")
OWN: Final = ("https://127.0.0.1/a2a", "https://localhost/a2a")
Where = Annotated[
    str,
    typer.Argument(
        envvar="A2A_URL",
        help="The URL of the deployment: the stack's output ApiUrl. By default what runs on this machine.",
        metavar="URL",
        show_default=False,
    ),
]
AgentId = Annotated[
    str, typer.Option("--agent", help="The agent to check; `document` or the first one by default.", metavar="ID")
]
Says = Annotated[str, typer.Option("--text", help="A text that the agent can work on.", metavar="TEXT")]
ReceiverUrl = Annotated[
    str,
    typer.Option(
        "--receiver", help="A webhook receiver (webhook_receiver/) that the deployment can reach.", metavar="URL"
    ),
]
StackWith = Annotated[
    str,
    typer.Option(
        "--stack",
        envvar="A2A_STACK",
        help="Check this stack from inside, too, with your AWS credentials.",
        metavar="NAME",
    ),
]
Rotate = Annotated[bool, typer.Option("--rotate", help="Rotate the signing keys, too. Needs --stack.")]
Buffered = Annotated[bool, typer.Option("--buffered", help="Accept that answers are not streamed.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait for a task or its webhooks.", min=1)]
Verdict = Literal["PASS", "FAIL", "SKIP"]


class CheckFailed(Exception):
    """The check failed; ``remedy`` says what to do."""

    verdict: Verdict = "FAIL"

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy = remedy


class CheckSkipped(CheckFailed):
    """The check could not be made; ``remedy`` says what it needs."""

    verdict = "SKIP"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check. ``seconds`` is how long it took."""

    name: str
    verdict: Verdict
    text: str
    remedy: str
    seconds: float


@dataclass
class CheckRun:
    """One run: the options of the command line, and what earlier checks have found for later ones.

    ``text`` is empty when the caller gave none. ``stack`` is None when no stack was named.
    """

    cli: CliContext
    url: str
    agent_id: str
    text: str
    receiver: str
    stack: "StackName | None"
    rotate: bool
    buffered: bool
    timeout_s: float
    remote: DiscoveredAgent | None = None
    task: Task | None = None
    items: list[ClientEvent] = field(default_factory=list)

    @cached_property
    def mirrors(self) -> "list[tuple[str, Remote]]":
        """The mirrors of the project in the current folder; empty without one."""
        return self.cli.mirrors()

    @property
    def agent(self) -> DiscoveredAgent:
        if self.remote is None:
            raise CheckSkipped("the check of the card failed", "fix that first")
        return self.remote

    @property
    def client(self) -> Client:
        return self.agent.client

    def sent(self) -> Task:
        """Returns the task of the check ``send``. Raises CheckSkipped when there is none."""
        if self.task is None:
            raise CheckSkipped("no task was made", "fix that first")
        return self.task

    def send(self, message: Message | None = None, push: TaskPushNotificationConfig | None = None) -> Task:
        """Sends a message that starts a task. Raises CheckFailed when the agent answers with a message."""
        answer = self.client.send(make_request(message or text_message(self.text or TEXT), push=push))
        if isinstance(answer, Message):
            remedy = "give a --text that makes it start a task"
            raise CheckFailed("the agent answered with a message and made no task", remedy)
        return answer

    def poll_until_timeout(self) -> Iterator[None]:
        """Yields at once and after each pause, until ``timeout_s`` has passed."""
        end = self.cli.clock() + self.timeout_s
        while self.cli.clock() < end:
            yield
            self.cli.sleep(PAUSE_S)


Check = Callable[[CheckRun], str]


def card(run: CheckRun) -> str:
    """The card is served, and names the URL that was asked."""
    cli = run.cli
    ids = [str(one.get("id")) for one in agents_of(run.url, cli.as_caller(run.url))]
    if not ids:
        raise CheckFailed("the deployment lists no agents", "[tool.a2a-serverless] agents in pyproject.toml lists them")
    agent = run.agent_id or (PREFERRED if PREFERRED in ids else ids[0])
    remote = find(cli, run.url, agent)
    card_url, url = remote.client.url, f"{run.url.rstrip('/')}/{agent}"
    if "://" not in agent and card_url != url:
        remedy = "check that address: clients go where the card points"
        raise CheckFailed(f"the card names {card_url}, not {url}", remedy)
    run.remote = remote
    return f"{remote.card.name} at {card_url}, A2A {remote.client.version}; {len(ids)} agents"


def signature(run: CheckRun) -> str:
    """The served card and the catalog are signed with keys that the deployment publishes.

    The keys are those of the deployment that is checked; where a signature says that keys are (``jku``) is not read.
    """
    from a2a_serverless.protocol.card_signatures import catalog_signed_by, signed_by

    keys = _published_keys(run)
    catalog = fetch(f"{run.client.url.rpartition('/')[0]}{CATALOG_PATH}", run.cli.transport)
    kid = _signing_key("card", signed_by(run.agent.document), keys)
    _signing_key("catalog", catalog_signed_by(catalog) if isinstance(catalog, dict) else (), keys)
    return f"by key {kid}, one of {len(keys)} published"


def _signing_key(what: str, signatures: Iterable[tuple[str, bytes, bytes]], keys: Mapping[str, JsonObject]) -> str:
    """The id of a published key that has signed the document. Raises CheckFailed if none has."""
    from a2a_serverless.adapters.es256 import is_valid_signature

    for kid, content, signature in signatures:
        if kid in keys and is_valid_signature(keys[kid], content, signature):
            return kid
    why = "no key of the published set has signed it as it was served" if keys else "the key set is empty"
    raise CheckFailed(
        f"the {what}'s signature is not valid: {why}",
        f"check whether a proxy or CDN alters the {what}; `keys show` shows which key signs, "
        "and the rotator's next run publishes cards, catalog and keys anew",
    )


def sign_in(run: CheckRun) -> str:
    """Requests without credentials are refused."""
    stranger = replace(run.client, transport=run.cli.transport)
    try:
        stranger.get("no-such-task")
    except (Unauthenticated, HttpError) as error:
        if _is_unauthenticated(error):
            return "a request without credentials is refused"
        raise
    except TaskNotFound:
        if is_local(run.url) and not run.agent.document.get("securitySchemes"):
            raise CheckSkipped("this deployment allows anonymous access", "only local stacks may do so") from None
    remedy = "redeploy the template as it is: anonymous access is off"
    raise CheckFailed("a request without credentials is accepted", remedy)


def send(run: CheckRun) -> str:
    """A message starts a task, and the answer does not wait for its end."""
    began = run.cli.clock()
    run.task = run.send()
    return f"task {run.task.id} is {run.task.status.state} after {run.cli.clock() - began:.1f} s"


def poll(run: CheckRun) -> str:
    """The task completes."""
    task = run.sent()
    for _ in run.poll_until_timeout():
        task = run.client.get(task.id)
        if task.status.state in SETTLED:
            break
    if task.status.state is TaskState.COMPLETED:
        return f"completed with {len(task.artifacts)} artifacts"
    if task.status.state in SETTLED:
        reason = task.status.message.text() if task.status.message else "it does not say why"
        raise CheckFailed(f"the task is {task.status.state}: {reason}", "give a --text that the agent can work on")
    raise CheckFailed(
        f"the task is still {task.status.state} after {run.timeout_s:.0f} s",
        "the worker's log says why (the output LogGroups names it; here: `logs worker`); --timeout waits longer",
    )


def stream(run: CheckRun) -> str:
    """Stream items arrive as they happen, not all at the end. A quick stream is judged by its missing length."""
    if not run.agent.card.capabilities.streaming:
        raise CheckSkipped("the card says that the agent does not stream", "nothing to do")
    clock, items, headers = run.cli.clock, run.items, dict[str, str]()
    client = replace(run.client, transport=_note_headers(run.client.transport, headers))
    began, arrived = clock(), list[float]()
    for item in client.stream(SendMessageRequest(message=text_message(run.text or STREAMED))):
        items.append(item)
        arrived.append(clock() - began)
    if not items:
        raise CheckFailed("the stream ended without an item", "the api function's log says why")
    total, first = arrived[-1], arrived[0]
    summary = f"{len(items)} items, the first after {first:.1f} s, the last after {total:.1f} s"
    if total - first >= max(SPREAD_S, BUFFERED * total):
        return f"{summary}, {max(b - a for a, b in pairwise(arrived)):.1f} s apart at most"
    if run.buffered:
        raise CheckSkipped(f"the answer is buffered, as --buffered says: {summary}", "ResponseStreaming=on streams it")
    if "content-length" in headers or (total >= SHORT_S and len(items) > 1):
        raise CheckFailed(
            f"the answer came all at once: {summary}",
            "deploy with ResponseStreaming=on, and look for a proxy that buffers; --buffered skips this check",
        )
    return f"{summary}: too quick to time, but sent without a length, as only a stream is"


def _note_headers(transport: Transport, headers: dict[str, str]) -> Transport:
    """Makes a transport that adds the headers of each answer to ``headers``."""

    @contextmanager
    def noting(call: ClientRequest) -> Iterator[ClientResponse]:
        with transport(call) as answer:
            headers.update(answer.headers)
            yield answer

    return noting


def resume(run: CheckRun) -> str:
    """A stream that is resumed with Last-Event-ID repeats each later event once."""
    numbers = list(dict.fromkeys(item.n for item in run.items if item.n is not None))
    task_id = next((item.task_id for item in run.items if item.task_id), None)
    if len(numbers) < 3 or task_id is None:  # noqa: PLR2004 - the one to resume at, and two to repeat
        raise CheckSkipped("there was no stream with event numbers to resume", "fix that first, or see --text")
    after = numbers[0]
    again = [item.n for item in run.client.subscribe(task_id, after) if item.n is not None]
    if again != [number for number in numbers if number > after]:
        remedy = "a proxy drops the header Last-Event-ID, or events were lost: see the api function's log"
        raise CheckFailed(f"after event {after} came {_listed(again)}; expected {_listed(numbers[1:])}", remedy)
    return f"after event {after} came the {len(again)} others, each once"


def private_webhook(run: CheckRun) -> str:
    """A webhook whose address is not public is refused, and no task is made."""
    urls = PRIVATE if is_local(run.url) else PRIVATE + OWN
    if not run.agent.card.capabilities.push_notifications:
        raise CheckSkipped("the card says that the agent sends no webhooks", "nothing to do")
    for url in urls:
        try:
            task = run.send(push=TaskPushNotificationConfig(url=url))
        except InvalidParams:
            continue
        with suppress(A2AError):
            run.client.cancel(task.id)
        remedy = "remove private hosts from WEBHOOK_TRUSTED_DOMAINS, and redeploy"
        raise CheckFailed(f"a webhook at {url} is accepted", remedy)
    return f"{', '.join(urls)}: each refused"


def isolation(run: CheckRun) -> str:
    """A second caller cannot get, follow, list or cancel the task of the first."""
    task, environment = run.sent(), run.cli.environment
    if not environment.get(OTHER):
        remedy = '`callers add somebody-else`, and its key in A2A_OTHER_AUTHORIZATION as "Bearer a2a_..."'
        raise CheckSkipped("there is no second caller", remedy)
    other = replace(run.client, transport=run.cli.as_caller(run.url, OTHER))
    if environment[OTHER] == environment.get(AUTHORIZATION):
        remedy = "A2A_OTHER_AUTHORIZATION needs those of another owner"
        raise CheckSkipped("both callers have the same credentials", remedy)
    tries: dict[str, Callable[[], object]] = {
        "get": lambda: other.get(task.id),
        "follow": lambda: list(other.subscribe(task.id)),
        "cancel": lambda: other.cancel(task.id),
        "list": lambda: other.version == "1.0" and task.id in other.task_ids(task.context_id),
    }
    for what, attempt in tries.items():
        with suppress(TaskNotFound), _second_caller():
            if attempt() is not False:
                remedy = "if these are two owners (`callers list`), delete the deployment, and report it"
                raise CheckFailed(f"another caller can {what} the task", remedy)
    return "for another caller the task does not exist: get, follow, cancel, list"


@contextmanager
def _second_caller() -> Iterator[None]:
    """Raises CheckFailed if the second caller's credentials are refused in the block."""
    try:
        yield
    except (Unauthenticated, HttpError) as error:
        if not _is_unauthenticated(error):
            raise
        remedy = "A2A_OTHER_AUTHORIZATION is set but not accepted: get a new token or key of this deployment"
        raise CheckFailed("the credentials of the second caller are not accepted", remedy) from error


def _is_unauthenticated(error: A2AError | HttpError) -> bool:
    return isinstance(error, Unauthenticated) or (isinstance(error, HttpError) and error.status == UNAUTHORIZED)


def files(run: CheckRun) -> str:
    """A file that is too big for a message is uploaded, and its download is the same."""
    content = os.urandom(32).hex().encode() + bytes(INLINE_PART_BYTES)
    part = file_part(run.client, run.cli.transport, content, "check.txt", "text/plain")
    message = text_message(run.text or TEXT)
    task = run.send(message.model_copy(update={"parts": (*message.parts, part)}))
    with suppress(A2AError):
        task = run.client.cancel(task.id)
    parts = [one for message in run.client.get(task.id).history for one in message.parts if one.kind in {"url", "raw"}]
    if not parts:
        raise CheckFailed("the task does not have the file that was sent", "the api function's log says why")
    if parts[0].kind == "raw":
        body = base64.b64decode(str(parts[0].value))
    elif str(parts[0].value).startswith(("https://", "http://")):
        body = b"".join(download(str(parts[0].value), run.cli.transport))
    else:
        raise CheckFailed(f"the file's address is no URL: {parts[0].value}", "the api function's log says why")
    if sha256(body).digest() != sha256(content).digest():
        text = f"{len(content):,} bytes were uploaded, and {len(body):,} others downloaded"
        raise CheckFailed(text, "check the bucket's rules")
    return f"{len(content):,} bytes were uploaded and downloaded unchanged"


def webhook(run: CheckRun) -> str:
    """The receiver gets verified webhooks up to the task's end."""
    deliveries = _round_trip(run)
    key_ids = {entry.kid for entry in deliveries}
    if unknown := key_ids - _published_keys(run).keys():
        raise CheckFailed(
            f"a key that is not published has signed: {_listed(sorted(unknown))}", "compare with `keys show`"
        )
    return f"{len(deliveries)} verified, signed by {_listed(sorted(key_ids))}"


def rotation(run: CheckRun) -> str:
    """After a rotation the new key signs, and the receiver accepts it."""
    stack = run.stack
    if not run.rotate or stack is None:
        raise CheckSkipped("the keys were not rotated", "--rotate with --stack and AWS credentials")
    rotator = run.cli.operations(stack).rotator
    before = _signing_keys(rotator({"command": "show"}))
    rotator({"command": "rotate"})
    after = _signing_keys(rotator({"command": "show"}))
    if after == before:
        raise CheckSkipped(
            f"the next key has not been public for long enough to sign ({before[1]})",
            "`keys show` shows from when on it may sign; check again then",
        )
    _receiver(run)
    deliveries: list[InboxEntry] = []
    for _ in run.poll_until_timeout():  # notifiers cache the key ring for some minutes
        deliveries = _round_trip(run)
        if {entry.kid for entry in deliveries} == {after[0]}:
            return f"{after[0]} signs now, after {before[0]}; {len(deliveries)} verified"
    key_ids = _listed(sorted({entry.kid for entry in deliveries}))
    raise CheckFailed(f"{key_ids} still signs, not {after[0]}", "the notifier's log says why")


def alarms(run: CheckRun) -> str:
    """No alarm of the stack is in state ALARM."""
    stack = run.stack
    if stack is None:
        raise CheckSkipped("alarms can only be checked from inside", "--stack NAME with AWS credentials")
    states = run.cli.alarms(stack)
    loud = [name for name, state in states.items() if state == "ALARM"]
    if loud:
        text = f"{len(loud)} of {len(states)} alarms are in state ALARM: {_listed(sorted(loud))}"
        raise CheckFailed(text, "docs/operate.md explains each")
    if not states:
        raise CheckSkipped("the stack has no alarms", "deploy the template as it is")
    return f"{len(states)} alarms, none in state ALARM"


def mirrors(run: CheckRun) -> str:
    """The cards of the project's mirrors are those that their remote agents serve now."""
    from a2a_serverless_tools.cli.mirror_cards import compare

    differences = [
        f"{card.agent} ({', '.join(card.changed)})" for card in compare(run.cli, run.mirrors) if card.changed
    ]
    if differences:
        remedy = f"{run.cli.program} cards refresh --write, then build and deploy"
        raise CheckFailed(f"remote agents have changed their cards: {_listed(differences)}", remedy)
    return f"the cards of {_listed(agent for agent, _ in run.mirrors)} are up to date"


CHECKS: Final[dict[str, Check]] = {
    "card": card,
    "signature": signature,
    "sign-in": sign_in,
    "send": send,
    "poll": poll,
    "stream": stream,
    "resume": resume,
    "private webhook": private_webhook,
    "isolation": isolation,
    "files": files,
    "webhook": webhook,
    "rotation": rotation,
    "alarms": alarms,
    "mirrors": mirrors,
}


def _run(run: CheckRun, check_one: Check) -> tuple[Verdict, str, str]:
    """Runs one check. An error that ``explain`` knows is its result; any other is raised."""
    try:
        return "PASS", check_one(run), ""
    except CheckFailed as error:
        return error.verdict, str(error), error.remedy
    except Exception as error:
        explained = explain(error, run.cli)
        if explained is None:
            raise
        return "FAIL", explained.text, explained.remedy or "the api function's log says more, by the time"


def check(  # noqa: PLR0913 - the options of a command
    cli: CliContext,
    url: Where = "",
    *,
    agent: AgentId = "",
    text: Says = "",
    receiver: ReceiverUrl = "",
    stack: StackWith = "",
    rotate: Rotate = False,
    buffered: Buffered = False,
    timeout: Timeout = 120,
    local: Local = False,
) -> None:
    """Check your deployment from outside: one line for each check, with what to do if it fails.

    It sends a few tasks in your name (A2A_AUTHORIZATION) and changes nothing else, except that --rotate rotates the
    signing keys. Checks that need more options or credentials are skipped, with a line that says what they need.
    """
    inside = StackContext(cli, stack or STACK, local).name if stack or local else None
    if rotate and inside is None:
        raise typer.BadParameter("--rotate needs --stack NAME: the keys are rotated from inside")
    # With --local, the address that A2A_URL keeps for other commands may be that of another deployment.
    url = cli.url("" if local and url == cli.environment.get("A2A_URL") else url)
    run = CheckRun(cli, url, agent, text, receiver, inside, rotate, buffered, timeout)
    results = []
    for result in _results(run):
        results.append(asdict(result))
        if not cli.terminal.json:
            _show(cli, result)
    counts = {verdict: sum(one["verdict"] == verdict for one in results) for verdict in STYLES}
    if cli.terminal.json:
        cli.terminal.data({"url": url, "checks": [*results], "counts": {**counts}})
    cli.terminal.note(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    raise typer.Exit(FAILED if counts["FAIL"] else 0)


def _results(run: CheckRun) -> Iterator[CheckResult]:
    """Yields each check's result as soon as it is known; stderr shows which check is running."""
    terminal, clock = run.cli.terminal, run.cli.clock
    checks = [(name, one) for name, one in CHECKS.items() if one is not mirrors or run.mirrors]
    for name, check_one in checks:
        if not terminal.err.is_terminal:
            terminal.note(f"  {name} …")
        began = clock()
        with terminal.waiting(name):
            verdict, text, remedy = _run(run, check_one)
        yield CheckResult(name, verdict, text, remedy, round(clock() - began, 3))


def _show(cli: CliContext, result: CheckResult) -> None:
    out = cli.terminal.out
    after = f" ({result.seconds:.1f} s)" if result.seconds >= SHOWN_S else ""
    words = f"  {result.name:{WIDTH}}  {result.text}{after}"
    out.print(Text.assemble((result.verdict, STYLES[result.verdict]), words), soft_wrap=True)
    if result.remedy:
        out.print(Text(f"{'':6}{'':{WIDTH}}  what helps: {result.remedy}"), soft_wrap=True)


def _published_keys(run: CheckRun) -> dict[str, JsonObject]:
    """Fetches the deployment's public keys, by key id."""
    url = f"{run.client.url.rpartition('/')[0]}/.well-known/jwks.json"
    return {str(key.get("kid")): key for key in objects_in(fetch(url, run.cli.transport), "keys")}


def _receiver(run: CheckRun) -> InboxClient:
    if not run.receiver:
        remedy = "deploy webhook_receiver/ with ISSUER set to this deployment, and name it by --receiver"
        raise CheckSkipped("there is no receiver that the deployment can reach", remedy)
    return InboxClient(run.receiver, run.cli.with_variable("A2A_RECEIVER_AUTHORIZATION", run.receiver))


def _round_trip(run: CheckRun) -> list[InboxEntry]:
    """Sends a task with a webhook at the receiver; returns its verified entries up to the task's end."""
    inbox = _receiver(run)
    if not run.agent.card.capabilities.push_notifications:
        raise CheckSkipped("the card says that the agent sends no webhooks", "nothing to do")
    try:
        push, last = inbox.expect(), max((entry.number for entry in inbox.list_entries()), default=0)
    except (HttpError, Unreachable) as error:
        remedy = 'give its URL without /webhook, and its password in A2A_RECEIVER_AUTHORIZATION, as "Bearer ..."'
        raise CheckFailed(f"the receiver does not answer as this project's do: {error}", remedy) from error
    task = run.send(push=push)
    entries: list[InboxEntry] = []
    for _ in run.poll_until_timeout():
        entries = inbox.list_entries(last)
        deliveries = [entry for entry in entries if entry.verified and entry.task_id == task.id]
        if any(entry.state in SETTLED for entry in deliveries):
            return deliveries
    refusal = next((entry.why for entry in entries if entry.why and entry.task_id in {"", task.id}), "")
    raise CheckFailed(
        f"no verified webhook had the task's end; {'refused: ' + refusal if refusal else 'none was refused either'}",
        "`deliveries AGENT TASK` shows each attempt, and docs/webhooks.md explains refusals; "
        f"the receiver's ISSUER has to be {run.client.url.rpartition('/')[0]} (task {task.id})",
    )


def _signing_keys(document: JsonObject) -> tuple[str, str]:
    """Returns the ids of the current and of the next key."""
    ring: Any = document
    return str(ring["current"]["kid"]), str(ring["next"]["kid"])


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "nothing"
