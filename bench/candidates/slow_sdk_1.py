"""An agent of a2a-sdk 1.x that takes ``SECONDS``, with the SDK's default card: neither webhooks nor streams.

With ``ACCEPTS_WEBHOOKS`` it stores webhooks and never calls one: the SDK's handler without a sender.
"""

import asyncio
import os
import time

from a2a.helpers.proto_helpers import new_task_from_user_message
from a2a.server.agent_execution import RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, Part
from sdk_1 import Echo, card
from starlette.applications import Starlette


class Slow(Echo):
    """A task whose artifact is the time at which it ended."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Submitted, working, the artifact, completed."""
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        await asyncio.sleep(float(os.environ["SECONDS"]))
        await updater.add_artifact([Part(text=repr(time.time()))], name="ended")
        await updater.complete()


webhooks = InMemoryPushNotificationConfigStore() if os.environ.get("ACCEPTS_WEBHOOKS") else None
card.capabilities.CopyFrom(AgentCapabilities(push_notifications=webhooks is not None))
card.supported_interfaces[0].url = os.environ["URL"]
asked = DefaultRequestHandler(Slow(), InMemoryTaskStore(), card, push_config_store=webhooks)
app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(asked, "/")])
