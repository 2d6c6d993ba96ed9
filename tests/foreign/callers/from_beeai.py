"""Calls the clerk from the BeeAI framework, and prints what comes back."""

import asyncio
import json
import sys
import warnings
from pathlib import Path

import a2a.types as a2a
from beeai_framework.adapters.a2a.agents import A2AAgent
from beeai_framework.adapters.a2a.agents.agent import A2AAgentParameters, HttpxAsyncClientParameters
from beeai_framework.memory import UnconstrainedMemory


def remote(url: str, key: str) -> A2AAgent:
    client = HttpxAsyncClientParameters(headers={"X-API-Key": key})
    return A2AAgent(url=url, memory=UnconstrainedMemory(), parameters=A2AAgentParameters(httpx_async_client=client))


async def main(url: str, slow_url: str, key: str, seen: str) -> None:
    async def converse(agent: str, *contents, url: str = url, key: str = key) -> list:
        """The texts of the last turn, and the state of its task."""
        clerk = remote(f"{url}/{agent}", key)
        for content in contents[:-1]:
            await clerk.run(content)
        output = await clerk.run(contents[-1])
        return [*texts(output), state(output)]

    async def stream() -> str:
        text = ""

        def hear(data, _) -> None:
            nonlocal text
            update = data.value[1]
            if isinstance(update, a2a.TaskArtifactUpdateEvent):
                text += update.artifact.parts[0].root.text
                Path(seen).touch()

        await remote(f"{url}/clerk", key).run(f"stream {seen}").on("update", hear)
        return text

    async def refused() -> str:
        try:
            await converse("clerk", "answer", key="wrong")
        except Exception as error:
            return f"{type(error).__name__}: {error}".partition("\n")[0].replace(url, "")
        return "not refused"

    async def out(text: str) -> list:
        return [content.model_dump() for content in (await remote(f"{url}/clerk", key).run(text)).output[-1].content]

    file = a2a.FilePart(file=a2a.FileWithBytes(bytes="YWJj", mime_type="application/octet-stream"))
    parts = [a2a.Part(root=a2a.TextPart(text="read")), a2a.Part(root=file)]
    print(
        json.dumps(
            {
                "answer": await converse("clerk", "answer"),
                "message": await converse("greeter", "hello"),
                "artifacts": await converse("clerk", "write"),
                "whole artifacts": await converse("whole-clerk", "write"),
                "artifact and message": await converse("clerk", "report"),
                "stream": await stream(),
                "question": await converse("clerk", "ask"),
                "answered": await converse("clerk", "ask", "blue"),
                "context": await converse("clerk", "remember door", "recall"),
                "failure": await converse("clerk", "fail"),
                "refused": await refused(),
                "file in": await converse("clerk", a2a.Message(role="user", message_id="file", parts=parts)),
                "file out": await out("draw"),
                "data out": await out("count"),
                "work within a stream": await converse("clerk", "slow"),
                "long work": await converse("clerk", "slow", url=slow_url),
            }
        )
    )


def texts(output) -> list[str]:
    return [content.text for message in output.output for content in message.content if content.type == "text"]


def state(output) -> str | None:
    return output.event[0].status.state.value if isinstance(output.event, tuple) else None


warnings.simplefilter("ignore")
asyncio.run(main(*sys.argv[1:]))
