"""The official Python SDK for A2A 1.0 as a client. Runs in an environment of its own, knows nothing of ours.

``python sdk_1.py <agent's URL> <JSONRPC|HTTP+JSON> <webhook> <streamed|buffered>`` prints one JSON object: what came
of each deed. A place that is ``buffered`` tells a stream when it has ended.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as a2a
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier
from google.protobuf.json_format import MessageToDict
from jwt.api_jwk import PyJWK


def key_of(kid: str | None, jku: str | None) -> PyJWK:
    """From the deployment that this client was told of: the ``jku`` of a card is a hint, which its forger writes."""
    del jku
    deployment = sys.argv[1].rpartition("/")[0]
    keys = {key["kid"]: key for key in httpx.get(f"{deployment}/.well-known/jwks.json").json()["keys"]}
    return PyJWK(keys[kid])


def message(prefix: str, **fields: Any) -> Any:
    said = a2a.Message(message_id=f"{prefix}-{uuid4()}", role=a2a.ROLE_USER, parts=[a2a.Part(text="hello")], **fields)
    return a2a.SendMessageRequest(message=said)


def returning(request: Any) -> Any:
    """The same request, answered as soon as there is a task."""
    request.configuration.return_immediately = True
    return request


def told(event: Any) -> list[str]:
    """What a stream's event is, in two words."""
    kind = event.WhichOneof("payload")
    if kind == "task":
        return [kind, a2a.TaskState.Name(event.task.status.state)]
    if kind == "status_update":
        return [kind, a2a.TaskState.Name(event.status_update.status.state)]
    return [kind, "".join(part.text for part in (event.artifact_update.artifact or event.message).parts)]


async def all_of(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]


async def card(url: str, http: httpx.AsyncClient) -> dict[str, Any]:
    verify = create_signature_verifier(key_of, ["ES256"])
    found = await A2ACardResolver(http, url).get_agent_card(signature_verifier=verify)
    found.description += "!"
    try:
        verify(found)
    except InvalidSignaturesError:
        return {"name": found.name, "altered": "refused"}
    return {"name": found.name, "altered": "accepted"}


async def sends(client: Any, asking: Any) -> dict[str, Any]:
    (whole,) = await all_of(asking.send_message(message("tck-complete-task")))
    (said,) = await all_of(asking.send_message(message("tck-message-response")))
    (at_once,) = await all_of(asking.send_message(returning(message("tck-input-required"))))
    file = a2a.SendMessageRequest(message=message("tck-artifact-file").message)
    (made,) = await all_of(asking.send_message(file))
    streamed = await all_of(client.send_message(message("tck-stream-artifact-chunked")))
    single = await all_of(client.send_message(message("tck-message-response")))
    return {
        "send": [*told(whole), whole.task.status.message.parts[0].text],
        "message": said.message.parts[0].text,
        "at once": a2a.TaskState.Name(at_once.task.status.state),
        "file": made.task.artifacts[0].parts[0].raw.decode(),
        "stream": [told(event) for event in streamed],
        "stream of a message": [event.WhichOneof("payload") for event in single],
    }


async def asks(client: Any, asking: Any, pace: str) -> dict[str, Any]:
    (opened,) = await all_of(asking.send_message(message("tck-input-required")))
    task_id = watched = opened.task.id
    if pace == "buffered":
        (working,) = await all_of(asking.send_message(returning(message("test-resubscribe-message-id"))))
        watched = working.task.id
    subscription = client.subscribe(a2a.SubscribeToTaskRequest(id=watched))
    first = await anext(subscription)
    rest = asyncio.ensure_future(all_of(subscription))
    (ended,) = await all_of(asking.send_message(message("tck-complete-task", task_id=task_id)))
    got = await asking.get_task(a2a.GetTaskRequest(id=task_id, history_length=1))
    return {
        "asked": told(opened),
        "subscription": [told(event) for event in [first, *await rest]],
        "answered": told(ended),
        "history": [one.role for one in got.history] == [a2a.ROLE_USER],
    }


async def lists(asking: Any) -> dict[str, Any]:
    context = f"context-{uuid4()}"
    for prefix in ("tck-complete-task", "tck-reject-task", "tck-input-required"):
        await all_of(asking.send_message(message(prefix, context_id=context)))
    first = await asking.list_tasks(a2a.ListTasksRequest(context_id=context, page_size=2))
    second = await asking.list_tasks(
        a2a.ListTasksRequest(context_id=context, page_size=2, page_token=first.next_page_token)
    )
    waiting = await asking.list_tasks(
        a2a.ListTasksRequest(context_id=context, status=a2a.TASK_STATE_INPUT_REQUIRED, include_artifacts=True)
    )
    canceled = await asking.cancel_task(a2a.CancelTaskRequest(id=waiting.tasks[0].id))
    return {
        "list": [a2a.TaskState.Name(task.status.state) for task in [*first.tasks, *second.tasks]],
        "total": first.total_size,
        "waiting": len(waiting.tasks),
        "cancel": a2a.TaskState.Name(canceled.status.state),
    }


async def pushes(asking: Any, webhook: str) -> dict[str, Any]:
    config = a2a.TaskPushNotificationConfig(
        id="mine",
        url=webhook,
        token="a-token-of-the-client",
        authentication=a2a.AuthenticationInfo(scheme="Bearer", credentials="a-secret"),
    )
    request = message("tck-input-required")
    request.configuration.task_push_notification_config.CopyFrom(config)
    (opened,) = await all_of(asking.send_message(request))
    task_id = opened.task.id
    created = await asking.create_task_push_notification_config(
        a2a.TaskPushNotificationConfig(task_id=task_id, url="https://example.com/hook")
    )
    got = await asking.get_task_push_notification_config(
        a2a.GetTaskPushNotificationConfigRequest(task_id=task_id, id="mine")
    )
    listed = await asking.list_task_push_notification_configs(
        a2a.ListTaskPushNotificationConfigsRequest(task_id=task_id)
    )
    await asking.delete_task_push_notification_config(
        a2a.DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=created.id)
    )
    left = await asking.list_task_push_notification_configs(a2a.ListTaskPushNotificationConfigsRequest(task_id=task_id))
    return {
        "task with a webhook": task_id,
        "webhook": MessageToDict(got),
        "webhooks": len(listed.configs),
        "left": [one.id for one in left.configs],
    }


async def refusals(asking: Any, client: Any) -> dict[str, Any]:
    (ended,) = await all_of(asking.send_message(message("tck-complete-task")))
    wrong = {
        "unknown task": asking.get_task(a2a.GetTaskRequest(id="nowhere")),
        "cancel of an ended task": asking.cancel_task(a2a.CancelTaskRequest(id=ended.task.id)),
        "subscription to an ended task": all_of(client.subscribe(a2a.SubscribeToTaskRequest(id=ended.task.id))),
        "message to an ended task": all_of(asking.send_message(message("x", task_id=ended.task.id))),
        "extended card": asking.get_extended_agent_card(a2a.GetExtendedAgentCardRequest()),
    }
    names = {}
    for name, deed in wrong.items():
        try:
            await deed
            names[name] = "served"
        except Exception as error:  # noqa: BLE001 - its class is what is asked for
            names[name] = type(error).__name__
    return names


async def main(url: str, binding: str, webhook: str, pace: str) -> dict[str, Any]:
    async with httpx.AsyncClient(timeout=30) as http:
        found = await A2ACardResolver(http, url).get_agent_card()
        for interface in found.supported_interfaces:
            interface.url = url  # where a test has put the deployment; the card says where its users find it
        client, asking = (
            ClientFactory(
                ClientConfig(streaming=streaming, httpx_client=http, supported_protocol_bindings=[binding])
            ).create(found)
            for streaming in (True, False)
        )
        return {
            "card": await card(url, http),
            **await sends(client, asking),
            **await asks(client, asking, pace),
            **await lists(asking),
            **await pushes(asking, webhook),
            "refusals": await refusals(asking, client),
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))  # noqa: T201
