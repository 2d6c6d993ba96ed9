"""What the specification asks of the operations, over HTTP and in every binding (docs/requirements.md)."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.agent import BUDGET_EXTENSION, AgentExtension
from a2a_serverless.domain.steps import Step
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.v1 import Message, Part, Role
from tests.client.deployment import BASE, Deployment
from tests.echo import SKILL, Asker, Writer, agent_of
from tests.handlers.requests import BINDINGS, Names
from tests.protocol.schema import assert_v0_3
from tests.world import HOOK, ME

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.task_context import TaskContext
    from tests.edge import HttpResponse

NEW, OLD = ("1.0 JSON-RPC", "1.0 REST"), ("0.3 JSON-RPC", "0.3 REST")
CURRENT = (*NEW, *OLD)
EVERY = [(binding, operation) for binding in CURRENT for operation in BINDINGS[binding]]
PUSHES = {Operation.PUSH_CREATE, Operation.PUSH_GET, Operation.PUSH_LIST, Operation.PUSH_DELETE}
HEADERS = {"content-type": "application/json", "a2a-version": "1.0"}
MESSAGE: dict[str, Any] = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
MINUTE_MS = 60_000


class Mine(AllowAnonymous):
    """The caller is the world's client."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        del headers
        return Caller(ME)


class Place:
    """A deployment of one agent. What streams tell is read while a worker works elsewhere."""

    def __init__(self, agent: Agent | None = None) -> None:
        deployment = Deployment(agent or Writer().agent, authenticator=Mine())
        self.world = deployment.world
        self.edge = deployment.edge

    def ask(self, binding: str, operation: Operation, names: Names, **headers: str) -> HttpResponse:
        request = BINDINGS[binding][operation](names)
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.edge.answer(request._replace(headers={**request.headers, **more}))

    def call(self, method: str, **params: Any) -> Any:
        """What a method of 1.0 gives over JSON-RPC."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self.edge.answer(HttpRequest("POST", "/echo", HEADERS, body=json.dumps(body).encode()))
        return json.loads(answer.body)["result"]

    def get(self, path: str, **query: str) -> Any:
        """What a path of 1.0 gives over REST."""
        answer = self.edge.answer(HttpRequest("GET", f"/echo{path}", HEADERS, tuple(query.items())))
        assert answer.status == 200, answer.body
        return json.loads(answer.body)

    def send(self, message_id: str = "message-1", **fields: str) -> str:
        """The id of a task that a message has made or gone on with."""
        message = MESSAGE | {"messageId": message_id} | fields
        made = self.call("SendMessage", message=message, configuration={"returnImmediately": True})
        return str(made["task"]["id"])

    def work_in(self, ms: int) -> None:
        """A worker takes what there is to do in ``ms``."""
        self.world.plan(ms, lambda: self.world.elsewhere(MINUTE_MS))

    def read(self, *answers: HttpResponse) -> list[list[Any]]:
        """What the streams tell until each has ended, read side by side."""

        async def together() -> list[list[Any]]:
            return list(await asyncio.gather(*map(all_of, answers)))

        return self.world.play(together())


async def all_of(answer: HttpResponse) -> list[Any]:
    assert answer.stream is not None, answer.body
    return [item async for item in items(answer.stream)]


async def items(stream: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """The items of a stream, without their envelope; signs of life are left out."""
    async for frame in stream:
        data = [line[6:] for line in frame.decode().splitlines() if line.startswith("data: ")]
        for document in map(json.loads, data):
            yield document.get("result", document)


async def first_of(answer: HttpResponse) -> bytes:
    """The first frame of a stream, which is closed then."""
    stream: Any = answer.stream
    async with aclosing(stream):
        return bytes(await anext(stream))


def kind(item: Any) -> str:
    """What an item is, in the words of 1.0."""
    words = {"status-update": "statusUpdate", "artifact-update": "artifactUpdate"}
    return str(words.get(item["kind"], item["kind"]) if "kind" in item else next(iter(item)))


def state(item: Any) -> str | None:
    """The state that an item tells of, in the words of 0.3."""
    said = (item if "kind" in item else item[kind(item)]).get("status", {}).get("state")
    return said and str(said).removeprefix("TASK_STATE_").lower().replace("_", "-").replace("cancelled", "canceled")


def reason(answer: HttpResponse) -> str | None:
    """Why a request is refused; None when it is served. A 0.3 stream says so itself."""
    body = answer.body if answer.stream is None else asyncio.run(first_of(answer)).partition(b"data: ")[2]
    document = json.loads(body)
    if "error" not in document:
        return None
    error = document["error"] if isinstance(document["error"], dict) else document
    return str((error.get("data") or error["details"])[0]["reason"])


# ---- Streams


@pytest.mark.requirement(5, 7, 58, 113)
@pytest.mark.parametrize("binding", CURRENT)
def test_a_stream_tells_the_task_then_every_event_in_order_and_closes_at_the_end(binding: str) -> None:
    place = Place()
    answer = place.ask(binding, Operation.STREAM, Names())
    place.work_in(1000)
    (told,) = place.read(answer)
    assert [kind(item) for item in told] == ["task", *["statusUpdate"] * 2, *["artifactUpdate"] * 3, "statusUpdate"]
    assert [state(item) for item in told if state(item)] == ["submitted", "working", "working", "completed"]
    texts = [item if "kind" in item else item["artifactUpdate"] for item in told if kind(item) == "artifactUpdate"]
    made = [part["text"] for one in texts for part in one["artifact"]["parts"]]
    assert made == ["one: hello. ", "two: hello. ", "three: hello. "]


@pytest.mark.requirement(4, 6)
@pytest.mark.parametrize("binding", CURRENT)
def test_an_agent_that_answers_with_a_message_sends_that_and_closes(binding: str) -> None:
    async def greet(task: TaskContext) -> str:
        del task
        return "Hello!"

    place = Place(replace(agent_of(greet), runs="inline"))
    place.edge = replace(
        place.edge,
        service=place.world.service._replace(
            inline_runner=EngineInlineRunner(place.world.engine, place.world.play).for_agent
        ),
    )
    (told,) = place.read(place.ask(binding, Operation.STREAM, Names()))
    assert [kind(item) for item in told] == ["message"]
    body = json.loads(place.ask(binding, Operation.SEND, Names()).body)
    assert kind(body.get("result", body)) == "message"


@pytest.mark.parametrize("part", [Part(data=float("nan")), Part(text="\ud800")], ids=["NaN", "lone surrogate"])
def test_a_message_that_json_does_not_have_fails_a_task_instead(part: Part) -> None:
    async def answer(task: TaskContext) -> Message:
        del task
        return Message(message_id="mine", role=Role.AGENT, parts=(part,))

    place = Place(replace(agent_of(answer), runs="inline"))
    place.edge = replace(
        place.edge,
        service=place.world.service._replace(
            inline_runner=EngineInlineRunner(place.world.engine, place.world.play).for_agent
        ),
    )
    body = json.loads(place.ask("1.0 JSON-RPC", Operation.SEND, Names()).body, parse_constant=pytest.fail)
    assert kind(body["result"]) == "task"


@pytest.mark.requirement(48)
@pytest.mark.parametrize("context", [None, "ours"])
def test_a_message_that_an_agent_answers_with_is_in_the_conversation(context: str | None) -> None:
    async def greet(task: TaskContext) -> Message:
        del task
        return Message(message_id="mine", role=Role.AGENT, parts=(Part(text="Hello!"),))

    place = Place(replace(agent_of(greet), runs="inline"))
    place.edge = replace(
        place.edge,
        service=place.world.service._replace(
            inline_runner=EngineInlineRunner(place.world.engine, place.world.play).for_agent
        ),
    )
    said = json.loads(place.ask("1.0 REST", Operation.SEND, Names(context=context)).body)["message"]
    assert said["messageId"] == "mine"
    assert said["contextId"] == context if context else said["contextId"]


@pytest.mark.requirement(14, 15)
@pytest.mark.parametrize("binding", CURRENT)
def test_a_subscription_begins_with_the_task_as_it_is_and_closes_when_the_task_ends(binding: str) -> None:
    place = Place(Asker().agent)
    task = place.send()
    place.world.settle(MINUTE_MS)
    answer = place.ask(binding, Operation.SUBSCRIBE, Names(task=task))
    place.world.plan(5000, lambda: place.world.cancel(task))
    (told,) = place.read(answer)
    assert [(kind(item), state(item)) for item in told] == [("task", "input-required"), ("statusUpdate", "canceled")]


@pytest.mark.requirement(8)
def test_a_subscriber_gets_an_event_within_a_quarter_of_a_second() -> None:
    place = Place(Asker().agent)
    task = place.send()
    place.world.settle(MINUTE_MS)
    answer = place.ask("1.0 REST", Operation.SUBSCRIBE, Names(task=task))
    place.world.plan(20_100, lambda: place.world.cancel(task))

    async def times() -> list[int]:
        assert answer.stream is not None
        return [place.world.now async for _ in items(answer.stream)]

    assert 0 <= place.world.play(times())[-1] - place.world.events(task)[-1].at <= 260


@pytest.mark.requirement(59, 60)
@pytest.mark.parametrize("binding", CURRENT)
def test_all_streams_of_a_task_tell_the_same_and_closing_one_leaves_the_others(binding: str) -> None:
    place = Place()
    task = place.send()
    one, two, closed = (place.ask(binding, Operation.SUBSCRIBE, Names(task=task)) for _ in range(3))

    place.world.play(first_of(closed))
    place.work_in(1000)
    told, again = place.read(one, two)
    assert told == again
    assert (len(told), state(told[-1])) == (7, "completed")
    assert len(place.world.events(task)) == 7, "and the task's life does not hang on who listens"


@pytest.mark.requirement(7, 14)
@pytest.mark.parametrize("binding", CURRENT)
def test_a_stream_whose_time_is_up_closes_and_the_next_one_goes_on_behind_its_last_event(binding: str) -> None:
    place = Place(Asker().agent)
    place.edge = replace(place.edge, stream_ms=10_000)
    task = place.send()
    place.world.settle(MINUTE_MS)
    began = place.world.now
    (told,) = place.read(place.ask(binding, Operation.SUBSCRIBE, Names(task=task)))
    assert ([kind(item) for item in told], place.world.now - began <= 11_000) == (["task"], True)
    place.world.cancel(task)
    last = str(len(place.world.events(task)) - 1)
    (rest,) = place.read(place.ask(binding, Operation.SUBSCRIBE, Names(task=task), last_event_id=last))
    assert [state(item) for item in rest] == ["canceled"]


class Airline:
    """An agent that books for owners who have signed in at the airline, which alone knows who has."""

    def __init__(self) -> None:
        self.signed_in: set[str] = set()
        self.agent = agent_of(self.work)

    async def work(self, task: TaskContext) -> str:
        while not await task.step(Step("account", repeat=True), self.has_signed_in, task.caller.owner):
            await task.ask("Sign in at the airline.", sign_in=True)
        return "Booked."

    async def has_signed_in(self, owner: str) -> bool:
        return owner in self.signed_in


@pytest.mark.requirement(93, 95)
@pytest.mark.parametrize("binding", CURRENT)
def test_a_stream_stays_open_while_its_client_signs_in_and_the_task_takes_messages_meanwhile(binding: str) -> None:
    airline = Airline()
    place = Place(airline.agent)
    answer = place.ask(binding, Operation.STREAM, Names())
    place.work_in(1000)
    task = place.call("ListTasks")["tasks"][0]["id"]
    place.world.plan(MINUTE_MS, lambda: airline.signed_in.add(ME.owner))
    place.world.plan(MINUTE_MS, lambda: place.send("m-2", taskId=task))
    place.work_in(2 * MINUTE_MS)
    (told,) = place.read(answer)
    states = [state(item) for item in told]
    assert states[:3] == ["submitted", "working", "auth-required"]
    assert (set(states[3:-1]), states[-1]) == ({"working"}, "completed")
    waiting = told[2] if "kind" in told[2] else told[2]["statusUpdate"]
    assert "Sign in at the airline" in json.dumps(waiting["status"]["message"])


@pytest.mark.requirement(128)
@pytest.mark.parametrize("binding", CURRENT)
def test_a_task_that_needs_a_sign_in_goes_on_only_after_its_owner_has_signed_in(binding: str) -> None:
    airline = Airline()
    place = Place(airline.agent)
    task = place.send()
    place.world.settle(MINUTE_MS)

    def state_after(answer: str) -> str:
        place.ask(binding, Operation.SEND, Names(task=task, message=answer, text="I have signed in."))
        place.world.settle(MINUTE_MS)
        return str(place.call("GetTask", id=task)["status"]["state"])

    assert state_after("m-2") == "TASK_STATE_AUTH_REQUIRED"
    airline.signed_in.add("somebody else")
    assert state_after("m-3") == "TASK_STATE_AUTH_REQUIRED"
    airline.signed_in.add(ME.owner)
    assert state_after("m-4") == "TASK_STATE_COMPLETED"


@pytest.mark.requirement(94, 97)
def test_credentials_of_a_caller_reach_neither_the_agent_nor_the_table() -> None:
    async def snapshot(task: TaskContext) -> None:
        await task.emit("seen", repr({name: getattr(task, name) for name in ("message", "context_id", "id")}))

    place = Place(agent_of(snapshot))
    place.ask("1.0 REST", Operation.SEND, Names(), authorization="Bearer hunter2", x_api_key="hunter2")
    place.world.settle(MINUTE_MS)
    (made,) = place.call("ListTasks", includeArtifacts=True)["tasks"]
    assert "hello" in json.dumps(made["artifacts"])
    assert "hunter2" not in json.dumps(made) + repr(vars(place.world.table))


# ---- What an agent does not offer, or asks for


@pytest.mark.requirement(43)
@pytest.mark.parametrize(("binding", "operation"), [one for one in EVERY if one[1] in PUSHES])
def test_an_agent_without_webhooks_refuses_every_operation_on_them(binding: str, operation: Operation) -> None:
    place = Place(replace(Writer().agent, push=False))
    answer = place.ask(binding, operation, Names(task=place.send()))
    assert reason(answer) == "PUSH_NOTIFICATION_NOT_SUPPORTED"


@pytest.mark.requirement(44)
@pytest.mark.parametrize(("binding", "operation"), [one for one in EVERY if one[1].streams])
def test_an_agent_that_does_not_stream_refuses_streams(binding: str, operation: Operation) -> None:
    place = Place(replace(Writer().agent, streaming=False))
    assert reason(place.ask(binding, operation, Names(task=place.send()))) == "UNSUPPORTED_OPERATION"


@pytest.mark.requirement(43)
@pytest.mark.parametrize("method", ["message:send", "message:stream"])
def test_an_agent_without_webhooks_refuses_one_that_comes_with_a_message(method: str) -> None:
    place = Place(replace(Writer().agent, push=False))
    body = {"message": MESSAGE, "configuration": {"taskPushNotificationConfig": {"url": HOOK}}}
    answer = place.edge.answer(HttpRequest("POST", f"/echo/{method}", HEADERS, body=json.dumps(body).encode()))
    assert reason(answer) == "PUSH_NOTIFICATION_NOT_SUPPORTED"
    assert place.world.table.feed == []


@pytest.mark.requirement(61, 63, 64)
@pytest.mark.parametrize(("binding", "operation"), EVERY)
def test_a_request_is_served_in_the_version_that_it_asks_for_or_refused(binding: str, operation: Operation) -> None:
    place = Place()
    names = Names(task=place.send())
    refused = {
        version: reason(place.ask(binding, operation, names, a2a_version=version)) == "VERSION_NOT_SUPPORTED"
        for version in ("", "0.3", "0.3.9", "1.0", "1.0.9", "1.1", "2.0", "0.2")
    }
    assert {version for version, no in refused.items() if not no} == (
        {"1.0", "1.0.9"} if binding in NEW else {"", "0.3", "0.3.9", "1.0", "1.0.9"}
    )


NEEDED = AgentExtension("https://example.com/receipts/v1", required=True)


@pytest.mark.requirement(46, 78)
@pytest.mark.parametrize(("binding", "operation"), EVERY)
def test_a_required_extension_has_to_be_named_in_every_request(binding: str, operation: Operation) -> None:
    place = Place(replace(Writer().agent, extensions=(NEEDED,)))
    unnamed = place.ask(binding, operation, Names(task="any"), a2a_extensions="https://example.com/receipts/v2")
    assert reason(unnamed) == "EXTENSION_SUPPORT_REQUIRED"
    named = place.ask(binding, operation, Names(task="any"), a2a_extensions=NEEDED.uri)
    assert reason(named) != "EXTENSION_SUPPORT_REQUIRED"


@pytest.mark.requirement(78, 106)
@pytest.mark.parametrize("binding", CURRENT)
def test_an_unknown_extension_is_ignored_and_the_active_ones_are_told_in_one_header(binding: str) -> None:
    offered = (AgentExtension("urn:a"), AgentExtension("urn:b"))
    place = Place(replace(Writer().agent, extensions=offered))
    named = f"urn:b, urn:unknown,urn:a,{BUDGET_EXTENSION.uri}"
    answer = place.ask(binding, Operation.GET, Names(task=place.send()), a2a_extensions=named)
    name = "a2a-extensions" if binding in NEW else "x-a2a-extensions"
    active = {key.lower(): value for key, value in answer.headers.items()}[name]
    assert active == f"urn:b, urn:a, {BUDGET_EXTENSION.uri}"


@pytest.mark.requirement(22)
def test_an_agent_knows_what_its_client_can_take_and_what_nobody_makes_is_refused() -> None:
    async def tailor(task: TaskContext) -> None:
        content: Any = {"as": "data"} if "application/json" in task.accepted_output_modes else "as text"
        await task.emit("out", content)

    place = Place(agent_of(tailor))
    made = {}
    for number, mode in enumerate(("application/json", "text/plain")):
        sent = place.call(
            "SendMessage", message=MESSAGE | {"messageId": mode}, configuration={"acceptedOutputModes": [mode]}
        )
        made[number] = sent["task"]["artifacts"][0]["parts"][0]
    assert made == {0: {"data": {"as": "data"}}, 1: {"text": "as text"}}
    body = {"message": MESSAGE, "configuration": {"acceptedOutputModes": ["image/png"]}}
    request = HttpRequest("POST", "/echo/message:send", HEADERS, body=json.dumps(body).encode())
    assert reason(place.edge.answer(request)) == "CONTENT_TYPE_NOT_SUPPORTED"


# ---- Every operation in every binding


SHOWN = replace(Writer().agent, extended_skills=(SKILL,))


@pytest.mark.requirement(80)
@pytest.mark.parametrize(
    ("binding", "operation", "tenant"),
    [(*one, None) for one in EVERY] + [(*one, "acme") for one in EVERY if one[0] in NEW],
)
def test_every_operation_is_served_in_every_binding_and_in_a_tenant_that_is_named(
    binding: str, operation: Operation, tenant: str | None
) -> None:
    place = Place(SHOWN)
    sent = json.loads(place.ask(binding, Operation.SEND, Names(tenant=tenant)).body)
    sent = sent.get("result", sent)
    names = Names(task=sent.get("task", sent)["id"], tenant=tenant)
    if operation in PUSHES:
        assert reason(place.ask(binding, Operation.PUSH_CREATE, names)) is None
    answer = place.ask(binding, operation, replace(names, message="message-2") if operation.sends else names)
    assert (answer.status, reason(answer)) == (200, None)
    assert (answer.stream is not None) == (operation.streams)


class Down:
    """What does not answer."""

    def __getattr__(self, name: str) -> Any:
        raise ConnectionError(f"{name}: table-1 does not answer")


@pytest.mark.requirement(39)
@pytest.mark.parametrize(
    ("binding", "operation"), [*EVERY, *(("legacy", operation) for operation in BINDINGS["legacy"])]
)
def test_no_answer_of_a_broken_service_names_its_inner_error(binding: str, operation: Operation) -> None:
    place, down = Place(SHOWN), cast("Any", Down())
    service = place.edge.service._replace(log=down, publications=down, lister=lambda: down, webhooks=lambda: down)
    place.edge = replace(place.edge, service=service)
    answer = place.ask(binding, operation, Names(task="task"))
    said = answer.body if answer.stream is None else asyncio.run(first_of(answer))
    assert b"INTERNAL" in said
    assert [word for word in (b"Traceback", b"ConnectionError", b"table-1", b"a2a_serverless") if word in said] == []


# ---- Every binding says the same


@pytest.mark.requirement(80)
def test_every_binding_of_a_version_tells_the_same_of_a_task() -> None:
    place = Place()
    task = place.send()
    place.world.settle(MINUTE_MS)
    over_rpc, over_rest = (json.loads(place.ask(binding, Operation.GET, Names(task=task)).body) for binding in NEW)
    assert over_rpc["result"] == over_rest
    (listed, over_rest) = (json.loads(place.ask(binding, Operation.LIST, Names()).body) for binding in NEW)
    assert listed["result"] == over_rest


@pytest.mark.requirement(37, 54, 80)
@pytest.mark.parametrize(
    ("binding", "operation"), [one for one in EVERY if one[1] not in {Operation.LIST, Operation.CARD}]
)
def test_a_task_that_there_is_not_is_not_found_by_any_operation(binding: str, operation: Operation) -> None:
    assert reason(Place().ask(binding, operation, Names(task="unknown"))) == "TASK_NOT_FOUND"


# ---- Lists, histories, waiting


@pytest.mark.requirement(29, 36, 40)
@pytest.mark.parametrize("binding", CURRENT)
def test_the_text_of_a_refusal_says_what_was_wrong(binding: str) -> None:
    place = Place()
    task = place.send("message-1")
    said = {
        Operation.SEND: "message.messageId was used before with another content; use a new one.",
        Operation.PUSH_CREATE: "url is refused: only https is allowed.",
        Operation.LIST: "pageToken is not a token of an earlier page of this list.",
    }
    names = Names(task=task, message="message-1", text="something else", webhook="http://example.com", page="made-up")
    for operation in said.keys() & BINDINGS[binding].keys():
        answer = place.ask(binding, operation, replace(names, task=None) if operation is Operation.SEND else names)
        refusal = json.loads(answer.body)
        text = refusal.get("message") or refusal["error"]["message"]
        assert text.endswith(said[operation])
        assert len(text) < 200


@pytest.mark.requirement(9)
def test_a_list_has_artifacts_only_when_they_are_asked_for() -> None:
    place = Place()
    place.send()
    place.world.settle(MINUTE_MS)
    for without in (place.call("ListTasks"), place.call("ListTasks", includeArtifacts=False), place.get("/tasks")):
        assert ["artifacts" in task for task in without["tasks"]] == [False]
    for with_them in (place.call("ListTasks", includeArtifacts=True), place.get("/tasks", includeArtifacts="true")):
        assert [len(task["artifacts"]) for task in with_them["tasks"]] == [1]


@pytest.mark.requirement(10, 12, 13)
def test_pages_go_from_the_newest_status_to_the_oldest_and_the_last_one_has_an_empty_token() -> None:
    place = Place(Asker().agent)
    made = []
    for number in range(5):
        made.append(place.send(f"m-{number}"))
        place.world.wait(5000)
    place.world.cancel(made[1])
    pages, token = [], ""
    for _ in range(3):
        page = place.call("ListTasks", pageSize=2, pageToken=token)
        again = place.get("/tasks", pageSize="2", pageToken=token)
        assert [task["id"] for task in again["tasks"]] == [task["id"] for task in page["tasks"]]
        token = page["nextPageToken"]
        pages.append(page)
    assert (token, [page["totalSize"] for page in pages]) == ("", [5] * 3)
    tasks = [task for page in pages for task in page["tasks"]]
    assert (tasks[0]["id"], {task["id"] for task in tasks}, len(tasks)) == (made[1], set(made), 5)
    times = [task["status"]["timestamp"] for task in tasks]
    assert times == sorted(times, reverse=True)


@pytest.mark.requirement(23, 24)
@pytest.mark.parametrize("most", [0, 1, 2, 9])
def test_a_task_is_shown_with_no_more_messages_than_were_asked_for_and_the_newest_of_them(most: int) -> None:
    place = Place(Asker().agent)
    task = place.send()
    place.world.settle(MINUTE_MS)
    place.send("m-2", taskId=task)
    place.world.settle(MINUTE_MS)
    whole = place.call("GetTask", id=task)["history"]
    assert len(whole) == 3
    asked = {"messageId": "m-2", "taskId": task}
    shown = [
        place.call("GetTask", id=task, historyLength=most),
        place.get(f"/tasks/{task}", historyLength=str(most)),
        *place.call("ListTasks", historyLength=most)["tasks"],
        place.call("SendMessage", message=MESSAGE | asked, configuration={"historyLength": most})["task"],
    ]
    for one in shown:
        assert one.get("history", []) == whole[len(whole) - min(most, 3) :]
        assert ("history" in one) == (most > 0)


@pytest.mark.requirement(25, 26)
@pytest.mark.parametrize("configuration", [{}, {"returnImmediately": False}])
def test_a_send_waits_for_the_end_and_answers_with_all_that_was_made(configuration: dict[str, Any]) -> None:
    task = Place().call("SendMessage", message=MESSAGE, configuration=configuration)["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    (artifact,) = task["artifacts"]
    assert [part["text"] for part in artifact["parts"]] == ["one: hello. two: hello. three: hello. "]


# ---- The card


SPOKEN = {
    ("JSONRPC", "1.0"): "1.0 JSON-RPC",
    ("HTTP+JSON", "1.0"): "1.0 REST",
    ("JSONRPC", "0.3"): "0.3 JSON-RPC",
    ("HTTP+JSON", "0.3"): "0.3 REST",
}


@pytest.mark.requirement(61, 63, 81, 98, 99)
def test_the_card_declares_every_binding_in_every_version_and_each_is_served_where_it_says() -> None:
    place = Place()
    card = place.get("/.well-known/agent-card.json")
    assert_v0_3("AgentCard", card)
    declared = [(one["protocolBinding"], one["protocolVersion"]) for one in card["supportedInterfaces"]]
    assert declared == list(SPOKEN)
    assert {one["url"] for one in card["supportedInterfaces"]} == {f"{BASE}/echo"}
    task = place.send()
    for interface in declared:
        answer = place.ask(SPOKEN[interface], Operation.GET, Names(task=task))
        assert (answer.status, reason(answer)) == (200, None)


@pytest.mark.requirement(104)
def test_a_card_may_be_kept_for_a_while_and_asked_for_again_by_its_etag() -> None:
    place = Place()
    request = HttpRequest("GET", "/echo/.well-known/agent-card.json")
    answer = place.edge.answer(request)
    headers = {name.lower(): value for name, value in answer.headers.items()}
    assert "max-age=" in headers["cache-control"]
    assert headers["etag"].startswith('"')
    assert headers["last-modified"].endswith(" GMT")
    again = place.edge.answer(request._replace(headers={"if-none-match": headers["etag"]}))
    assert (again.status, again.body) == (304, b"")


def test_a_message_in_the_role_of_an_agent_is_its_callers_message_as_it_was_sent() -> None:
    place = Place()
    task = place.get(f"/tasks/{place.send(role='ROLE_AGENT')}")
    assert [one["role"] for one in task["history"]] == ["ROLE_AGENT"]
