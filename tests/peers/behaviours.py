"""What other people's agents do, from public reports, and what has to come of it: one row for each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from a2a_serverless.client import ClientResponse, Unreachable
from tests.peers.forms import FORMS, JSON, STREAM, Form, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Answers = dict[str, list[Any]]
"""The answers to each operation, the last again and again. A callable makes one, from the headers of the request."""

GONE: Final = Refusal(-32001)
NOT_ADMITTED: Final = Refusal(status=401)
RPC: Final = tuple(form for form in FORMS if form.binding == "JSONRPC")
TOO_LARGE: Final = 17 * 1024 * 1024
ECHO: Final = "x-peer-secret"


class Ending(NamedTuple):
    """How something ends: a state, the texts of the artifacts, and what a message or an error says of it."""

    state: str = "completed"
    artifacts: tuple[str, ...] = ("answer",)
    says: str = ""


ANSWERED: Final = Ending()
FAILED: Final = Ending("failed", ())


@dataclass(frozen=True)
class Behaviour:
    """What a peer does, and how that ends.

    ``stages`` are its answers to the first message of a task and after it, then to the next message and after that.
    ``replies`` are the messages that answer its questions. ``ends`` is the end for ``task.call`` and for a mirror,
    ``client`` that of the client's one request, "error" with what the error says. It streams if the peer can.
    """

    name: str
    does: str
    stages: Callable[[Form], list[Answers]]
    ends: Ending = ANSWERED
    client: Ending = ANSWERED
    streaming: bool = False
    push: bool = False
    replies: tuple[str, ...] = ()
    query: str = ""
    card: Callable[[Form, str], dict[str, Any]] | None = None
    forms: tuple[Form, ...] = tuple(FORMS)
    after_death: Ending | None = None
    """Another end, if a process died before it had stored what the peer does not say again."""
    is_endless: bool = False
    """Whether a stream ends only when its reader has gone."""


class Body:
    """The body of a response from its pieces. The connection breaks where they raise."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces, self._rest = iter(pieces), b""

    def read(self, limit: int, /) -> bytes:
        while len(self._rest) < limit and (piece := next(self._pieces, b"")):
            self._rest += piece
        return self._taken(limit)

    def read1(self, limit: int, /) -> bytes:
        self._rest = self._rest or next(self._pieces, b"")
        return self._taken(limit)

    def _taken(self, limit: int) -> bytes:
        taken, self._rest = self._rest[:limit], self._rest[limit:]
        return taken


def broken() -> Unreachable:
    """The end of a connection that breaks."""
    return Unreachable("", "the peer closed the connection")


def stream_of(*pieces: bytes, **headers: str) -> ClientResponse:
    return ClientResponse(200, headers or STREAM, BytesIO(b"".join(pieces)))


def event(document: object) -> bytes:
    return b"data: %b\n\n" % json.dumps(document).encode()


def done(form: Form, **members: Any) -> dict[str, Any]:
    """A completed task with an answer."""
    return form.task(**{"artifacts": [form.artifact("a", "answer")], **members})


def sent(form: Form, task: dict[str, Any]) -> list[Any]:
    """The answer to a send."""
    return [form.item("task", task)]


def looks(*answers: Any) -> Callable[[Form], list[Answers]]:
    """A task that is done when it is sent, and then is shown so."""
    return lambda form: [
        {"send": sent(form, done(form)), "get": [one(form) if callable(one) else one for one in answers]}
    ]


def answers(task: Callable[[Form], dict[str, Any]]) -> Callable[[Form], list[Answers]]:
    """A task that is shown so by each answer."""
    return lambda form: [{"send": sent(form, task(form)), "get": [task(form)]}]


def asks_anew(form: Form) -> list[Answers]:
    numbers = count()

    def asks(_: object = None) -> dict[str, Any]:
        number = next(numbers)
        return form.asks("Sure?", f"m{number}", f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z")

    return [
        {"send": sent(form, form.task("working")), "get": [asks]},
        {"send": sent(form, form.task("working")), "get": [asks, asks, done(form)]},
    ]


def asks_twice(form: Form) -> list[Answers]:
    tasks = form.asks("Colour?"), form.asks("Size?"), done(form)
    return [{"send": sent(form, task), "get": [GONE]} for task in tasks]


def items_of(form: Form) -> Iterator[dict[str, Any]]:
    """The items of a stream: the task at work, an artifact, the end."""
    ids = {"taskId": form.task_id, "contextId": "c"}
    yield form.item("task", form.task("working"))
    chunk = {**form.kind("artifact-update"), **ids, "artifact": form.artifact("a", "answer")}
    yield form.item("artifactUpdate", chunk)
    yield form.item("statusUpdate", {**form.kind("status-update"), **ids, "status": form.task()["status"]})


def streams(make: Callable[[Form], Any], *looks: Any) -> Callable[[Form], list[Answers]]:
    """A stream for each subscription too; ``send`` answers with the task that is done."""

    def stages(form: Form) -> list[Answers]:
        get = [one(form) if callable(one) else one for one in looks] or [done(form)]
        made: Callable[[object], Any] = lambda _: make(form)  # noqa: E731
        return [{"stream": [made], "subscribe": [made], "send": sent(form, done(form)), "get": get}]

    return stages


def of_two_forms(form: Form) -> ClientResponse:
    ids: dict[str, Any] = {"taskId": form.task_id, "contextId": "c"}
    artifact: dict[str, Any] = {"artifactId": "a", "parts": [{"kind": "text", "text": "answer"}]}
    chunk = {"kind": "artifact-update", **ids, "artifact": artifact}
    end = {"kind": "status-update", **ids, "status": {"state": "completed"}, "final": True}
    first = form.envelope(form.item("task", form.task("working")))
    return stream_of(*map(event, (first, {"kind": "sparkle"}, chunk, end)))


def of_odd_lines(form: Form) -> ClientResponse:
    items = b"data:\r\r".join(event(form.envelope(item)).replace(b"\n", b"\r") for item in items_of(form))
    return stream_of(b"\xef\xbb\xbf: hello\r\r", items, **{"content-type": "Text/Event-Stream; charset=UTF-8"})


def of_blank_lines(form: Form) -> ClientResponse:
    blank = b"data:\n" * 32_000  # 192 KB
    return stream_of(*(blank + event(form.envelope(item)) for item in items_of(form)))


def that_breaks(form: Form) -> ClientResponse:
    def pieces() -> Iterator[bytes]:
        first, *_ = items_of(form)
        yield event(form.envelope(first))
        yield b"data: {"
        raise broken()

    return ClientResponse(200, STREAM, Body(pieces()))


def of_keep_alives(form: Form) -> ClientResponse:
    def pieces() -> Iterator[bytes]:
        first, *_ = items_of(form)
        yield event(form.envelope(first))
        while True:
            yield b": still here\n\n"

    return ClientResponse(200, STREAM, Body(pieces()))


def floods(form: Form) -> list[Answers]:
    ids = {"taskId": form.task_id, "contextId": "c"}
    artifacts = [form.artifact(f"a{number}", "x") for number in range(10_001)]

    def stream(_: object) -> ClientResponse:
        chunks = ({**form.kind("artifact-update"), **ids, "artifact": artifact} for artifact in artifacts)
        items = chain(islice(items_of(form), 1), (form.item("artifactUpdate", chunk) for chunk in chunks))
        return ClientResponse(200, STREAM, Body(event(form.envelope(item)) for item in items))

    flood = form.task("working", artifacts=artifacts)
    return [{"stream": [stream], "subscribe": [stream], "send": sent(form, flood), "get": [flood]}]


def drops_an_answer(form: Form) -> list[Answers]:
    def drops(_: object) -> Any:
        raise broken()

    return [{"send": [drops, *sent(form, done(form))], "get": [done(form)]}]


def odd_files(form: Form) -> dict[str, Any]:
    files = form.file("iVBO\r\nRw0K"), form.file("data:image/png;base64,iVBORw0K")
    return done(form, artifacts=[form.artifact("a", "answer", *files), form.artifact("b")])


def empty_parts(form: Form) -> dict[str, Any]:
    empty = {**form.message(""), "messageId": "m", "parts": []}
    artifacts = [form.artifact("a", "answer"), form.artifact("b")]
    return done(form, artifacts=artifacts, status={"message": empty}, history=[empty])


def users_message(form: Form) -> list[Answers]:
    role = "user" if form.kind("message") else "ROLE_USER"
    mine = form.task("working", status={"message": form.message("hello", role=role, messageId="mine")})
    return [{"send": sent(form, mine), "get": [mine, done(form)]}]


def repeats_headers(form: Form) -> list[Answers]:
    def echo(headers: Any) -> dict[str, Any]:
        text = headers.get(ECHO, "nothing")
        return done(form, metadata={"headers": {ECHO: text}}, status={"message": form.message(f"You sent {text}")})

    return [{"send": [lambda headers: form.item("task", echo(headers))], "get": [echo]}]


def refused_streams(answer: Any) -> Callable[[Form], list[Answers]]:
    return lambda form: [{"stream": [answer], "send": sent(form, done(form)), "get": [GONE]}]


def bodies(body: Callable[[Form], Any]) -> Callable[[Form], list[Answers]]:
    """Whatever is asked, the answer is this document."""

    def stages(form: Form) -> list[Answers]:
        made: Callable[[object], ClientResponse] = lambda _: ClientResponse(200, JSON, BytesIO(_bytes(body(form))))  # noqa: E731
        return [{"send": [made], "get": [made]}]

    return stages


def _bytes(document: object) -> bytes:
    return document if isinstance(document, bytes) else json.dumps(document).encode()


def without_interfaces(form: Form, url: str) -> dict[str, Any]:
    """A card with the members of 0.3, an empty list in place of 1.0's, and a skill whose tag is empty."""
    card = form.card(url)
    old = {"url": url, "preferredTransport": form.binding, "protocolVersion": "0.3.0"}
    return {**card, **old, "supportedInterfaces": [], "skills": [{**card["skills"][0], "tags": [""]}]}


def unusable(
    name: str, does: str, stages: Callable[[Form], list[Answers]], says: str, forms: tuple[Form, ...] = tuple(FORMS)
) -> Behaviour:
    """A peer whose answers are of no use; the error says why."""
    return Behaviour(name, does, stages, FAILED._replace(says=says), Ending("error", (), says), forms=forms)


LATER: Final = ClientResponse(503, {"retry-after": "1", "content-type": "text/plain"}, BytesIO())
REDIRECT: Final = {"location": "https://new.example.com/agent?key=s"}
WORKING: Final = Ending("working", ())
OLD: Final = tuple(form for form in FORMS if form.version == "0.3")

BEHAVIOURS: Final = (
    Behaviour("lost-task", "the answer is complete; then it does not know the task", looks(GONE)),
    Behaviour("empty-look", "the answer is complete; the task that is read has no artifacts", looks(Form.task)),
    Behaviour("stale-look", "the answer is complete; the task that is read is still at work",
              looks(lambda form: form.task("working"))),
    Behaviour("refused-look", "the answer is complete; a read is refused with 401", looks(NOT_ADMITTED)),
    Behaviour("html-look", "the answer is complete; a read gets a page", looks(Refusal(body=b"<html>"))),
    Behaviour("late-refusal", "the task is at work; each read is refused with 401",
              lambda form: [{"send": sent(form, form.task("working")), "get": [NOT_ADMITTED]}],
              FAILED._replace(says="401"), WORKING),
    Behaviour("forgets", "the task is at work; then it does not know the task",
              lambda form: [{"send": sent(form, form.task("working")), "get": [GONE]}],
              FAILED._replace(says="does not know the task any more"), WORKING),
    Behaviour("odd-files", "base64 with line ends, a data URI in place of base64, an empty artifact",
              answers(odd_files), Ending(artifacts=("answer", "")), Ending(artifacts=("answer", ""))),
    Behaviour("empty-parts", "messages and an artifact without parts", answers(empty_parts),
              Ending(artifacts=("answer", "")), Ending(artifacts=("answer", ""))),
    Behaviour("odd-state", "a state that nobody knows, then the end",
              lambda form: [{"send": sent(form, {**form.task(), "status": {"state": "paused"}}), "get": [done(form)]}],
              client=WORKING),
    Behaviour("asks-anew", "another message id and timestamp for its question at each read", asks_anew,
              client=WORKING, replies=("yes",)),
    Behaviour("asks-twice", "two questions without ids, and then it does not know the task", asks_twice,
              client=Ending("input-required", (), "Colour?"), replies=("red", "big")),
    Behaviour("users-message", "the user's own message as its status", users_message, client=WORKING),
    Behaviour("refuses-streams", "its card offers streams; it refuses them with -32004",
              refused_streams(Refusal(-32004)), client=Ending("error", (), "No"), streaming=True),
    Behaviour("no-stream-method", "its card offers streams; it does not know the method",
              refused_streams(Refusal(-32601)), client=Ending("error", (), "No"), streaming=True),
    Behaviour("empty-stream", "its streams have no item", refused_streams([]),
              client=Ending("", ()), streaming=True),
    Behaviour("two-forms", "the items of its streams have two forms (LangGraph), and an unknown one between them",
              streams(of_two_forms, Form.task), streaming=True, after_death=Ending(artifacts=())),
    Behaviour("odd-lines", "streams with CR, a byte order mark, empty data, and a type in capitals",
              streams(of_odd_lines), streaming=True),
    Behaviour("blank-lines", "192 KB of empty lines of data before each item", streams(of_blank_lines),
              streaming=True),
    Behaviour("breaks", "each stream breaks in the middle of an item", streams(that_breaks),
              client=Ending("error", (), "Unreachable|Incomplete|closed"), streaming=True),
    Behaviour("keep-alives", "streams that say nothing more, for ever", streams(of_keep_alives),
              streaming=True, is_endless=True),
    Behaviour("floods", "10,001 artifacts", floods, Ending("failed", (), "artifacts"), WORKING, streaming=True),
    Behaviour("no-webhooks", "accepts a webhook and calls it never",
              lambda form: [{"send": sent(form, form.task("working")),
                             "get": [form.task("working"), form.task("working"), done(form)]}],
              client=WORKING, push=True),
    Behaviour("drops-an-answer", "takes a message and closes the connection; the repeat is answered", drops_an_answer,
              client=Ending("error", (), "closed")),
    Behaviour("busy", "503 with Retry-After, then the answer",
              lambda form: [{"send": [LATER, *sent(form, done(form))], "get": [LATER, done(form)]}],
              client=Ending("error", (), "503")),
    unusable("moved", "each send is redirected (307)",
             lambda _: [{"send": [ClientResponse(307, REDIRECT, BytesIO())], "get": [GONE]}],
             r"https://new\.example\.com/agent\b.*not followed"),
    Behaviour("query", "its address has a query (AgentCore)", answers(done), query="?qualifier=DEFAULT"),
    Behaviour("old-card", "the card's supportedInterfaces are empty; it has 0.3's url and an empty tag", answers(done),
              card=without_interfaces, forms=OLD),
    Behaviour("repeats-headers", f"repeats the request's header {ECHO} in the task", repeats_headers),
    unusable("null-result", "a result that is null", bodies(lambda _: {"jsonrpc": "2.0", "id": 1, "result": None}),
             "result is null", RPC),
    unusable("error-text", "an error that is a text", bodies(lambda _: {"id": 1, "error": "Out of paint"}),
             "Out of paint", RPC),
    unusable("odd-code", "an error whose code is -32603.0",
             bodies(lambda _: {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603.0, "message": "Out of paint"}}),
             "Out of paint", RPC),
    Behaviour("no-jsonrpc", "answers without `jsonrpc`",
              lambda form: [{operation: [partial(_without_jsonrpc, task)]
                             for operation, task in (("send", form.item("task", done(form))), ("get", done(form)))}],
              forms=RPC),
    unusable("too-large", "an answer of 17 MB", bodies(lambda _: b" " * TOO_LARGE), "large"),
    unusable("too-deep", "an answer of 100,000 lists in each other", bodies(lambda _: b"[" * 100_000), "deep"),
    Behaviour("message", "a message with an unknown role and no id",
              lambda form: [{"send": [form.item("message", {**form.kind("message"), "role": "assistant",
                                                            "parts": [form.text("answer")]})]}],
              Ending("completed", (), "answer"), Ending("", (), "answer")),
)  # fmt: skip
BY_NAME: Final = {behaviour.name: behaviour for behaviour in BEHAVIOURS}


def _without_jsonrpc(result: Any, _: object) -> ClientResponse:
    return ClientResponse(200, JSON, BytesIO(json.dumps({"id": 1, "result": result}).encode()))
