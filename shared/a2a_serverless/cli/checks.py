"""What ``check`` looks at, one function for each line: it returns what it saw, or raises what is wrong with it."""

import base64
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from a2a_serverless.cli.errors import explain
from a2a_serverless.cli.inbox import Entry, Inbox
from a2a_serverless.cli.options import World, find
from a2a_serverless.client import Client, Found, Item, Refused, Unreachable, agents_of, text_message
from a2a_serverless.client.discovery import fetch
from a2a_serverless.client.files import INLINE, download, file_part
from a2a_serverless.client.http import is_local
from a2a_serverless.domain.errors import A2AError, InvalidParams, TaskNotFound, Unauthenticated
from a2a_serverless.domain.model import JsonObject, Message, PushRequest, SendRequest, Task, TaskState
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL

if TYPE_CHECKING:
    from a2a_serverless.domain.deployed import StackName

PREFERRED: Final = "document"
TEXT: Final = "The history of lighthouses, from fires on the shore to lamps that nobody keeps."
BUFFERED: Final = 0.1  # of the whole time: a stream whose items all come within so little of it was held back
SHORT_S: Final = 1.0
PAUSE_S: Final = 0.5
UNAUTHORIZED: Final = 401
# Link-local, private, and no TLS. This machine's own addresses are let in by the emulator's deployment.
PRIVATE: Final = ("https://169.254.169.254/latest/meta-data/", "https://10.0.0.1/a2a", "http://example.com/a2a")
LOOPBACK: Final = ("https://127.0.0.1/a2a", "https://localhost/a2a")
Verdict = Literal["PASS", "FAIL", "SKIP"]


class Wrong(Exception):
    """It is not as it should be; ``remedy`` says what to do."""

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy = remedy


class Skipped(Wrong):
    """It was not looked at; ``remedy`` says what it takes."""


@dataclass(frozen=True, slots=True)
class Line:
    """What became of one check."""

    name: str
    verdict: Verdict
    text: str
    remedy: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Choices:
    """What the command line says. ``stack`` is None when no stack was named."""

    url: str
    agent: str = ""
    text: str = TEXT
    receiver: str = ""
    stack: "StackName | None" = None
    rotate: bool = False
    buffered: bool = False
    patience_s: float = 120


@dataclass
class Visit:
    """One run: what it was told, and what the checks so far have found for those that follow."""

    world: World
    choices: Choices
    found: Found | None = None
    task: Task | None = None
    items: list[Item] = field(default_factory=list)

    @property
    def agent(self) -> Found:
        if self.found is None:
            raise Skipped("the check of the card failed", "mend that first")
        return self.found

    @property
    def client(self) -> Client:
        return self.agent.client

    @property
    def other(self) -> Client | None:
        """The same agent for a second caller; None when there are no credentials of one."""
        authorization = self.world.environment.get("A2A_OTHER_AUTHORIZATION")
        return replace(self.client, headers={"Authorization": authorization}) if authorization else None

    def sent(self) -> Task:
        """The task that was sent before."""
        if self.task is None:
            raise Skipped("no task was made", "mend that first")
        return self.task

    def send(self, message: Message | None = None, push: PushRequest | None = None) -> Task:
        """Hands a task in. Raises Wrong when the agent answers with a message."""
        wanted = SendRequest(message or text_message(self.choices.text), return_immediately=True, push=push)
        answer = self.client.send(wanted)
        if isinstance(answer, Message):
            raise Wrong("the agent answered with a message and made no task", "--text says what makes it start a task")
        return answer

    def waits(self) -> Iterator[None]:
        """Again and again, with a pause between, until the patience is spent."""
        end = self.world.clock() + self.choices.patience_s
        while self.world.clock() < end:
            yield
            self.world.sleep(PAUSE_S)


Check = Callable[[Visit], str]


def card(visit: Visit) -> str:
    """The card is there, and names the address that was asked."""
    world, choices = visit.world, visit.choices
    ids = [str(one.get("id")) for one in agents_of(choices.url, world.transport, world.headers)]
    if not ids:
        raise Wrong("the deployment lists no agents", "NAMES in agents/registry.py says which are deployed")
    agent = choices.agent or (PREFERRED if PREFERRED in ids else ids[0])
    found = find(world, choices.url, agent)
    named, asked = found.client.url, f"{choices.url.rstrip('/')}/{agent}"
    if "://" not in agent and named != asked:
        raise Wrong(f"the card names {named}, not {asked}", "check that address: clients go where the card points")
    visit.found = found
    return f"{found.card.name} at {named}, A2A {found.client.version}; {len(ids)} agents"


def signature(visit: Visit) -> str:
    """The card, as it was served, is signed by a key that the deployment publishes."""
    from a2a_serverless.adapters.jose import verifies
    from a2a_serverless.wire.card import signed_by

    document = visit.agent.document
    keys = _published_keys(visit)
    kids = [kid for kid, said, signed in signed_by(document) if kid in keys and verifies(keys[kid], said, signed)]
    if not kids:
        why = "no key of the published set has signed it as it was served" if keys else "the key set is empty"
        raise Wrong(
            f"the card cannot be believed: {why}",
            "look for what alters it on its way (a proxy, a CDN); `keys show` says which key signs, "
            "and the rotator's next run publishes cards and keys anew",
        )
    return f"by key {kids[0]}, one of {len(keys)} published"


def sign_in(visit: Visit) -> str:
    """Nobody gets in without credentials."""
    stranger = replace(visit.client, headers={})
    try:
        stranger.get("no-such-task")
    except (Unauthenticated, Refused) as error:
        if isinstance(error, Unauthenticated) or error.status == UNAUTHORIZED:
            return "a request without credentials is refused"
        raise
    except TaskNotFound:
        if is_local(visit.choices.url) and not visit.agent.document.get("securitySchemes"):
            raise Skipped("this deployment lets anybody in", "that exists on a developer's machine only") from None
    raise Wrong("a request without credentials is let in", "redeploy the template as it is: anonymous access is off")


def send(visit: Visit) -> str:
    """A task is handed in, and the answer does not wait for its end."""
    began = visit.world.clock()
    visit.task = visit.send()
    return f"task {visit.task.task_id} is {visit.task.status.state} after {visit.world.clock() - began:.1f} s"


def poll(visit: Visit) -> str:
    """The task comes to an end."""
    task = visit.sent()
    for _ in visit.waits():
        task = visit.client.get(task.task_id)
        if task.status.state in TERMINAL | INTERRUPTED:
            break
    if task.status.state is TaskState.COMPLETED:
        return f"completed with {len(task.artifacts)} artifacts"
    said = task.status.message.text() if task.status.message else "it does not say why"
    if task.status.state in TERMINAL | INTERRUPTED:
        raise Wrong(f"the task is {task.status.state}: {said}", "--text says what the agent can do something with")
    raise Wrong(
        f"the task is still {task.status.state} after {visit.choices.patience_s:.0f} s",
        "the worker's log says why (/aws/lambda/...WorkerFunction..., or `logs worker`); --patience waits longer",
    )


def stream(visit: Visit) -> str:
    """Items come as they happen, not all at the end."""
    if not visit.agent.card.streaming:
        raise Skipped("the card says that the agent does not stream", "nothing to do")
    clock, items = visit.world.clock, visit.items
    began, arrived = clock(), list[float]()
    for item in visit.client.stream(SendRequest(text_message(visit.choices.text))):
        items.append(item)
        arrived.append(clock() - began)
    if not items:
        raise Wrong("the stream ended without a word", "the api function's log says why")
    total, first = arrived[-1], arrived[0]
    told = f"{len(items)} items, the first after {first:.1f} s, the last after {total:.1f} s"
    if total < SHORT_S or len(items) == 1:
        raise Skipped(f"too little to tell: {told}", "--text says what takes the agent longer")
    if total - first < BUFFERED * total:
        if visit.choices.buffered:
            raise Skipped(f"the answer is buffered, as --buffered says: {told}", "ResponseStreaming=on streams it")
        raise Wrong(
            f"the answer came all at once: {told}",
            "deploy with ResponseStreaming=on, and look for a proxy that buffers; --buffered takes it as it is",
        )
    return f"{told}, {max(b - a for a, b in pairwise(arrived)):.1f} s apart at most"


def resume(visit: Visit) -> str:
    """A stream that is taken up at Last-Event-ID tells what came after it, each once."""
    numbers = list(dict.fromkeys(item.n for item in visit.items if item.n is not None))
    task_id = next((item.task_id for item in visit.items if item.task_id), None)
    if len(numbers) < 3 or task_id is None:  # noqa: PLR2004 - a first, one behind it, and one to be told again
        raise Skipped("there was no stream with numbers to take up again", "mend that first, or see --text")
    after = numbers[0]
    again = [item.n for item in visit.client.subscribe(task_id, after) if item.n is not None]
    if again != [number for number in numbers if number > after]:
        raise Wrong(
            f"behind event {after} came {_listed(again)}, and before it was {_listed(numbers[1:])}",
            "something between drops the header Last-Event-ID, or events were lost: look at the api function's log",
        )
    return f"behind event {after} came the {len(again)} others, each once"


def private_webhook(visit: Visit) -> str:
    """A webhook at an address that is not public is refused, and makes no task."""
    urls = PRIVATE if is_local(visit.choices.url) else PRIVATE + LOOPBACK
    if not visit.agent.card.push:
        raise Skipped("the card says that the agent sends no webhooks", "nothing to do")
    for url in urls:
        try:
            made = visit.send(push=PushRequest(url))
        except InvalidParams:
            continue
        with suppress(A2AError):
            visit.client.cancel(made.task_id)
        raise Wrong(
            f"a webhook at {url} is taken",
            "no name of a private host belongs into WebhookTrustedDomains; redeploy the template as it is",
        )
    return f"{', '.join(urls)}: each refused"


def isolation(visit: Visit) -> str:
    """A second caller cannot see, follow, list or end the task of the first."""
    task, other = visit.sent(), visit.other
    if other is None:
        raise Skipped(
            "there is no second caller",
            '`callers add somebody-else`, and its key in A2A_OTHER_AUTHORIZATION as "Bearer a2a_..."',
        )
    if other.headers == dict(visit.client.headers):
        raise Skipped("both callers have the same credentials", "A2A_OTHER_AUTHORIZATION needs those of another owner")
    tries: dict[str, Callable[[], object]] = {
        "get": lambda: other.get(task.task_id),
        "follow": lambda: list(other.subscribe(task.task_id)),
        "cancel": lambda: other.cancel(task.task_id),
    }
    for what, attempt in tries.items():
        with suppress(TaskNotFound):
            attempt()
            _leaks(what)
    if other.version == "1.0" and task.task_id in other.task_ids(task.context_id):
        _leaks("list")
    return "for another caller the task does not exist: get, follow, cancel, list"


def _leaks(what: str) -> NoReturn:
    raise Wrong(
        f"another caller can {what} the task",
        "take the deployment down if these are two owners (`callers list`), and report it",
    )


def files(visit: Visit) -> str:
    """A file that is too big for a message is uploaded, and comes back the same."""
    content = os.urandom(32).hex().encode() + bytes(INLINE)
    part = file_part(visit.client, content, "check.txt", "text/plain")
    message = text_message(visit.choices.text)
    task = visit.send(replace(message, parts=(*message.parts, part)))
    with suppress(A2AError):
        task = visit.client.cancel(task.task_id)
    told = [one for said in visit.client.get(task.task_id).history for one in said.parts if one.kind in {"url", "raw"}]
    if not told:
        raise Wrong("the task does not show the file that was sent", "the api function's log says why")
    if told[0].kind == "raw":
        got = base64.b64decode(str(told[0].value))
    elif str(told[0].value).startswith(("https://", "http://")):
        got = b"".join(download(str(told[0].value), visit.world.transport))
    else:
        raise Wrong(f"the file's address is no link: {told[0].value}", "the api function's log says why")
    if sha256(got).digest() != sha256(content).digest():
        raise Wrong(f"{len(content):,} bytes went up, and {len(got):,} others came back", "look at the bucket's rules")
    return f"{len(content):,} bytes went up and came back the same"


def webhook(visit: Visit) -> str:
    """A task's end is told by webhooks that the receiver verifies."""
    heard = _round_trip(visit)
    keys, used = _published_keys(visit), {entry.kid for entry in heard}
    if not used <= keys.keys():
        raise Wrong(f"a key that is not published has signed: {_listed(used - keys.keys())}", "`keys show` compares")
    return f"{len(heard)} verified, signed by {_listed(used)}"


def rotation(visit: Visit) -> str:
    """After a rotation the new key signs, and the receiver takes it."""
    stack = visit.choices.stack
    if not visit.choices.rotate or stack is None:
        raise Skipped("the keys were not rotated", "--rotate with --stack and AWS credentials")
    rotator = visit.world.operations(stack).rotator
    before = _ring(rotator({"command": "show"}))
    rotator({"command": "rotate"})
    after = _ring(rotator({"command": "show"}))
    if after == before:
        raise Skipped(
            f"the next key has not been public for long enough to sign ({before[1]})",
            "`keys show` says from when on it may; check again then",
        )
    _receiver(visit)
    heard: list[Entry] = []
    for _ in visit.waits():  # notifiers keep the ring for some minutes
        heard = _round_trip(visit)
        if {entry.kid for entry in heard} == {after[0]}:
            return f"{after[0]} signs now, after {before[0]}; {len(heard)} verified"
    raise Wrong(f"{_listed({entry.kid for entry in heard})} still signs, not {after[0]}", "the notifier's log says why")


def alarms(visit: Visit) -> str:
    """No alarm of the stack has gone off."""
    stack = visit.choices.stack
    if stack is None:
        raise Skipped("alarms are seen from inside", "--stack NAME with AWS credentials")
    states = visit.world.alarms(stack)
    loud = sorted(name for name, state in states.items() if state == "ALARM")
    if loud:
        raise Wrong(f"{len(loud)} of {len(states)} alarms have gone off: {_listed(loud)}", "docs/operate.md has each")
    if not states:
        raise Skipped("the stack has no alarms", "deploy the template as it is")
    return f"{len(states)}, all quiet"


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
}


def look(visit: Visit, name: str) -> Line:
    """Runs one check. What goes wrong in it is its line, unless it is a fault of ours."""
    began = visit.world.clock()
    verdict, text, remedy = _looked(visit, CHECKS[name])
    return Line(name, verdict, text, remedy, round(visit.world.clock() - began, 3))


def _looked(visit: Visit, check: Check) -> tuple[Verdict, str, str]:
    try:
        return "PASS", check(visit), ""
    except Skipped as error:
        return "SKIP", str(error), error.remedy
    except Wrong as error:
        return "FAIL", str(error), error.remedy
    except Exception as error:
        explained = explain(error, visit.world)
        if explained is None:
            raise
        return "FAIL", explained.text, explained.remedy or "the api function's log says more, by the time"


def _published_keys(visit: Visit) -> dict[str, JsonObject]:
    """The deployment's key set, by key id."""
    url = f"{visit.client.url.rpartition('/')[0]}/.well-known/jwks.json"
    document = fetch(url, visit.world.transport, {})
    listed = document.get("keys") if isinstance(document, dict) else None
    return {str(key.get("kid")): key for key in (listed if isinstance(listed, list) else []) if isinstance(key, dict)}


def _receiver(visit: Visit) -> Inbox:
    if not visit.choices.receiver:
        raise Skipped(
            "there is no receiver that the deployment can reach",
            "deploy webhook_receiver/ with ISSUER set to this deployment, and name it by --receiver",
        )
    authorization = visit.world.environment.get("A2A_RECEIVER_AUTHORIZATION")
    headers = {"Authorization": authorization} if authorization else {}
    return Inbox(visit.choices.receiver, visit.world.transport, headers)


def _round_trip(visit: Visit) -> list[Entry]:
    """Sends a task with a webhook at the receiver; what came of it, once its end was told."""
    inbox = _receiver(visit)
    if not visit.agent.card.push:
        raise Skipped("the card says that the agent sends no webhooks", "nothing to do")
    try:
        push, last = inbox.expect(), max((entry.number for entry in inbox.look()), default=0)
    except (Refused, Unreachable) as error:
        raise Wrong(
            f"the receiver does not answer as one of ours: {error}",
            'its address goes without /webhook; A2A_RECEIVER_AUTHORIZATION has its password, as "Bearer ..."',
        ) from error
    task = visit.send(push=push)
    seen: list[Entry] = []
    for _ in visit.waits():
        seen = inbox.look(last)
        heard = [entry for entry in seen if entry.verified and entry.task_id == task.task_id]
        if any(entry.state in {str(state) for state in TERMINAL | INTERRUPTED} for entry in heard):
            return heard
    refused = next((entry.why for entry in seen if entry.why and entry.task_id in {"", task.task_id}), "")
    raise Wrong(
        f"no verified webhook told the task's end; {'refused: ' + refused if refused else 'none was refused either'}",
        "`deliveries AGENT TASK` shows each attempt, and docs/webhooks.md what its refusal means; "
        f"the receiver's ISSUER has to be {visit.client.url.rpartition('/')[0]} (task {task.task_id})",
    )


def _ring(shown: JsonObject) -> tuple[str, str]:
    """The key that signs, and the next one."""
    ring = json.loads(json.dumps(shown))
    return str(ring["current"]["kid"]), str(ring["next"]["kid"])


def _listed(values: object) -> str:
    return ", ".join(map(str, values if isinstance(values, list) else sorted(values))) or "nothing"  # type: ignore[call-overload]
