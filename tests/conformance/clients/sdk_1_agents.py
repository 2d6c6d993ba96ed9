"""The official Python SDK for A2A 1.0 drives the shipped agents. Knows nothing of ours but what to ask each for.

``python sdk_1_agents.py <base URL> <webhook> <tokens>`` prints one JSON object: what became of each request.

``tokens`` are those of the webhook, one for each request, with commas between.
"""

import asyncio
import json
import sys
from typing import Any
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as a2a

TEXT = """# Bees in the city

Bees live well in cities. Parks and balconies flower from March to October, and nobody sprays them.

## What a hive needs

A hive needs sun in the morning, shelter from the wind and water nearby.
"""
REQUESTS = {
    "outline": TEXT,
    "document": TEXT,
    "summary": TEXT,
    "orchestrator": TEXT,
    "image": "Generate an image of a sailboat on the ocean.",
    "travel": "Book a flight to Helsinki from Vienna on 2030-02-03",
}


async def ask(http: httpx.AsyncClient, url: str, text: str, webhook: a2a.TaskPushNotificationConfig) -> dict[str, Any]:
    """Streams a request to its end and gets the task then."""
    card = await A2ACardResolver(http, url).get_agent_card()
    client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
    said = a2a.Message(message_id=str(uuid4()), role=a2a.ROLE_USER, parts=[a2a.Part(text=text)])
    request = a2a.SendMessageRequest(message=said)
    request.configuration.task_push_notification_config.CopyFrom(webhook)
    events = [event async for event in client.send_message(request)]
    if events[0].WhichOneof("payload") == "message":
        return {"message": "".join(part.text for part in events[0].message.parts)}
    task = await client.get_task(a2a.GetTaskRequest(id=events[0].task.id))
    return {
        "task": task.id,
        "state": a2a.TaskState.Name(task.status.state),
        "artifacts": [artifact.name for artifact in task.artifacts],
        "media types": sorted({part.media_type for artifact in task.artifacts for part in artifact.parts}),
    }


async def main(base: str, url: str, tokens: str) -> dict[str, Any]:
    """All at once."""
    webhooks = [a2a.TaskPushNotificationConfig(url=url, token=token) for token in tokens.split(",")]
    async with httpx.AsyncClient(timeout=60) as http:
        asked = zip(REQUESTS.items(), webhooks, strict=True)
        found = await asyncio.gather(*(ask(http, f"{base}/{name}", text, hook) for (name, text), hook in asked))
    return dict(zip(REQUESTS, found, strict=True))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))  # noqa: T201
