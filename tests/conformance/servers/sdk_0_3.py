"""An agent on the official Python SDK for A2A 0.3, which does what the first word of a message asks for.

``python sdk_0_3.py <binding> [push]`` prints its base URL. ``GET /ran`` lists the texts of its executions.
"""

import asyncio
import json
import socket
import sys

import httpx
import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, DataPart, Message, Part, Role, TextPart
from a2a.utils import new_task
from fastapi import FastAPI
from starlette.responses import JSONResponse

PAUSE_S = 0.02
RAN: list[str] = []


def text(content: str) -> list[Part]:
    """One part with a text."""
    return [Part(root=TextPart(text=content))]


class Scripted(AgentExecutor):  # type: ignore[misc]
    """``stream 5``, ``ask``, ``auth``, ``fail``, ``reject``, ``raise``, ``message``, ``kinds``, ``slow``, ``hang``."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """One execution."""
        RAN.append(context.get_user_input())
        word, _, rest = context.get_user_input().partition(" ")
        if word == "message":
            await event_queue.enqueue_event(Message(message_id="said", role=Role.agent, parts=text(f"Hello, {rest}")))
            return
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if context.current_task:
            await updater.add_artifact(text(f"{task.id} {task.context_id}"), name="same")
            metadata = json.dumps(context.message.metadata or {})
            await updater.complete(updater.new_agent_message(text(metadata)))
            return
        await updater.start_work()
        await getattr(self, word)(updater, context, rest)

    async def stream(self, updater: TaskUpdater, _: RequestContext, count: str) -> None:
        await updater.start_work(updater.new_agent_message(text("Counting")))
        for number in range(int(count)):
            await asyncio.sleep(PAUSE_S)
            last = number == int(count) - 1
            chunk = {"artifact_id": "lines", "name": "lines.txt", "append": number > 0, "last_chunk": last}
            await updater.add_artifact(text(f"{number}\n"), **chunk)
        await updater.complete(updater.new_agent_message(text("Counted")))

    async def ask(self, updater: TaskUpdater, _: RequestContext, __: str) -> None:
        parts = [*text("Which colour?"), Part(root=DataPart(data={"n": 1}))]
        question = updater.new_agent_message(parts, metadata={"form": "colours"})
        await updater.requires_input(question, final=True)

    async def auth(self, updater: TaskUpdater, _: RequestContext, __: str) -> None:
        await updater.requires_auth(updater.new_agent_message(text("Sign in")), final=True)

    async def fail(self, updater: TaskUpdater, _: RequestContext, why: str) -> None:
        await updater.failed(updater.new_agent_message(text(why)))

    async def reject(self, updater: TaskUpdater, _: RequestContext, why: str) -> None:
        await updater.reject(updater.new_agent_message(text(why)))

    async def kinds(self, updater: TaskUpdater, context: RequestContext, _: str) -> None:
        await updater.add_artifact(context.message.parts, name="copy", metadata={"seen": context.message.metadata})
        await updater.complete()

    async def slow(self, updater: TaskUpdater, _: RequestContext, __: str) -> None:
        await updater.start_work(updater.new_agent_message(text("Digging")))
        await asyncio.sleep(600)

    async def hang(self, updater: TaskUpdater, _: RequestContext, seconds: str) -> None:
        await asyncio.sleep(float(seconds))
        await updater.add_artifact(text("late"), name="late.txt")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancels any task."""
        RAN.append("cancel")
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


setattr(Scripted, "raise", lambda *_: 1 / 0)


def main(binding: str, *options: str) -> None:
    """Serves it on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="Scripted",
        description="Does what it is told",
        version="1",
        url=url,
        preferred_transport=binding,
        capabilities=AgentCapabilities(streaming="silent" not in options, push_notifications="push" in options),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="do", name="Do", description="Does it", tags=["test"])],
    )
    configs = InMemoryPushNotificationConfigStore()
    push = {"push_config_store": configs, "push_sender": BasePushNotificationSender(httpx.AsyncClient(), configs)}
    handler = DefaultRequestHandler(Scripted(), InMemoryTaskStore(), **push if "push" in options else {})
    app = FastAPI()
    app.add_api_route("/ran", lambda: JSONResponse(RAN))
    inner = (
        A2AStarletteApplication(card, handler).build()
        if binding == "JSONRPC"
        else A2ARESTFastAPIApplication(card, handler).build()
    )
    app.mount("/", inner)
    print(url, flush=True)  # noqa: T201
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    asyncio.run(server.serve(sockets=[listener]))


if __name__ == "__main__":
    main(*sys.argv[1:])
