"""A mobile app, as far as A2A goes: the official SDK with the user's own sign-in. Runs in an environment of its own.

``app.py AGENT_URL TOKEN OTHER_TOKEN``: reads a push configuration, sends a message with it and prints the task's id;
then reads a task's id from a push and prints what ``GetTask`` gives to the user, and to the other user.
"""

import asyncio
import json
import sys
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as a2a


async def connect(url: str, token: str) -> Any:
    http = httpx.AsyncClient(timeout=120, headers={"Authorization": f"Bearer {token}"})
    card = await A2ACardResolver(http, url).get_agent_card()
    return ClientFactory(ClientConfig(streaming=False, httpx_client=http)).create(card)


async def send(client: Any, config: dict[str, str]) -> str:
    message = a2a.Message(message_id="m-1", role=a2a.ROLE_USER, parts=[a2a.Part(text="The sea")])
    request = a2a.SendMessageRequest(message=message)
    request.configuration.return_immediately = True
    request.configuration.task_push_notification_config.CopyFrom(a2a.TaskPushNotificationConfig(**config))
    (event,) = [event async for event in client.send_message(request)]
    return str(event.task.id)


async def read(client: Any, task_id: str) -> list[str]:
    try:
        task = await client.get_task(a2a.GetTaskRequest(id=task_id))
    except Exception as error:  # noqa: BLE001 - its class is what is asked for
        return [type(error).__name__]
    text = "".join(part.text for artifact in task.artifacts for part in artifact.parts)
    return [a2a.TaskState.Name(task.status.state), text]


async def main(url: str, token: str, other: str) -> None:
    user, stranger = await connect(url, token), await connect(url, other)
    say(await send(user, json.loads(sys.stdin.readline())))
    pushed = json.loads(sys.stdin.readline())
    say([await read(user, pushed), await read(stranger, pushed)])


def say(value: object) -> None:
    print(json.dumps(value), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
