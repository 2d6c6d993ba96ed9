"""What clients of every kind do, over and over the same: the scenarios of ``deployed``."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any, Final

from tests.transcripts.bindings import BINDINGS, Binding, Hook, Message
from tests.transcripts.talk import Answer, Request, Talk

Json = Any
AGENT: Final = "conformance"
PLAIN: Final = "conformance-plain"  # without streams and webhooks
NEVER: Final = "00000000-0000-4000-8000-00000000dead"
ENDED: Final = {"completed", "failed", "canceled", "rejected"}
SETTLED: Final = ENDED | {"input-required", "auth-required"}
TIMEOUT_S: Final = 120
ARTIFACTS: Final = ("text", "file", "file-url", "data")
EVERYTHING: Final = (
    {"text": "sea 海"},
    {"data": {"sections": [1, 2.5, None, True]}},
    {"raw": "aGVsbG8=", "mediaType": "text/plain", "filename": "a.txt"},
    {"url": "https://example.com/a", "mediaType": "text/plain"},
)

Scenario = Callable[[Talk, Binding], None]


def life(talk: Talk, by: Binding) -> None:
    """A task that is waited for, read in every way, and cannot be changed any more."""
    first = Message(f"tck-complete-task-{by.name}", context=f"life-{by.name}")
    task = by.task_of(talk.ask(by.send(AGENT, first)))["id"]
    talk.ask(by.send(AGENT, first))
    talk.ask(by.call(AGENT, "get", task=task))
    talk.ask(by.call(AGENT, "get", task=task, history=0))
    talk.ask(by.call(AGENT, "cancel", task=task))
    talk.ask(by.call(AGENT, "subscribe", task=task))
    talk.ask(by.send(AGENT, Message(f"tck-complete-task-again-{by.name}", task=task)))
    everything = Message(f"other-{by.name}", EVERYTHING, context=f"life-{by.name}", references=(task,))
    talk.ask(by.send(AGENT, everything))
    if not by.lists:
        return
    talk.ask(by.call(AGENT, "list", context=f"life-{by.name}"))
    page = talk.ask(by.call(AGENT, "list", context=f"life-{by.name}", size=1, artifacts="true")).json
    token = page.get("result", page)["nextPageToken"]
    talk.ask(by.call(AGENT, "list", context=f"life-{by.name}", size=1, page=token))


def artifacts(talk: Talk, by: Binding) -> None:
    """An artifact of every kind of content, and answers that are no tasks."""
    for kind in ARTIFACTS:
        talk.ask(by.send(AGENT, Message(f"tck-artifact-{kind}-{by.name}")))
    talk.ask(by.send(AGENT, Message(f"tck-message-response-{by.name}", context=f"artifacts-{by.name}")))
    talk.ask(by.send(AGENT, Message(f"tck-reject-task-{by.name}")))


def questions(talk: Talk, by: Binding) -> None:
    """A task that asks twice and ends; one that asks for a sign-in, also after an answer, and is canceled."""
    asked = by.task_of(talk.ask(by.send(AGENT, Message(f"tck-input-required-{by.name}"))))
    talk.ask(by.send(AGENT, Message(f"tck-input-required-2-{by.name}", task=asked["id"])))
    last = Message(f"tck-artifact-text-end-{by.name}", task=asked["id"], context=asked["contextId"])
    talk.ask(by.send(AGENT, last))
    sign_in = by.task_of(talk.ask(by.send(AGENT, Message(f"tck-auth-required-{by.name}"))))["id"]
    talk.ask(by.send(AGENT, Message(f"i-have-signed-in-{by.name}", task=sign_in)))
    talk.ask(by.call(AGENT, "cancel", task=sign_in))
    talk.ask(by.call(AGENT, "get", task=sign_in))


def streams(talk: Talk, by: Binding) -> None:
    """Streams of tasks and of a message."""
    for kind in ("stream-001", "stream-artifact-chunked", "stream-artifact-file", "input-required", "reject-task"):
        talk.ask(by.stream(AGENT, Message(f"tck-{kind}-stream-{by.name}")))
    talk.ask(by.stream(AGENT, Message(f"tck-message-response-stream-{by.name}")))


def webhooks(talk: Talk, by: Binding) -> None:
    """A webhook that comes with the message and is told everything; others that are made, read and deleted."""
    hook = Hook("first", f"{talk.hook}/{by.name}")
    sent = talk.ask(by.send(AGENT, Message(f"tck-input-required-hook-{by.name}"), wait=False, hook=hook))
    task = by.task_of(sent)["id"]
    _settled(talk, by, task)
    talk.ask(by.call(AGENT, "set hook", task=task, hook=Hook("second", f"{talk.hook}/{by.name}-second")))
    talk.ask(by.call(AGENT, "get hook", task=task, hook="second"))
    talk.ask(by.call(AGENT, "list hooks", task=task))
    talk.ask(by.call(AGENT, "delete hook", task=task, hook="second"))
    talk.ask(by.call(AGENT, "get hook", task=task, hook="second"))
    talk.ask(by.send(AGENT, Message(f"tck-artifact-text-hook-{by.name}", task=task)))


def refusals(talk: Talk, by: Binding) -> None:
    """What is refused: names of nothing, messages that say nothing, addresses that are none of a webhook."""
    for operation in ("get", "cancel", "subscribe", "list hooks"):
        talk.ask(by.call(AGENT, operation, task=NEVER))
    for operation in ("get hook", "delete hook"):
        talk.ask(by.call(AGENT, operation, task=NEVER, hook="none"))
    talk.ask(by.call(AGENT, "set hook", task=NEVER, hook=Hook("none", "https://hooks.example.com/")))
    talk.ask(by.send(AGENT, Message(f"unknown-task-{by.name}", task=NEVER)))
    talk.ask(by.send(AGENT, Message(f"no-parts-{by.name}", parts=())))
    talk.ask(by.send(AGENT, Message("")))
    unknown = ({"raw": "AAAA", "mediaType": "application/x-unsupported-tck-type"},)
    talk.ask(by.send(AGENT, Message(f"unknown-type-{by.name}", unknown)))
    for number, url in enumerate(("http://hooks.example.com/", "https://192.0.2.1/", "https://me@hooks.example.com/")):
        hook = Hook("bad", url)
        talk.ask(by.send(AGENT, Message(f"bad-webhook-{number}-{by.name}"), wait=False, hook=hook))
    talk.ask(by.send(AGENT, Message(f"same-id-{by.name}")))
    talk.ask(by.send(AGENT, Message(f"same-id-{by.name}", ({"text": "other"},))))
    talk.ask(by.stream(PLAIN, Message(f"no-streams-{by.name}")))
    hook = Hook("hook", f"{talk.hook}/none")
    talk.ask(by.send(PLAIN, Message(f"no-webhooks-{by.name}"), wait=False, hook=hook))
    talk.ask(by.call(AGENT, "extended card"))
    talk.ask(by.call(PLAIN, "extended card"))
    talk.ask(by.send("nobody", Message(f"nobody-{by.name}")))
    if by.lists:
        talk.ask(by.call(AGENT, "list", page="bm90IGEgdG9rZW4"))
        talk.ask(by.call(AGENT, "list", size=1000))


def _settled(talk: Talk, by: Binding, task: str) -> Json:
    """The task as soon as it has ended or asks."""
    give_up = time.monotonic() + TIMEOUT_S
    while (found := by.task_of(talk.poll(by.call(AGENT, "get", task=task))))["status"]["state"] not in _STATES:
        assert time.monotonic() < give_up, f"the task stays {found['status']['state']}"
        time.sleep(0.05)
    return found


_STATES: Final = SETTLED | {f"TASK_STATE_{state.upper().replace('-', '_')}" for state in SETTLED}

BY_BINDING: Final[tuple[Scenario, ...]] = (life, artifacts, questions, streams, webhooks, refusals)
JSON_RPC: Final = {"Content-Type": "application/json", "A2A-Version": "1.0"}


def documents(talk: Talk, _by: Binding) -> None:
    """Cards, keys, lists, and everything else that is read by its address."""
    card = talk.ask(Request("GET", f"/{AGENT}/.well-known/agent-card.json"))
    talk.ask(Request("GET", f"/{AGENT}/.well-known/agent.json"))
    talk.ask(Request("GET", f"/legacy/{AGENT}/.well-known/agent.json"))
    assert card.status == 200
    assert _unchanged(talk, f"/{AGENT}/.well-known/agent-card.json", card).status == 304
    for path in ("/.well-known/agent-card.json", "/.well-known/jwks.json", "/agents", "/", "/nothing", f"/{AGENT}"):
        talk.ask(Request("GET", path))
    talk.ask(Request("HEAD", "/.well-known/jwks.json"))
    talk.ask(Request("DELETE", f"/{AGENT}"))


def _unchanged(talk: Talk, path: str, card: Answer) -> Answer:
    """The answer to a client that has the document. What it sends stands for itself: it is not written down."""
    etag = next(value for name, value in card.headers.items() if name.lower() == "etag")
    return talk.poll(Request("GET", path, headers={"If-None-Match": etag}))


def json_rpc(talk: Talk, _by: Binding) -> None:
    """What is no call, and what no method understands."""
    bodies: tuple[Json, ...] = (
        "{",
        "[]",
        "[1]",
        '"text"',
        "null",
        '{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "GetTask"}',
        '{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": 1e999}}',
        {"jsonrpc": "1.0", "id": 1, "method": "GetTask"},
        {"jsonrpc": "2.0", "id": {}, "method": "GetTask"},
        {"jsonrpc": "2.0", "id": 1, "method": "NoSuchMethod"},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
        {"jsonrpc": "2.0", "id": None, "method": "GetTask", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": []},
        {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": 7}},
        {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {"parts": [{}, {"text": 1}]}}},
        {"jsonrpc": "2.0", "method": "GetTask", "params": {"id": NEVER}},
        [{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": NEVER}}],
    )
    for body in bodies:
        talk.ask(Request("POST", f"/{AGENT}", body, JSON_RPC))
    call = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": NEVER}}
    for version in ("", "0.3", "1.0", "1.1", "99.0", "one", "1.0, 0.3"):
        talk.ask(Request("POST", f"/{AGENT}", call, {"A2A-Version": version}))
    for kind in ("text/plain", "application/a2a+json", "application/json; charset=utf-16"):
        talk.ask(Request("POST", f"/{AGENT}", call, JSON_RPC | {"Content-Type": kind}))
    talk.ask(Request("POST", f"/{AGENT}", call, JSON_RPC | {"A2A-Extensions": "urn:nobody:knows"}))
    talk.ask(Request("POST", "/conformance-extension", call, JSON_RPC))


def older(talk: Talk, _by: Binding) -> None:
    """Requests from before 0.3, in the shapes and at the addresses that were printed."""
    parts = [{"type": "text", "text": "hello"}]
    sent = {"message": {"messageId": "tck-artifact-text-older", "role": "user", "parts": parts}}
    task = talk.ask(Request("POST", f"/legacy/{AGENT}/tasks/send", sent)).json["id"]
    talk.ask(Request("GET", f"/legacy/{AGENT}/tasks/{task}"))
    talk.ask(Request("GET", f"/legacy/{AGENT}/tasks/{NEVER}"))
    talk.ask(Request("POST", f"/legacy/{AGENT}/tasks/send", {"message": {"role": "user"}}))
    bare = {"role": "user", "messageId": "tck-artifact-text-bare", "parts": [{"text": "hello"}]}
    for method in ("message.send", "message/send"):
        message = bare | {"messageId": f"{bare['messageId']}-{method}"}
        talk.ask(
            Request("POST", f"/{AGENT}", {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}})
        )


def beside(talk: Talk, by: Binding) -> None:
    """What is ours and not the protocol's: deliveries, uploads, callbacks."""
    hook = Hook("beside", f"{talk.hook}/beside")
    task = by.task_of(talk.ask(by.send(AGENT, Message("tck-complete-task-beside"), wait=False, hook=hook)))["id"]
    _settled(talk, by, task)
    upload = {"size": 5, "sha256": hashlib.sha256(b"hello").hexdigest(), "mediaType": "text/plain"}
    talk.ask(Request("POST", f"/{AGENT}/uploads", upload))
    talk.ask(Request("POST", f"/{AGENT}/uploads", upload | {"size": -1}))
    talk.ask(Request("POST", "/callbacks/nobody", {"statusUpdate": {}}))
    talk.ask(Request("GET", f"/{AGENT}/tasks/{NEVER}/deliveries"))


ONCE: Final[tuple[Scenario, ...]] = (documents, json_rpc, older, beside)


def play(name: str, base: str, hook: Any) -> Json:
    """The records of the scenario of that name, webhooks last."""
    kind, _, binding_name = name.partition(" ")
    by = next((one for one in BINDINGS if one.name == binding_name), BINDINGS[0])
    talk = Talk(base, hook.url)
    next(one for one in (*BY_BINDING, *ONCE) if one.__name__ == kind)(talk, by)
    if kind == "webhooks":
        talk.webhooks(_heard(hook, f"/{by.name}"))
    return talk.records


def _heard(hook: Any, path: str) -> list[tuple[dict[str, str], bytes]]:
    """What came for a path, as soon as the last of it is there.

    Without the notifications of ``working``: one that a later status has overtaken is not sent.
    """
    give_up = time.monotonic() + TIMEOUT_S
    while not any(b"ompleted" in body or b"COMPLETED" in body for _, body in hook.posts.get(path, [])):
        assert time.monotonic() < give_up, "the last notification did not come"
        time.sleep(0.05)
    return [(headers, body) for headers, body in hook.posts[path] if not _is_working(json.loads(body))]


def _is_working(body: Json) -> bool:
    return body.get("statusUpdate", body).get("status", {}).get("state") in {"working", "TASK_STATE_WORKING"}


NAMES: Final = (
    *(f"{one.__name__} {by.name}" for one in BY_BINDING for by in BINDINGS),
    *(one.__name__ for one in ONCE),
)
