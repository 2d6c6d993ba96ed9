"""The official Python SDK for A2A 0.3 as a client. Runs in an environment of its own, knows nothing of ours.

``python sdk_0_3.py <agent's URL> <JSONRPC|HTTP+JSON> <webhook> <streamed|buffered>`` prints one JSON object: what came
of each deed. A place that is ``buffered`` tells a stream when it has ended.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
from a2a import types as a2a
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory


def message(prefix: str, **fields: Any) -> Any:
    part = a2a.Part(root=a2a.TextPart(text="hello"))
    return a2a.Message(message_id=f"{prefix}-{uuid4()}", role=a2a.Role.user, parts=[part], **fields)


def text(parts: list[Any]) -> str:
    return "".join(part.root.text for part in parts)


def told(event: Any) -> list[str]:
    """What an event is, in two words. The SDK folds a stream: each comes with the task as it then is."""
    if isinstance(event, a2a.Message):
        return ["message", text(event.parts)]
    task, update = event
    if isinstance(update, a2a.TaskArtifactUpdateEvent):
        return ["artifact", text(update.artifact.parts)]
    final = update.final if isinstance(update, a2a.TaskStatusUpdateEvent) else False
    return ["status" if update else "task", task.status.state.value + (", final" if final else "")]


async def all_of(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]


async def all_told(events: AsyncIterator[Any]) -> list[list[str]]:
    """What each event is when it comes: the SDK writes what follows into the same task."""
    return [told(event) async for event in events]


async def sends(client: Any, asking: Any) -> dict[str, Any]:
    ((whole, _),) = await all_of(asking.send_message(message("tck-complete-task")))
    (said,) = await all_of(asking.send_message(message("tck-message-response")))
    streamed = await all_told(client.send_message(message("tck-stream-artifact-chunked")))
    asked = await all_told(client.send_message(message("tck-input-required")))
    return {
        "send": [whole.status.state.value, text(whole.status.message.parts)],
        "message": told(said),
        "stream": streamed,
        "stream of a question": asked[-1],
    }


async def asks(client: Any, asking: Any, polling: Any, pace: str) -> dict[str, Any]:
    ((opened, _),) = await all_of(asking.send_message(message("tck-input-required")))
    ((working, _),) = await all_of(polling.send_message(message("test-resubscribe-message-id")))
    at_once = working.status.state.value
    watched = working if pace == "buffered" else opened
    subscription = client.resubscribe(a2a.TaskIdParams(id=watched.id))
    first = told(await anext(subscription))
    rest = asyncio.ensure_future(all_told(subscription))
    ((ended, _),) = await all_of(asking.send_message(message("tck-complete-task", task_id=opened.id)))
    got = await asking.get_task(a2a.TaskQueryParams(id=opened.id, history_length=1))
    return {
        "at once": at_once,
        "asked": opened.status.state.value,
        "subscription": [first, *await rest],
        "answered": ended.status.state.value,
        "history": [one.role.value for one in got.history],
    }


async def pushes(asking: Any, pushing: Any) -> dict[str, Any]:
    ((opened, _),) = await all_of(pushing.send_message(message("tck-input-required")))
    other = a2a.PushNotificationConfig(id="other", url="https://example.com/hook")
    set_ = await asking.set_task_callback(
        a2a.TaskPushNotificationConfig(task_id=opened.id, push_notification_config=other)
    )
    got = await asking.get_task_callback(
        a2a.GetTaskPushNotificationConfigParams(id=opened.id, push_notification_config_id="mine")
    )
    canceled = await asking.cancel_task(a2a.TaskIdParams(id=opened.id))
    return {
        "task with a webhook": opened.id,
        "set": set_.push_notification_config.id,
        "webhook": got.push_notification_config.model_dump(exclude_none=True),
        "cancel": canceled.status.state.value,
    }


async def refusals(asking: Any, client: Any) -> dict[str, Any]:
    ((ended, _),) = await all_of(asking.send_message(message("tck-complete-task")))
    wrong = {
        "unknown task": asking.get_task(a2a.TaskQueryParams(id="nowhere")),
        "cancel of an ended task": asking.cancel_task(a2a.TaskIdParams(id=ended.id)),
        "subscription to an ended task": all_of(client.resubscribe(a2a.TaskIdParams(id=ended.id))),
        "message to an ended task": all_of(asking.send_message(message("x", task_id=ended.id))),
    }
    texts = {}
    for name, deed in wrong.items():
        try:
            await deed
            texts[name] = "served"
        except Exception as error:  # noqa: BLE001 - its text is what is asked for
            texts[name] = f"{type(error).__name__}: {error}"
    return texts


async def main(url: str, binding: str, webhook: str, pace: str) -> dict[str, Any]:
    async with httpx.AsyncClient(timeout=30) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        card.url = url  # where a test has put the deployment; the card says where its users find it
        for interface in card.additional_interfaces or []:
            interface.url = url
        config = a2a.PushNotificationConfig(id="mine", url=webhook, token="a-token-of-the-client")
        client, asking, pushing, polling = (
            ClientFactory(
                ClientConfig(
                    streaming=streaming,
                    polling=polling,
                    httpx_client=http,
                    supported_transports=[binding],
                    push_notification_configs=configs,
                )
            ).create(card)
            for streaming, configs, polling in (
                (True, [], False),
                (False, [], False),
                (False, [config], False),
                (False, [], True),
            )
        )
        return {
            "card": card.name,
            **await sends(client, asking),
            **await asks(client, asking, polling, pace),
            **await pushes(asking, pushing),
            "refusals": await refusals(asking, client),
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))  # noqa: T201
