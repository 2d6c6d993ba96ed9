"""The console's page, its files and what it asks, over HTTP; ``tests/console`` shows it in a browser."""

from __future__ import annotations

import json
from contextlib import suppress
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import TaskFailed
from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.model import Principal
from a2a_serverless.http.api import AllowAnonymous, Console
from a2a_serverless.http.console import EVENT_BYTES, EVENTS, LOG_LINES
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol.v1 import Part
from a2a_serverless.services.briefs import BRIEFS, PAGES, WORDS
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from a2a_serverless_tools.local.edge import find_documents
from tests.contract.tasks import SPOILED, spoil
from tests.echo import Writer, agent_of
from tests.edge import Edge, HttpResponse
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless import TaskContext
    from a2a_serverless.domain.model import JsonObject

BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"


def asked(path: str, verb: str = "GET", accept: str = "*/*", *, console: bool = True) -> HttpResponse:
    world = World([Writer().agent])
    edge = Edge(
        world.service,
        world.engine.agents,
        AllowAnonymous(),
        MemoryCallbackVerifier(),
        60,
        console=Console("my-agents") if console else None,
    )
    return edge.answer(HttpRequest(verb, path, {"accept": accept}))


def test_the_page_names_the_agents_and_each_answer_has_a_policy_with_a_nonce_of_its_own() -> None:
    answer, other = asked("/"), asked("/")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b'data-agent="echo"' in answer.body
    assert b"{{" not in answer.body
    policies = [one.headers["content-security-policy"] for one in (answer, other)]
    assert policies[0] != policies[1]
    assert all("default-src 'none'" in one and "frame-ancestors 'none'" in one for one in policies)


def test_every_file_of_the_page_is_served_with_its_type_and_nothing_else_is() -> None:
    files = {file.name for file in resources.files("a2a_serverless.http").joinpath("pages").iterdir() if file.is_file()}
    types = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
    served = {name for name in files if name.endswith((".js", ".css"))} | {"dom.js", "markdown.js"}
    assert {"console.js", "console.css"} <= served
    for name in served:
        answer = asked(f"/-/{name}")
        assert (answer.status, answer.headers["content-type"]) == (200, types[name[name.rfind(".") :]])
        assert answer.headers["x-content-type-options"] == "nosniff"
    for path in ("/-/page.html", "/-/none.js", "/-/page.js", "/-/page.css", "/-/..%2fconsole.py", "/-/.js"):
        assert asked(path).status == 404, path


@pytest.mark.parametrize("path", ["/", "/-/console.js"])
def test_an_api_without_the_console_answers_404_to_each_of_its_paths(path: str) -> None:
    assert asked(path, console=False).status == 404


@pytest.mark.parametrize("console", [True, False])
@pytest.mark.parametrize("path", ["/docs", "/docs/oauth2-redirect", "/redoc"])
def test_no_other_page_runs_scripts_in_the_origin_of_the_api(path: str, *, console: bool) -> None:
    answer = asked(path, console=console, accept=BROWSER)
    assert (answer.status, answer.headers["content-type"]) == (404, "application/json")


@pytest.mark.parametrize("path", ["/", "/-/console.js"])
def test_a_post_to_the_console_is_not_allowed(path: str) -> None:
    answer = asked(path, "POST")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_an_agents_base_url_leads_a_browser_to_its_page_and_refuses_other_clients() -> None:
    answer = asked("/echo", accept=BROWSER)
    assert (answer.status, answer.headers["location"], answer.headers["vary"]) == (303, "./?agent=echo", "accept")
    assert asked("/echo").status == 405
    assert asked("/echo", accept="application/json").status == 405
    assert asked("/echo", console=False, accept=BROWSER).status == 405
    assert asked("/none", accept=BROWSER).status == 404


@pytest.mark.parametrize(
    ("documents", "links"), [("https://docs.example.com/", 2), ("javascript:alert(1)", 1), ("", 1)]
)
def test_the_page_has_the_deployments_name_and_links_to_its_inbox_and_documents(documents: str, links: int) -> None:
    console = Console("<my> agents\u202e", "http://127.0.0.1:8010/", documents)
    page = as_caller(World([Writer().agent]), "/", console=console).body.decode()
    assert '<h1 id="deployment"><bdi>&lt;my&gt; agents</bdi></h1>' in page
    assert page.count('target="_blank"') == links
    assert "javascript:" not in page


def test_the_documents_are_those_of_a_variable_or_of_the_packages_metadata() -> None:
    assert find_documents({"DOCUMENTS_URL": "https://docs.example.com/"}) == "https://docs.example.com/"
    assert find_documents({}, "pydantic").startswith("https://")


class As(AllowAnonymous):
    """Everybody is this caller."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def authenticate(self, headers: object) -> Caller:
        del headers
        return self._caller


INSIDE = Console(internals=True)
OWNER = Caller(ME)


def as_caller(
    world: World,
    path: str,
    caller: Caller = OWNER,
    query: Mapping[str, str] = MappingProxyType({}),
    console: Console | None = INSIDE,
) -> HttpResponse:
    verifier, agents = MemoryCallbackVerifier(), world.engine.agents
    edge = Edge(world.service, agents, As(caller), verifier, 60, console=console)
    return edge.answer(HttpRequest("GET", path, query=tuple(query.items())))


def listed(world: World, caller: Caller = OWNER, **query: str) -> Any:
    answer = as_caller(world, "/-/tasks", caller, query)
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
    return json.loads(answer.body)


async def fail(task: TaskContext) -> None:
    raise TaskFailed(f"no {task.text()}")


async def greet(task: TaskContext) -> str:
    return f"Hello {task.text()}"


def test_the_tasks_of_all_agents_are_listed_newest_first_with_their_first_words_and_why_they_failed() -> None:
    world = World([agent_of(greet, "greeter"), agent_of(fail, "failing")])
    world.send("# Bees\n\nLong.", agent="greeter")
    world.wait(10)
    failed = world.send("w" * 999, agent="failing")
    world.settle()
    found = listed(world)
    assert [(one["agent"], one["state"]) for one in found["tasks"]] == [("failing", "failed"), ("greeter", "completed")]
    assert (found["tasks"][0]["task"], found["after"]) == (failed.id, None)
    assert [one["words"] for one in found["tasks"]] == ["w" * WORDS, "Bees"]
    assert [one["reason"] for one in found["tasks"]] == [f"no {'w' * 999}"[:WORDS], ""]
    assert found["tasks"][0]["at"] > found["tasks"][1]["at"]


def test_the_console_gets_the_list_of_tasks_in_pages() -> None:
    world = World([agent_of(greet)])
    sent = []
    for number in range(BRIEFS + 1):
        sent.append(world.send(f"task {number}").id)
        world.wait(1)
    first = listed(world)
    second = listed(world, after=first["after"])
    assert (len(first["tasks"]), second["after"]) == (BRIEFS, None)
    assert [one["task"] for one in first["tasks"] + second["tasks"]] == sent[::-1]


@pytest.mark.parametrize("after", ["!", "none", f"{0:015d}", f"{0:015d}#{'x' * 901}", f"{0:015d}#ü"])
def test_a_text_that_is_no_end_of_a_page_is_refused(after: str) -> None:
    assert as_caller(World([agent_of(greet)]), "/-/tasks", query={"after": after}).status == 400


def test_a_caller_sees_its_own_tasks_and_those_of_agents_that_it_may_read() -> None:
    world = World([agent_of(greet, "greeter"), agent_of(fail, "failing")])
    for agent in ("greeter", "failing"):
        world.send("hello", agent=agent)
    for stranger in (Principal(ME.tenant, "eve"), Principal("elsewhere", ME.owner)):
        assert listed(world, Caller(stranger)) == {"tasks": [], "after": None}
    found = listed(world, Caller(ME, frozenset({"a2a:greeter:read"})))
    assert [one["agent"] for one in found["tasks"]] == ["greeter"]


@pytest.mark.parametrize("how", SPOILED)
def test_a_task_that_cannot_be_read_keeps_no_other_from_the_list(how: str) -> None:
    world = World([agent_of(greet)])
    spoiled, whole = (world.send(push=False).id for _ in range(2))
    spoil(world.table, ME.key(spoiled), how)
    assert whole in [one["task"] for one in listed(world)["tasks"]]


async def wait_outside(task: TaskContext) -> str:
    await (await task.callback("paid")).received()
    return "done"


def test_a_task_that_is_suspended_is_shown_as_waiting_and_says_for_what() -> None:
    world = World([agent_of(wait_outside)])
    world.send("hello")
    world.settle()
    (brief,) = listed(world)["tasks"]
    assert (brief["state"], brief["waits"]) == ("waiting", [{"kind": "event", "name": "paid"}])
    assert [len(listed(world, state=state)["tasks"]) for state in ("waiting", "working", "completed")] == [1, 0, 0]


def test_the_list_can_be_narrowed_by_agent_state_and_text_and_finds_a_task_by_its_id() -> None:
    world = World([agent_of(greet, "greeter"), agent_of(fail, "failing")])
    bees = world.send("# The bees of Bern", agent="greeter").id
    world.wait(1)
    for number in range(BRIEFS + 2):
        world.send(f"boat {number}", agent="failing")
        world.wait(1)
    world.settle()

    def found(**query: str) -> Any:
        return [one["task"] for one in listed(world, OWNER, **query)["tasks"]]

    assert found(agent="greeter") == found(state="completed") == found(text="BEES of") == [bees]
    assert found(text=bees) == found(text=bees[:-1]) == [bees]
    assert found(agent="greeter", state="failed") == found(text="none") == found(agent="nobody") == []
    assert found(agent="failing", text=bees) == []
    first = listed(world, agent="failing")
    assert len(first["tasks"]) == BRIEFS
    assert len(found(agent="failing", after=first["after"])) == 2


def test_the_id_of_a_task_that_is_older_than_what_is_searched_finds_it() -> None:
    world = World([agent_of(greet)])
    oldest = world.send("bees", push=False).id
    for number in range(PAGES * BRIEFS):
        world.wait(1)
        world.send(f"boat {number}", push=False)
    assert listed(world, text="bees")["tasks"] == []
    assert [one["task"] for one in listed(world, text=oldest)["tasks"]] == [oldest]


async def look_inside(task: TaskContext) -> str:
    await task.step("draw", dict, text="a boat")
    for _ in range(2):
        with suppress(ValueError):
            await task.step("sew", stumble)
    await task.call("greet", "greeter", "Eve")
    await task.callback("paid")
    return "done"


def stumble() -> None:
    raise ValueError("no thread")


def inside(**query: str) -> Any:
    world = World([agent_of(look_inside), agent_of(greet, "greeter")])
    task = world.send("hello").id
    world.settle()
    answer = as_caller(world, "/-/step", query={"agent": "echo", "task": task, **query})
    return json.loads(answer.body) if answer.status == 200 else answer.status


def test_a_step_shows_its_output_or_its_errors_and_a_call_the_task_and_the_answer() -> None:
    assert inside(kind="step", name="draw") == {"output": '{"text":"a boat"}', "size": 17, "errors": []}
    assert inside(kind="step", name="sew") == {"errors": ["ValueError: no thread"] * 2}
    call = inside(kind="call", name="greet")
    assert (call["agent"], "Hello Eve" in call["output"]) == ("greeter", True)
    assert inside(kind="step", name="none") == {"errors": []}


def test_an_event_shows_its_address() -> None:
    found = inside(kind="event", name="paid")
    assert ("/events/" in found["address"], found["scheme"]) == (True, "")
    assert inside(kind="event", name="none") == {}


@pytest.mark.parametrize(
    ("kind", "name"), [("step", "@call/greet"), ("step", "@event/callback:paid"), ("wait", "paid")]
)
def test_the_console_does_not_show_calls_events_and_waits_as_steps(kind: str, name: str) -> None:
    assert inside(kind="step", name="x" * 257) == 404
    assert inside(kind=kind, name=name) == 404


def events_of(world: World, task: str, **query: str) -> Any:
    answer = as_caller(world, "/-/events", query={"agent": "echo", "task": task, **query})
    return json.loads(answer.body) if answer.status == 200 else answer.status


def test_the_events_of_a_task_are_shown_as_they_are_sent_with_the_messages_of_the_client() -> None:
    world = World([agent_of(greet)])
    task = world.send("hello").id
    world.settle()
    page = events_of(world, task)
    assert [one["eventNumber"] for one in page["events"]] == [1, 2, 3]
    assert page["after"] is None
    assert page["events"][0]["received"]["parts"] == [{"text": "hello"}]
    assert [one["sent"]["statusUpdate"]["status"]["state"] for one in page["events"]] == [
        "TASK_STATE_SUBMITTED",
        "TASK_STATE_WORKING",
        "TASK_STATE_COMPLETED",
    ]
    assert [one["run"] for one in page["events"]] == [None, 1, 1]
    assert page["events"][-1]["sent"] == world.receiver.effects()[-1].body, "as the webhook got it"


async def emit_much(task: TaskContext) -> str:
    for number in range(EVENTS):
        await task.emit(f"{number}.txt", "x" * (EVENT_BYTES + 1 if number == 50 else 10))
    return "done"


def test_the_events_come_in_pages_and_one_that_is_too_large_is_cut() -> None:
    world = World([agent_of(emit_much)])
    task = world.send("hello").id
    world.settle()
    numbers, cut, after = [], [], ""
    while after is not None:
        page = events_of(world, task, after=str(after))
        numbers += [one["eventNumber"] for one in page["events"]]
        cut += [one["eventNumber"] for one in page["events"] if one.get("isCut")]
        after = page["after"]
    assert numbers == [*range(1, EVENTS + 4)]
    assert cut == [53]


def test_a_page_after_the_last_event_is_empty() -> None:
    world = World([agent_of(greet)])
    task = world.send("hello").id
    for after in ("1", "9" * 10 + "0", "9" * 256):
        assert events_of(world, task, after=after) == {"events": [], "after": None}


def test_a_file_that_the_client_has_uploaded_is_a_link_in_its_message_as_well() -> None:
    world = World([agent_of(greet)])
    uploaded = world.contents.store(ME.key("uploads"), b"12345")
    request = world.request("hello")
    message = request.message.model_copy(update={"parts": (Part(url=uploaded.address),)})
    task = world.sent(request.model_copy(update={"message": message})).id
    (part,) = events_of(world, task)["events"][0]["received"]["parts"]
    assert part["url"].startswith("https:")


def test_the_log_lines_of_a_task_are_shown_where_they_can_be_read() -> None:
    world = World([agent_of(greet)])
    task = world.send("hello").id
    lines: list[JsonObject] = [{"message": f"line {number}", "task": task} for number in range(LOG_LINES + 1)]
    console = Console(internals=True, log_lines=lambda one: lines if one == task else [])
    query = {"agent": "echo", "task": task}
    shown = json.loads(as_caller(world, "/-/log", query=query, console=console).body)
    assert shown == {"lines": lines[1:], "more": 1}
    assert b'data-log="true"' in as_caller(world, "/", console=console).body
    stranger = Caller(Principal(ME.tenant, "eve"))
    assert as_caller(world, "/-/log", stranger, query, console).status == 404
    assert as_caller(world, "/-/log", Caller(ME, frozenset({"a2a:read"})), query, console).status == 403
    for other in (INSIDE, Console(log_lines=console.log_lines)):
        assert as_caller(world, "/-/log", query=query, console=other).status == 404
        assert b'data-log="false"' in as_caller(world, "/", console=other).body


def test_events_are_shown_to_the_owner_who_may_read_the_agents_tasks() -> None:
    world = World([agent_of(greet, "greeter"), agent_of(greet)])
    task = world.send("hello").id
    query = {"agent": "echo", "task": task}
    assert as_caller(world, "/-/events", Caller(ME, frozenset({"a2a:read"})), query, Console()).status == 200
    assert as_caller(world, "/-/events", Caller(ME, frozenset({"a2a:greeter:read"})), query).status == 403
    assert as_caller(world, "/-/events", Caller(Principal(ME.tenant, "eve")), query).status == 404
    assert as_caller(world, "/-/events", query=query | {"agent": "greeter"}).status == 404
    assert as_caller(world, "/-/events", query=query, console=None).status == 404


def test_internals_are_the_owners_and_only_where_the_deployment_shows_them() -> None:
    world = World([agent_of(look_inside), agent_of(greet, "greeter")])
    task = world.send("hello").id
    world.settle()
    query = {"agent": "echo", "task": task, "kind": "step", "name": "draw"}
    assert as_caller(world, "/-/step", query=query).status == 200
    assert as_caller(world, "/-/step", query=query, console=Console()).status == 404
    assert as_caller(world, "/-/step", query=query, console=None).status == 404
    assert as_caller(world, "/-/step", Caller(ME, frozenset({"a2a:read"})), query).status == 403
    assert as_caller(world, "/-/step", query=query | {"agent": "greeter"}).status == 404
    stranger = Caller(Principal(ME.tenant, "eve"))
    theirs, none = (as_caller(world, "/-/step", stranger, query | {"task": one}) for one in (task, "never"))
    assert (theirs.status, theirs.body) == (none.status, none.body) == (404, none.body)
