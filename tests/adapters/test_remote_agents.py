"""Other agents over HTTP, both versions: an agent elsewhere that answers from a script on a loopback socket."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.agent import Skill
from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.model import Principal
from a2a_serverless.http_client.sockets import always
from a2a_serverless.ports.agents import AgentUnavailable
from a2a_serverless.protocol.v1 import Message, Part, Role, Task, TaskPushNotificationConfig, TaskState
from tests.echo import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.enable_socket

ME = Principal("acme", "alice")
HELLO = Message(message_id="m-1", role=Role.USER, parts=(Part(text="hello"), Part(data={"n": 1})), context_id="context")
CALLBACK = TaskPushNotificationConfig(url="https://parent.example.com/callbacks/1", id="parent", token="t-1")
TASKS: dict[str, dict[str, Any]] = {
    "1.0": {"task": {"id": "far", "contextId": "context", "status": {"state": "TASK_STATE_WORKING"}}},
    "0.3": {"kind": "task", "id": "far", "contextId": "context", "status": {"state": "working"}},
}
METHODS = {"1.0": ["SendMessage", "GetTask", "CancelTask"], "0.3": ["message/send", "tasks/get", "tasks/cancel"]}


class Elsewhere:
    """An agent: its card, its next answers, the status of its answers to requests, and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.card: dict[str, Any] = {}
        self.answers: list[Any] = []
        self.status = 200
        self.asked: list[tuple[str, dict[str, str], Any]] = []

    def speaks(self, version: str, url: str | None = None, *, push: bool | None = True) -> None:
        can = {} if push is None else {"pushNotifications": push}
        about = {"name": "Far", "description": "d", "version": "1", "capabilities": can, "skills": []}
        modes = {"defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]}
        at = url or f"{self.url}/rpc"
        interface = {"url": at, "protocolBinding": "JSONRPC", "protocolVersion": version, "tenant": "acme"}
        new = {"supportedInterfaces": [interface]}
        old = {"url": at, "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}
        self.card = about | modes | (new if version == "1.0" else old)


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say(agent.card if self.path == "/.well-known/agent-card.json" else {})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            agent.asked.append((self.path, dict(self.headers), body))
            answer = agent.answers.pop(0)
            self._say({"jsonrpc": "2.0", "id": 1} | (answer if "error" in answer else {"result": answer}), agent.status)

        def _say(self, document: Any, status: int = 200) -> None:
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        agent = Elsewhere(f"http://127.0.0.1:{server.server_port}")
        Thread(target=server.serve_forever, daemon=True).start()
        yield agent
        server.shutdown()


def test_calls_carry_the_trace_that_they_belong_to_and_the_others_none(elsewhere: Elsewhere) -> None:
    elsewhere.speaks("1.0")
    elsewhere.answers = [TASKS["1.0"]["task"]] * 2
    remote_agents = A2ARemoteAgents({}, {"far": elsewhere.url})
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    remote_agents.for_run(trace, always).get(Caller(ME), "far", "far")
    remote_agents.get(Caller(ME), "far", "far")
    sent = [headers.get("traceparent") for _, headers, _ in elsewhere.asked]
    assert sent == ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None]


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_an_agent_is_spoken_to_in_the_version_and_at_the_address_that_its_card_says(
    elsewhere: Elsewhere, version: str
) -> None:
    elsewhere.speaks(version)
    task = TASKS[version]
    elsewhere.answers = [task, task.get("task", task), task.get("task", task)]
    remote_agents = A2ARemoteAgents({}, {"far": elsewhere.url})
    sent = remote_agents.send(Caller(ME), "far", HELLO, CALLBACK)
    assert isinstance(sent, Task)
    assert (sent.id, remote_agents.get(Caller(ME), "far", "far").status.state) == ("far", TaskState.WORKING)
    remote_agents.cancel(Caller(ME), "far", "far")
    assert [body["method"] for _, _, body in elsewhere.asked] == METHODS[version]
    assert {(path, headers["A2A-Version"]) for path, headers, _ in elsewhere.asked} == {("/rpc", version)}


@pytest.mark.parametrize(("version", "waits"), [("1.0", {"returnImmediately": True}), ("0.3", {"blocking": False})])
def test_a_message_says_where_news_goes_and_does_not_wait(
    elsewhere: Elsewhere, version: str, waits: dict[str, bool]
) -> None:
    elsewhere.speaks(version)
    elsewhere.answers = [TASKS[version]]
    A2ARemoteAgents({}, {"far": elsewhere.url}).send(Caller(ME), "far", HELLO, CALLBACK)
    params = elsewhere.asked[0][2]["params"]
    push = params["configuration"]["taskPushNotificationConfig" if version == "1.0" else "pushNotificationConfig"]
    assert (push["url"], push["token"]) == (CALLBACK.url, "t-1")
    assert waits.items() <= params["configuration"].items()
    assert params.get("tenant") == ("acme" if version == "1.0" else None)


def webhooks_sent(elsewhere: Elsewhere) -> list[Any]:
    sent = (body["params"] for _, _, body in elsewhere.asked if body["method"] in {"SendMessage", "message/send"})
    names = ("taskPushNotificationConfig", "pushNotificationConfig")
    return [
        next((one["configuration"][name]["url"] for name in names if name in one["configuration"]), None)
        for one in sent
    ]


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("push", [None, False])
def test_an_agent_whose_card_offers_no_webhooks_gets_none(
    elsewhere: Elsewhere, version: str, *, push: bool | None
) -> None:
    elsewhere.speaks(version, push=push)
    elsewhere.answers = [TASKS[version]]
    sent = A2ARemoteAgents({}, {"far": elsewhere.url}).send(Caller(ME), "far", HELLO, CALLBACK)
    assert isinstance(sent, Task)
    assert webhooks_sent(elsewhere) == [None]


REFUSED = {"error": {"code": -32003, "message": "Push Notification is not supported"}}


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_an_agent_that_refuses_webhooks_gets_the_message_once_more_without_one(
    elsewhere: Elsewhere, version: str
) -> None:
    elsewhere.speaks(version)
    elsewhere.answers = [REFUSED, TASKS[version], TASKS[version]]
    remote_agents = A2ARemoteAgents({}, {"far": elsewhere.url})
    sent = [remote_agents.for_run("", always).send(Caller(ME), "far", HELLO, CALLBACK) for _ in range(2)]
    assert [one.id for one in sent if isinstance(one, Task)] == ["far", "far"]
    assert webhooks_sent(elsewhere) == [CALLBACK.url, None, None], "it is not asked again whether it takes one"
    assert len({body["params"]["message"]["messageId"] for _, _, body in elsewhere.asked}) == 1


def test_an_agent_that_refuses_also_the_message_without_a_webhook_is_not_asked_a_third_time(
    elsewhere: Elsewhere,
) -> None:
    elsewhere.speaks("1.0")
    elsewhere.answers = [REFUSED, REFUSED]
    with pytest.raises(AgentCallFailed, match="refused: Push Notification is not supported"):
        A2ARemoteAgents({}, {"far": elsewhere.url}).send(Caller(ME), "far", HELLO, CALLBACK)
    assert webhooks_sent(elsewhere) == [CALLBACK.url, None]


@pytest.mark.parametrize(("siblings", "at_once"), [(True, False), (False, True)])
def test_without_webhooks_only_an_agent_that_knows_message_ids_for_sure_may_let_us_wait(
    elsewhere: Elsewhere, *, siblings: bool, at_once: bool
) -> None:
    elsewhere.speaks("1.0")
    elsewhere.answers = [REFUSED, TASKS["1.0"]]
    agents = {"far": f"{elsewhere.url}/rpc"}
    remote_agents = A2ARemoteAgents(agents) if siblings else A2ARemoteAgents({}, {"far": elsewhere.url})
    assert remote_agents.has_push("far")
    remote_agents.send(Caller(ME), "far", HELLO, CALLBACK)
    assert not remote_agents.has_push("far")
    configuration = elsewhere.asked[-1][2]["params"].get("configuration", {})
    assert configuration.get("returnImmediately", False) is at_once
    assert remote_agents.keeps_message_ids("far") is siblings


def test_owners_who_choose_one_context_id_do_not_meet_in_a_conversation_elsewhere(elsewhere: Elsewhere) -> None:
    elsewhere.speaks("1.0")
    elsewhere.answers = [TASKS["1.0"]] * 5
    remote_agents = A2ARemoteAgents({}, {"far": elsewhere.url})
    owners = [ME, ME, Principal("acme", "eve"), Principal("elsewhere", "alice")]
    for owner in owners:
        remote_agents.send(Caller(owner), "far", HELLO, CALLBACK)
    sent = [body["params"]["message"]["contextId"] for _, _, body in elsewhere.asked]
    assert sent[0] == sent[1]
    assert len({*sent, "context"}) == 4
    guess = HELLO.model_copy(update={"context_id": sent[0]})
    remote_agents.send(Caller(Principal("acme", "eve")), "far", guess, CALLBACK)
    assert elsewhere.asked[-1][2]["params"]["message"]["contextId"] not in sent, "nor by the name that another one has"


def test_an_answer_to_a_question_elsewhere_stays_in_the_context_that_its_agent_named(elsewhere: Elsewhere) -> None:
    elsewhere.speaks("1.0")
    elsewhere.answers = [TASKS["1.0"]]
    answer = HELLO.model_copy(update={"context_id": "theirs", "task_id": "far"})
    A2ARemoteAgents({}, {"far": elsewhere.url}).send(Caller(ME), "far", answer, CALLBACK)
    assert elsewhere.asked[0][2]["params"]["message"]["contextId"] == "theirs"


def test_a_sibling_is_spoken_to_in_the_same_context(elsewhere: Elsewhere) -> None:
    elsewhere.answers = [TASKS["1.0"]]
    A2ARemoteAgents({"near": f"{elsewhere.url}/near"}).send(Caller(ME), "near", HELLO, CALLBACK)
    assert elsewhere.asked[0][2]["params"]["message"]["contextId"] == "context"


def test_a_sibling_is_spoken_to_without_asking_for_its_card(elsewhere: Elsewhere) -> None:
    elsewhere.answers = [{"message": {"messageId": "a", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}]
    answer = A2ARemoteAgents({"near": f"{elsewhere.url}/near"}).send(Caller(ME), "near", HELLO, CALLBACK)
    assert isinstance(answer, Message)
    assert (answer.text(), elsewhere.asked[0][0]) == ("hi", "/near")


def test_agents_are_known_by_the_tags_of_their_skills_elsewhere_by_their_cards(elsewhere: Elsewhere) -> None:
    elsewhere.speaks("1.0")
    elsewhere.card["skills"] = [{"id": "sew", "name": "Sew", "description": "Sews.", "tags": ["coats"]}]
    cutter = replace(Writer().agent, skills=(Skill("cut", "Cut", "Cuts.", ("cloth",)),))
    siblings = {
        "near": f"{elsewhere.url}/near",
        "down": f"{elsewhere.url}/down",
    }
    remote_agents = A2ARemoteAgents(
        siblings, {"far": elsewhere.url, "down": "http://127.0.0.1:9"}, agents=dict.fromkeys(siblings, cutter)
    )
    assert remote_agents.tags() == {"near": ("cut", "cloth"), "far": ("sew", "coats")}


def test_only_a_search_for_agents_imports_what_reads_catalogs() -> None:
    imports = (
        "import sys, a2a_serverless.adapters.remote_agents; print([name for name in sys.modules if 'catalog' in name])"
    )
    done = subprocess.run([sys.executable, "-c", imports], capture_output=True, check=True)  # noqa: S603 - our own interpreter
    assert done.stdout == b"[]\n"


def test_a_card_that_leads_to_another_host_is_not_followed(elsewhere: Elsewhere) -> None:
    elsewhere.speaks("1.0", "https://internal.example.com/rpc")
    with pytest.raises(AgentCallFailed, match=r"another origin, https://internal\.example\.com"):
        A2ARemoteAgents({}, {"far": elsewhere.url}).card("far")


def test_an_agent_with_a_binding_that_we_do_not_speak_is_refused(elsewhere: Elsewhere) -> None:
    elsewhere.speaks("1.0")
    elsewhere.card["supportedInterfaces"][0]["protocolBinding"] = "GRPC"
    with pytest.raises(AgentCallFailed, match="over JSON-RPC or HTTP"):
        A2ARemoteAgents({}, {"far": elsewhere.url}).card("far")


@pytest.mark.parametrize("code", [-32001, -32002])
def test_canceling_what_has_ended_or_is_gone_is_fine(elsewhere: Elsewhere, code: int) -> None:
    elsewhere.answers = [{"error": {"code": code, "message": "no"}}]
    A2ARemoteAgents({"near": elsewhere.url}).cancel(Caller(ME), "near", "far")
    assert len(elsewhere.asked) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_cancel_that_an_agent_elsewhere_does_not_admit_is_no_cancel(elsewhere: Elsewhere, status: int) -> None:
    """Its operator may mend the credentials. An agent of this deployment will always refuse this caller."""
    elsewhere.speaks("1.0")
    elsewhere.answers, elsewhere.status = [{}, {}], status
    with pytest.raises(AgentCallFailed, match=f"'far' refused: HTTP {status}"):
        A2ARemoteAgents({}, {"far": elsewhere.url}).cancel(Caller(ME), "far", "far")
    A2ARemoteAgents({"near": elsewhere.url}).cancel(Caller(ME), "near", "far")
    assert [body["method"] for _, _, body in elsewhere.asked] == ["CancelTask", "CancelTask"]


def test_an_error_of_the_agent_is_told_in_its_words(elsewhere: Elsewhere) -> None:
    elsewhere.speaks("1.0")
    elsewhere.answers = [{"error": {"code": -32603, "message": "out of order"}}]
    with pytest.raises(AgentCallFailed, match="'far' refused: out of order") as refused:
        A2ARemoteAgents({}, {"far": elsewhere.url}).send(Caller(ME), "far", HELLO, CALLBACK)
    assert not isinstance(refused.value, AgentUnavailable)


@pytest.mark.parametrize("code", [-32603, -32000])
def test_an_internal_error_of_this_deployment_passes_because_it_knows_a_message_that_comes_again(
    elsewhere: Elsewhere, code: int
) -> None:
    elsewhere.answers = [{"error": {"code": code, "message": "out of order"}}]
    with pytest.raises(AgentUnavailable, match="'near' cannot answer now: out of order"):
        A2ARemoteAgents({"near": elsewhere.url}).send(Caller(ME), "near", HELLO, CALLBACK)


@pytest.mark.parametrize("answer", [{"task": 7}, {"nothing": 1}])
def test_an_answer_that_is_not_a2a_is_a_failure_of_the_peer(elsewhere: Elsewhere, answer: dict[str, Any]) -> None:
    elsewhere.answers = [answer]
    with pytest.raises(AgentCallFailed, match="not A2A"):
        A2ARemoteAgents({"near": elsewhere.url}).send(Caller(ME), "near", HELLO, CALLBACK)


def test_an_address_without_a_server_is_a_failure_of_the_peer() -> None:
    with pytest.raises(AgentCallFailed, match="could not be reached"):
        A2ARemoteAgents({"near": "http://127.0.0.1:9"}).get(Caller(ME), "near", "far")


def test_only_the_log_tells_which_names_there_are(caplog: pytest.LogCaptureFixture) -> None:
    agents = A2ARemoteAgents({"near": "http://127.0.0.1:9"}, {"other": "https://other.example"})
    for ask in (lambda: agents.card("far"), lambda: agents.send(Caller(ME), "far", HELLO, CALLBACK)):
        caplog.clear()
        with pytest.raises(AgentCallFailed, match=r"^There is no agent 'far' in the directory\.$"):
            ask()
        assert [vars(record)["agents"] for record in caplog.records] == [["near", "other"]]
