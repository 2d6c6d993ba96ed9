"""Calls the clerk from LiteLLM as a chat model, and prints what comes back."""

import asyncio
import json
import sys
from pathlib import Path

import litellm


async def chat(url: str, key: str, *turns: str, **options):
    roles = ["user", "assistant"] * len(turns)
    messages = [{"role": role, "content": turn} for role, turn in zip(roles, turns, strict=False)]
    return await litellm.acompletion(model="a2a/clerk", api_base=url, api_key=key, messages=messages, **options)


async def main(url: str, slow_url: str, key: str, seen: str) -> None:
    async def converse(agent: str, *turns: str, url: str = url, key: str = key) -> list[str]:
        try:
            choice = (await chat(f"{url}/{agent}", key, *turns)).choices[0]
        except Exception as error:
            return [f"{type(error).__name__}: {error}".partition("\n")[0].replace(url, "")]
        return [choice.message.content, choice.finish_reason]

    async def stream() -> str:
        text = ""
        async for chunk in await chat(f"{url}/clerk", key, f"stream {seen}", stream=True):
            text += chunk.choices[0].delta.content or ""
            if text:
                Path(seen).touch()
        return text

    print(
        json.dumps(
            {
                "answer": await converse("clerk", "answer"),
                "message": await converse("greeter", "hello"),
                "artifacts": await converse("clerk", "write"),
                "artifact and message": await converse("clerk", "report"),
                "stream": await stream(),
                "question": await converse("clerk", "ask"),
                "answered": await converse("clerk", "ask", "Which colour?", "blue"),
                "context": await converse("clerk", "remember door", "I remember it.", "recall"),
                "failure": await converse("clerk", "fail"),
                "refused": await converse("clerk", "answer", key="wrong"),
                "file out": await converse("clerk", "draw"),
                "data out": await converse("clerk", "count"),
                "long work": await converse("clerk", "slow", url=slow_url),
            }
        )
    )


asyncio.run(main(*sys.argv[1:]))
