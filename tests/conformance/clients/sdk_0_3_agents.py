"""The official Python SDK for A2A 0.3 drives two shipped agents, which report to a webhook.

``python sdk_0_3_agents.py <base URL> <webhook> <tokens>`` prints one JSON object: what became of each request.

``tokens`` are those of the webhook, one for each request, with commas between.
"""

import asyncio
import json
import sys
from typing import Any
from uuid import uuid4

import httpx
from a2a import types as a2a
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory

REQUESTS = {"document": "Bees live well in cities.", "travel": "Book a flight to Helsinki from Vienna on 2030-02-03"}


async def ask(http: httpx.AsyncClient, url: str, text: str, webhook: a2a.PushNotificationConfig) -> dict[str, Any]:
    """Streams a request to its end and gets the task then."""
    card = await A2ACardResolver(http, url).get_agent_card()
    client = ClientFactory(ClientConfig(httpx_client=http, push_notification_configs=[webhook])).create(card)
    part = a2a.Part(root=a2a.TextPart(text=text))
    said = a2a.Message(message_id=str(uuid4()), role=a2a.Role.user, parts=[part])
    events = [event async for event in client.send_message(said)]
    task = await client.get_task(a2a.TaskQueryParams(id=events[0][0].id))
    return {"task": task.id, "state": task.status.state.value, "artifacts": [one.name for one in task.artifacts or []]}


async def main(base: str, url: str, tokens: str) -> dict[str, Any]:
    """All at once."""
    webhooks = [a2a.PushNotificationConfig(url=url, token=token) for token in tokens.split(",")]
    async with httpx.AsyncClient(timeout=60) as http:
        asked = zip(REQUESTS.items(), webhooks, strict=True)
        found = await asyncio.gather(*(ask(http, f"{base}/{name}", text, hook) for (name, text), hook in asked))
    return dict(zip(REQUESTS, found, strict=True))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))  # noqa: T201
