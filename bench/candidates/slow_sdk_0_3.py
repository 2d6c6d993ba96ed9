"""An agent of a2a-sdk 0.3 that takes ``SECONDS``, with the SDK's default card: neither webhooks nor streams."""

import asyncio
import os
import time

from a2a.server.agent_execution import RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import Part, TextPart
from a2a.utils import new_task
from sdk_0_3 import Echo, card


class Slow(Echo):
    """A task whose artifact is the time at which it ended."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Submitted, working, the artifact, completed."""
        task = new_task(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        await asyncio.sleep(float(os.environ["SECONDS"]))
        await updater.add_artifact([Part(root=TextPart(text=repr(time.time())))], name="ended")
        await updater.complete()


card.url = os.environ["URL"]
app = A2AStarletteApplication(card, DefaultRequestHandler(Slow(), InMemoryTaskStore())).build(rpc_url="/")
