"""An agent on the official Python SDK for A2A 1.0, which does what the first word of a message asks for.

``python sdk_1.py <binding> [push]`` prints its base URL. ``GET /ran`` lists the texts of its executions.
"""

import asyncio
import json
import socket
import sys
from typing import Any

import httpx
import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Message, Part, Role
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

PAUSE_S = 0.02
RAN: list[str] = []


def struct(**members: Any) -> Struct:
    """An object of JSON."""
    return ParseDict(members, Struct())


class Scripted(AgentExecutor):  # type: ignore[misc]
    """``stream 5``, ``ask``, ``auth``, ``fail``, ``reject``, ``raise``, ``message``, ``kinds``, ``slow``, ``hang``."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """One execution."""
        RAN.append(context.get_user_input())
        word, _, rest = context.get_user_input().partition(" ")
        if word == "message":
            said = Message(message_id="said", role=Role.ROLE_AGENT, parts=[Part(text=f"Hello, {rest}")])
            await event_queue.enqueue_event(said)
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if context.current_task:
            said = MessageToDict(context.message)
            await updater.add_artifact([Part(text=f"{task.id} {task.context_id}")], name="same")
            await updater.complete(updater.new_agent_message([Part(text=json.dumps(said.get("metadata", {})))]))
            return
        await updater.start_work()
        await getattr(self, word)(updater, context, rest)

    async def stream(self, updater: TaskUpdater, _: RequestContext, count: str) -> None:
        await updater.start_work(updater.new_agent_message([Part(text="Counting")]))
        for number in range(int(count)):
            await asyncio.sleep(PAUSE_S)
            last = number == int(count) - 1
            chunk = {"artifact_id": "lines", "name": "lines.txt", "append": number > 0, "last_chunk": last}
            await updater.add_artifact([Part(text=f"{number}\n")], **chunk)
        await updater.complete(updater.new_agent_message([Part(text="Counted")]))

    async def ask(self, updater: TaskUpdater, _: RequestContext, __: str) -> None:
        question = updater.new_agent_message([Part(text="Which colour?"), Part(data={"struct_value": struct(n=1)})])
        question.metadata.CopyFrom(struct(form="colours"))
        await updater.requires_input(question)

    async def auth(self, updater: TaskUpdater, _: RequestContext, __: str) -> None:
        await updater.requires_auth(updater.new_agent_message([Part(text="Sign in")]))

    async def fail(self, updater: TaskUpdater, _: RequestContext, why: str) -> None:
        await updater.failed(updater.new_agent_message([Part(text=why)]))

    async def reject(self, updater: TaskUpdater, _: RequestContext, why: str) -> None:
        await updater.reject(updater.new_agent_message([Part(text=why)]))

    async def kinds(self, updater: TaskUpdater, context: RequestContext, _: str) -> None:
        parts = [*context.message.parts]
        await updater.add_artifact(parts, name="copy", metadata={"seen": MessageToDict(context.message)["metadata"]})
        await updater.complete()

    async def slow(self, updater: TaskUpdater, _: RequestContext, __: str) -> None:
        await updater.start_work(updater.new_agent_message([Part(text="Digging")]))
        await asyncio.sleep(600)

    async def hang(self, updater: TaskUpdater, _: RequestContext, seconds: str) -> None:
        await asyncio.sleep(float(seconds))
        await updater.add_artifact([Part(text="late")], name="late.txt")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancels any task."""
        RAN.append("cancel")
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


setattr(Scripted, "raise", lambda *_: 1 / 0)


async def ran(_: Request) -> JSONResponse:
    """What was executed."""
    return JSONResponse(RAN)


def main(binding: str, *options: str) -> None:
    """Serves it on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="Scripted",
        description="Does what it is told",
        version="1",
        capabilities=AgentCapabilities(streaming="silent" not in options, push_notifications="push" in options),
        supported_interfaces=[AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")],
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="do", name="Do", description="Does it", tags=["test"])],
    )
    configs = InMemoryPushNotificationConfigStore()
    push = {"push_config_store": configs, "push_sender": BasePushNotificationSender(httpx.AsyncClient(), configs)}
    handler = DefaultRequestHandler(Scripted(), InMemoryTaskStore(), card, **push if "push" in options else {})
    routes = create_jsonrpc_routes(handler, "/") if binding == "JSONRPC" else create_rest_routes(handler)
    app = Starlette(routes=[Route("/ran", ran), *create_agent_card_routes(card), *routes])
    print(url, flush=True)  # noqa: T201
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    asyncio.run(server.serve(sockets=[listener]))


if __name__ == "__main__":
    main(*sys.argv[1:])
