"""Calls the clerk from Strands, and prints what comes back."""

import asyncio
import json
import sys
from pathlib import Path

import httpx
from a2a.client import ClientConfig
from a2a.types import TaskArtifactUpdateEvent
from strands.agent.a2a_agent import A2AAgent


def remote(url: str, key: str) -> A2AAgent:
    client = httpx.AsyncClient(headers={"X-API-Key": key}, timeout=300)
    return A2AAgent(url, client_config=ClientConfig(httpx_client=client))


async def main(url: str, slow_url: str, key: str, seen: str) -> None:
    async def send(agent: str, *contents: str | list, url: str = url, key: str = key) -> list:
        """The texts, the reason and the state of the last turn."""
        clerk = remote(f"{url}/{agent}", key)
        for content in contents[:-1]:
            await clerk.invoke_async(content)
        result = await clerk.invoke_async(contents[-1])
        return [*texts(result), result.stop_reason, result.state.get("a2a_task_state")]

    async def stream() -> str:
        text = ""
        async for event in remote(f"{url}/clerk", key).stream_async(f"stream {seen}"):
            update = event["event"][1] if "event" in event else None
            if isinstance(update, TaskArtifactUpdateEvent):
                text += update.artifact.parts[0].root.text
                Path(seen).touch()
        return text

    async def refused() -> str:
        try:
            await send("clerk", "answer", key="wrong")
        except Exception as error:
            return f"{type(error).__name__}: {error}".partition("\n")[0].replace(url, "")
        return "not refused"

    document = {"document": {"format": "txt", "name": "letter", "source": {"bytes": b"abc"}}}
    print(
        json.dumps(
            {
                "answer": await send("clerk", "answer"),
                "message": await send("greeter", "hello"),
                "artifacts": await send("clerk", "write"),
                "whole artifacts": await send("whole-clerk", "write"),
                "artifact and message": await send("clerk", "report"),
                "stream": await stream(),
                "question": await send("clerk", "ask"),
                "answered": await send("clerk", "ask", "blue"),
                "context": await send("clerk", "remember door", "recall"),
                "failure": await send("clerk", "fail"),
                "refused": await refused(),
                "file in": await send("clerk", [{"text": "read"}, document]),
                "file out": await send("clerk", "draw"),
                "data out": await send("clerk", "count"),
                "work within a stream": await send("clerk", "slow"),
                "long work": await send("clerk", "slow", url=slow_url),
            }
        )
    )


def texts(result) -> list[str]:
    return [content["text"] for content in result.message["content"]]


asyncio.run(main(*sys.argv[1:]))
