"""A request, its agent or the deployment names the events of which a webhook is notified."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.agent import WEBHOOK_EXTENSIONS, agent
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol.operations import Operation
from tests.echo import SKILL, Writer
from tests.handlers.requests import BINDINGS, Names
from tests.handlers.test_operations import CURRENT, HEADERS, MESSAGE, Place
from tests.handlers.test_retries import Mended, failed, post
from tests.world import HOOK, ME

if TYPE_CHECKING:
    from a2a_serverless.domain.push_configs import WebhookEvents

STATES, RESULTS, ALL = (WEBHOOK_EXTENSIONS[name].uri for name in ("states", "results", "all"))


def stored(place: Place, task_id: str) -> list[str]:
    return [config.events for config in place.world.table.list_configs(ME.key(task_id))]


def send(place: Place, extensions: str = "", message: dict[str, Any] = MESSAGE) -> str:
    """The id of the task that got the message and a webhook."""
    configuration = {"returnImmediately": True, "taskPushNotificationConfig": {"url": HOOK}}
    body = {"message": message, "configuration": configuration}
    headers = HEADERS | ({"a2a-extensions": extensions} if extensions else {})
    answer = place.edge.answer(HttpRequest("POST", "/echo/message:send", headers, body=json.dumps(body).encode()))
    assert answer.status == 200, answer.body
    return str(json.loads(answer.body)["task"]["id"])


@pytest.mark.parametrize(
    ("extensions", "events"),
    [("", "all"), (STATES, "states"), (RESULTS, "results"), (f"urn:other, {RESULTS}, {STATES}", "results")],
)
def test_the_first_extension_of_a_send_names_the_events(extensions: str, events: str) -> None:
    place = Place()
    assert stored(place, send(place, extensions)) == [events]


def test_of_two_extensions_only_the_first_is_active() -> None:
    place = Place()
    headers = HEADERS | {"a2a-extensions": f"{RESULTS}, {STATES}"}
    body = json.dumps({"message": MESSAGE}).encode()
    answer = place.edge.answer(HttpRequest("POST", "/echo/message:send", headers, body=body))
    assert {name.lower(): value for name, value in answer.headers.items()}["a2a-extensions"] == RESULTS


@pytest.mark.parametrize("binding", CURRENT)
def test_a_webhook_that_is_registered_later_has_the_events_of_its_request(binding: str) -> None:
    place = Place()
    task_id = place.send()
    request = BINDINGS[binding][Operation.PUSH_CREATE](Names(task=task_id))
    header = "a2a-extensions" if binding.startswith("1.0") else "x-a2a-extensions"
    answer = place.edge.answer(request._replace(headers={**request.headers, header: STATES}))
    assert stored(place, task_id) == ["states"]
    assert {name.lower(): value for name, value in answer.headers.items()}[header] == STATES


@pytest.mark.parametrize(
    ("extensions", "of_agent", "events"),
    [("", "results", "results"), (STATES, "results", "states"), (ALL, "results", "all"), ("", None, "states")],
)
def test_a_request_counts_more_than_its_agent_and_the_agent_more_than_the_deployment(
    extensions: str, of_agent: WebhookEvents | None, events: str
) -> None:
    place = Place(replace(Writer().agent, webhook_events=of_agent))
    edge, webhooks = place.edge, place.world.service.webhooks
    place.edge = replace(edge, service=edge.service._replace(webhooks=lambda: replace(webhooks(), events="states")))
    assert stored(place, send(place, extensions)) == [events]


def test_the_webhook_of_an_answer_and_of_a_retry_has_the_events_of_its_request() -> None:
    world, task_id = failed(Mended())
    body = {"requestId": "r", "taskPushNotificationConfig": {"url": HOOK}}
    task = post(world, task_id, body, headers={"a2a-extensions": STATES})[1]["id"]
    assert [config.events for config in world.table.list_configs(ME.key(task))] == ["states"]


def test_the_deliveries_say_of_which_events_a_webhook_is_notified() -> None:
    place = Place()
    (shown,) = place.get(f"/tasks/{send(place, RESULTS)}/deliveries")["deliveries"]
    assert shown["events"] == "results"


def test_an_agent_with_unknown_webhook_events_is_refused() -> None:
    wrong: Any = "state"
    with pytest.raises(ValueError, match="webhook_events must be one of all, results, states, not 'state'"):
        agent(id="a", name="A", description="A.", skills=[SKILL], webhook_events=wrong)


@pytest.mark.parametrize("events", ["states", "results"])
def test_a_task_notifies_its_webhook_of_no_chunk(events: WebhookEvents) -> None:
    place = Place()
    send(place, WEBHOOK_EXTENSIONS[events].uri)
    place.world.settle()
    kinds = [next(iter(got.body)) for got in place.world.receiver.posts]
    assert kinds == ["task", "statusUpdate", "statusUpdate" if events == "states" else "task"]
