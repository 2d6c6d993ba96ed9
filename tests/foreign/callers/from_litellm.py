"""Calls the clerk from LiteLLM's functions for agents, and prints what comes back."""

import asyncio
import json
import sys
from pathlib import Path
from uuid import uuid4

from a2a.compat.v0_3.types import MessageSendParams, SendMessageRequest, SendStreamingMessageRequest
from a2a.types import CancelTaskRequest, GetTaskRequest
from litellm.a2a_protocol import asend_message, asend_message_streaming, create_a2a_client

FILE = {"kind": "file", "file": {"bytes": "YWJj", "mimeType": "application/octet-stream"}}


async def connect(url: str, key: str, *, streaming: bool = False):
    return await create_a2a_client(url, extra_headers={"X-API-Key": key}, streaming=streaming)


async def send(client, *parts: dict, **ids: str) -> dict:
    message = {"role": "user", "messageId": uuid4().hex, "parts": parts, **ids}
    request = SendMessageRequest(id=uuid4().hex, params=MessageSendParams(message=message))
    response = await asend_message(a2a_client=client, request=request)
    return response.model_dump(mode="json", exclude_none=True)["result"]


def text(words: str) -> dict:
    return {"kind": "text", "text": words}


async def main(url: str, slow_url: str, key: str, seen: str) -> None:
    async def stream() -> str:
        message = {"role": "user", "messageId": uuid4().hex, "parts": [text(f"stream {seen}")]}
        request = SendStreamingMessageRequest(id=uuid4().hex, params=MessageSendParams(message=message))
        told = ""
        client = await connect(f"{url}/clerk", key, streaming=True)
        async for event in asend_message_streaming(a2a_client=client, request=request):
            result = event.model_dump(mode="json", exclude_none=True)["result"]
            if result["kind"] == "artifact-update":
                told += result["artifact"]["parts"][0]["text"]
                Path(seen).touch()
        return told

    async def refused() -> str:
        try:
            await send(await connect(f"{url}/clerk", "wrong"), text("answer"))
        except Exception as error:
            return f"{type(error).__name__}: {error}".partition("\n")[0].replace(url, "")
        return "not refused"

    clerk = await connect(f"{url}/clerk", key)
    asked = await send(clerk, text("ask"))
    first = await send(clerk, text("remember door"))
    impatient = await connect(f"{slow_url}/clerk", key)
    waiting = await send(impatient, text("wait"))
    context = impatient._litellm_call_context
    canceled = await impatient.cancel_task(CancelTaskRequest(id=waiting["id"]), context=context)
    slow = await send(impatient, text("slow"))
    while (task := await impatient.get_task(GetTaskRequest(id=slow["id"]), context=context)).status.state < 3:
        await asyncio.sleep(0.1)
    print(
        json.dumps(
            {
                "answer": texts(await send(clerk, text("answer"))),
                "message": texts(await send(await connect(f"{url}/greeter", key), text("hello"))),
                "artifacts": texts(await send(clerk, text("write"))),
                "artifact and message": texts(await send(clerk, text("report"))),
                "stream": await stream(),
                "question": texts(asked),
                "answered": texts(await send(clerk, text("blue"), taskId=asked["id"], contextId=asked["contextId"])),
                "context": texts(await send(clerk, text("recall"), contextId=first["contextId"])),
                "failure": texts(await send(clerk, text("fail"))),
                "refused": await refused(),
                "cancel": canceled.status.state,
                "file in": texts(await send(clerk, text("read"), FILE)),
                "file out": parts(await send(clerk, text("draw"))),
                "data out": parts(await send(clerk, text("count"))),
                "long work": [*texts(slow), task.status.message.parts[0].text],
            }
        )
    )


def parts(result: dict) -> list[dict]:
    message = result if result["kind"] == "message" else result["status"].get("message", {})
    return [part for holder in [*result.get("artifacts", []), message] for part in holder.get("parts", [])]


def texts(result: dict) -> list[str]:
    return [*(part["text"] for part in parts(result) if part["kind"] == "text"), result.get("status", {}).get("state")]


asyncio.run(main(*sys.argv[1:]))
