"""Calls the clerk from Microsoft's Agent Framework, and prints what comes back."""

import asyncio
import json
import sys
from pathlib import Path

import httpx
from a2a.client import A2ACardResolver
from a2a.types import CancelTaskRequest
from agent_framework import Content, Message
from agent_framework_a2a import A2AAgent


async def remote(url: str, key: str) -> A2AAgent:
    client = httpx.AsyncClient(headers={"X-API-Key": key}, timeout=300)
    card = await A2ACardResolver(client, url).get_agent_card()
    return A2AAgent(agent_card=card, http_client=client)


async def send(agent: A2AAgent, content, session):
    return await agent.run(content, session=session, stream=True).get_final_response()


async def main(url: str, slow_url: str, key: str, seen: str) -> None:
    async def converse(agent: str, *contents, url: str = url, stream: bool = True) -> list:
        """The texts of the last turn, and the state of its task."""
        clerk = await remote(f"{url}/{agent}", key)
        session = clerk.create_session()
        for content in contents[:-1]:
            await send(clerk, content, session)
        run = send(clerk, contents[-1], session) if stream else clerk.run(contents[-1], session=session)
        response = await run
        return [*texts(response), state(session)]

    async def stream() -> str:
        text = ""
        async for update in (await remote(f"{url}/clerk", key)).run(f"stream {seen}", stream=True):
            text += update.text
            Path(seen).touch()
        return text

    async def refused() -> str:
        try:
            await (await remote(f"{url}/clerk", "wrong")).run("answer")
        except Exception as error:
            return f"{type(error).__name__}: {error}".partition("\n")[0].replace(url, "")
        return "not refused"

    file = Message("user", [Content.from_text("read"), Content.from_data(b"abc", "application/octet-stream")])
    print(
        json.dumps(
            {
                "answer": await converse("clerk", "answer"),
                "answer without a stream": await converse("clerk", "answer", stream=False),
                "message": await converse("greeter", "hello"),
                "artifacts": await converse("clerk", "write"),
                "artifacts without a stream": await converse("clerk", "write", stream=False),
                "whole artifacts": await converse("whole-clerk", "write"),
                "artifact and message": await converse("clerk", "report"),
                "stream": await stream(),
                "question": await question(await remote(f"{url}/clerk", key)),
                "answered": await converse("clerk", "ask", "blue"),
                "context": await converse("clerk", "remember door", "recall"),
                "failure": await converse("clerk", "fail"),
                "failure without a stream": await converse("clerk", "fail", stream=False),
                "refused": await refused(),
                "cancel": await canceled(await remote(f"{url}/clerk", key)),
                "file in": await converse("clerk", file),
                "file out": await out(await remote(f"{url}/clerk", key), "draw"),
                "data out": await out(await remote(f"{url}/clerk", key), "count"),
                "as a tool": [
                    c.text
                    for c in await (await remote(f"{url}/clerk", key))
                    .as_tool(arg_name="text")
                    .invoke(arguments={"text": "answer"})
                ],
                "work within a stream": await converse("clerk", "slow"),
                "long work": await converse("clerk", "slow", url=slow_url),
                "long work in the background": await in_the_background(await remote(f"{slow_url}/clerk", key)),
            }
        )
    )


async def question(clerk: A2AAgent) -> list:
    response = await send(clerk, "ask", clerk.create_session())
    return [*(request.user_input_request for request in response.user_input_requests), *texts(response)]


async def out(clerk: A2AAgent, text: str) -> list:
    response = await send(clerk, text, clerk.create_session())
    return [[c.type, c.media_type, c.text or c.uri] for m in response.messages for c in m.contents]


async def canceled(clerk: A2AAgent) -> int:
    response = await clerk.run("wait", background=True)
    task = await clerk.client.cancel_task(CancelTaskRequest(id=response.continuation_token["task_id"]))
    return task.status.state


async def in_the_background(clerk: A2AAgent) -> list:
    response = await clerk.run("slow", background=True)
    while token := response.continuation_token:
        response = await clerk.poll_task(token)
    return texts(response)


def texts(response) -> list[str]:
    return [content.text for message in response.messages for content in message.contents if content.type == "text"]


def state(session) -> int | None:
    return (session.service_session_id or {}).get("task_state")


asyncio.run(main(*sys.argv[1:]))
