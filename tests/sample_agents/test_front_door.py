"""The shipped agents through the real HTTP edge: blocking requests, inline and queued, as clients send them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from a2a_serverless.domain.agent import BUDGET_EXTENSION, WEBHOOK_EXTENSIONS
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.http.messages import HttpRequest
from tests.client.deployment import Deployment
from tests.sample_agents.sketches import SHIPPED as AGENTS
from tests.sample_agents.test_writing_agents import CHINESE, ENGLISH

V1 = {"content-type": "application/json", "a2a-version": "1.0"}
SHIPPED = ("orchestrator", "outline", "document", "summary", "image", "travel")  # others may be deployed beside them
OLD = {"content-type": "application/json"}


class Door:
    """All shipped agents behind the real edge."""

    def __init__(self) -> None:
        deployment = Deployment(*AGENTS)
        world = deployment.world
        self.edge = replace(
            deployment.edge,
            service=world.service._replace(inline_runner=EngineInlineRunner(world.engine, world.play).for_agent),
        )
        self.sent = 0

    def get(self, path: str) -> Any:
        return json.loads(self.edge.answer(HttpRequest("GET", path)).body)

    def post(self, agent: str, body: Any, headers: dict[str, str]) -> Any:
        answer = self.edge.answer(HttpRequest("POST", f"/{agent}", headers, body=json.dumps(body).encode()))
        document = json.loads(answer.body)
        assert "result" in document, document
        return document["result"]

    def send(self, agent: str, *parts: dict[str, Any], **fields: Any) -> Any:
        self.sent += 1
        message = {"messageId": f"m-{self.sent}", "role": "ROLE_USER", "parts": list(parts), **fields}
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        return self.post(agent, body, V1)


def text(words: str) -> dict[str, Any]:
    return {"text": words}


@cache
def shared_door() -> Door:
    return Door()


@pytest.mark.requirement(98, 126)
@pytest.mark.parametrize("agent", SHIPPED)
def test_every_shipped_agent_has_a_card_and_is_listed(agent: str) -> None:
    card = shared_door().get(f"/{agent}/.well-known/agent-card.json")
    assert all(skill["examples"] for skill in card["skills"])
    assert agent in [one["id"] for one in shared_door().get("/agents")["agents"]]


@pytest.mark.requirement(77)
def test_the_extensions_of_the_shipped_agents_have_a_version_in_their_uris() -> None:
    uris = {extension.uri for agent in AGENTS for extension in agent.offered_extensions}
    assert uris == {BUDGET_EXTENSION.uri, *(extension.uri for extension in WEBHOOK_EXTENSIONS.values())}
    assert all(uri.endswith(":1") for uri in uris)


def test_the_card_at_the_root_is_the_orchestrators() -> None:
    assert shared_door().get("/.well-known/agent-card.json")["name"] == "Orchestrator"


@pytest.mark.requirement(66)
@pytest.mark.parametrize("source", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_outline_and_document_answer_with_tasks_and_summary_with_a_message(source: str) -> None:
    door = Door()
    outline = door.send("outline", text(source))["task"]
    assert outline["status"]["state"] == "TASK_STATE_COMPLETED"
    data = outline["artifacts"][0]["parts"][0]["data"]
    document = door.send("document", text(source), {"data": data}, contextId=outline["contextId"])["task"]
    assert document["artifacts"][0]["name"] == "document.md"
    assert "message" in door.send("summary", text(source), contextId=outline["contextId"])


@pytest.mark.requirement(51, 57)
def test_travel_talks_in_messages_and_books_in_tasks_of_one_conversation() -> None:
    door = Door()
    assert "message" in door.send("travel", text("What can you do?"))
    flight = door.send("travel", text("Book a flight to Helsinki"))["task"]
    about = {"contextId": flight["contextId"], "referenceTaskIds": [flight["id"]]}
    hotel = door.send("travel", text("Based on the flight, book a hotel"), **about)["task"]
    assert hotel["artifacts"][0]["parts"][0]["data"]["place"] == "Helsinki"


def test_the_orchestrator_gives_the_whole_chain_to_a_client_that_waits() -> None:
    task = Door().send("orchestrator", text(ENGLISH))["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    names = [artifact["name"] for artifact in task["artifacts"]]
    assert names == ["outline.json", "summary.md", "report.json", "document.md"]


def test_the_sailboat_of_life_of_a_task_is_drawn_and_painted_red_as_its_client_asks_for_it() -> None:
    door = Door()
    first = {
        "role": "user",
        "messageId": "msg-user-001",
        "parts": [text("Generate an image of a sailboat on the ocean.")],
    }
    boat = door.post(
        "image", {"jsonrpc": "2.0", "id": "1", "method": "message.send", "params": {"message": first}}, OLD
    )
    assert (boat["status"]["state"], boat["artifacts"][0]["name"]) == ("completed", "sailboat_image.png")
    second = {
        "role": "user",
        "messageId": "msg-user-002",
        "contextId": boat["contextId"],
        "referenceTaskIds": [boat["id"]],
        "parts": [text("Please modify the sailboat to be red.")],
    }
    red = door.post(
        "image", {"jsonrpc": "2.0", "id": "2", "method": "message.send", "params": {"message": second}}, OLD
    )
    assert red["id"] != boat["id"]
    assert red["contextId"] == boat["contextId"]
    assert red["artifacts"][0]["name"] == boat["artifacts"][0]["name"]
    assert red["artifacts"][0]["artifactId"] != boat["artifacts"][0]["artifactId"]
    assert red["artifacts"][0]["description"] == "A red sailboat on the sea."
    assert red["artifacts"][0]["parts"][0] != boat["artifacts"][0]["parts"][0]
