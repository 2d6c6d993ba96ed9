"""Calls the clerk from Google's ADK, and prints what comes back."""

import asyncio
import json
import re
import sys
import warnings
from pathlib import Path

from fastapi.openapi.models import APIKey
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes
from google.adk.runners import InMemoryRunner
from google.genai import types


def remote(url: str, key: str) -> RemoteA2aAgent:
    return RemoteA2aAgent(
        "clerk",
        f"{url}/.well-known/agent-card.json",
        auth_scheme=APIKey.model_validate({"in": "header", "name": "X-API-Key"}),
        auth_credential=AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key=key),
    )


async def send(runner: InMemoryRunner, session: str, *parts: types.Part):
    message = types.Content(role="user", parts=list(parts))
    async for event in runner.run_async(user_id="me", session_id=session, new_message=message):
        yield event


async def main(url: str, slow_url: str, key: str, seen: str) -> None:
    async def converse(agent: str, *texts: str, url: str = url, key: str = key) -> list:
        """The events of the last turn."""
        runner = InMemoryRunner(remote(f"{url}/{agent}", key))
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id="me")
        for text in texts[:-1]:
            [event async for event in send(runner, session.id, types.Part(text=text))]
        return [event async for event in send(runner, session.id, types.Part(text=texts[-1]))]

    async def stream() -> str:
        runner = InMemoryRunner(remote(f"{url}/clerk", key))
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id="me")
        text = ""
        async for event in send(runner, session.id, types.Part(text=f"stream {seen}")):
            text += "".join(texts([event], partial=True))
            if text:
                Path(seen).touch()
        return text

    async def read() -> list[str]:
        runner = InMemoryRunner(remote(f"{url}/clerk", key))
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id="me")
        file = types.Part.from_bytes(data=b"abc", mime_type="application/octet-stream")
        return texts([event async for event in send(runner, session.id, types.Part(text="read"), file)])

    failed = await converse("clerk", "fail")
    question = await converse("clerk", "ask")
    print(
        json.dumps(
            {
                "answer": texts(await converse("clerk", "answer")),
                "message": texts(await converse("greeter", "hello")),
                "artifacts": texts(await converse("clerk", "write")),
                "whole artifacts": texts(await converse("whole-clerk", "write")),
                "artifact and message": texts(await converse("clerk", "report")),
                "stream": await stream(),
                "question": [call.args for event in question for call in event.get_function_calls()],
                "answered": texts(await converse("clerk", "ask", "blue")),
                "context": texts(await converse("clerk", "remember door", "recall")),
                "failure": [*texts(failed), failed[-1].error_message, state(failed[-1])],
                "refused": [error(event, url) for event in await converse("clerk", "answer", key="wrong")],
                "file in": await read(),
                "file out": [part.inline_data.mime_type for part in parts(await converse("clerk", "draw"))],
                "data out": [part.inline_data.data.decode() for part in parts(await converse("clerk", "count"))],
                "work within a stream": texts(await converse("clerk", "slow")),
                "long work": [error(event, slow_url) for event in await converse("clerk", "slow", url=slow_url)],
            }
        )
    )


def parts(events: list) -> list:
    return [part for event in events if event.content and not event.partial for part in event.content.parts]


def texts(events: list, *, partial: bool = False) -> list[str]:
    """The texts of whole events, or of all, without thoughts."""
    kept = [event for event in events if event.content and (partial or not event.partial)]
    return [part.text for event in kept for part in event.content.parts if part.text and not part.thought]


def error(event, url: str) -> str | None:
    """The first line of an event's error, without what differs each time."""
    if event.error_message is None:
        return None
    line = event.error_message.partition("\n")[0].replace(url, "")
    return re.sub(r"[0-9a-f-]{36}", "TASK", line)


def state(event) -> str:
    return event.custom_metadata["a2a:response"]["status"]["state"]


warnings.simplefilter("ignore")
asyncio.run(main(*sys.argv[1:]))
