"""a2a-sdk 0.3 as its documentation builds a server: Starlette under Mangum, an echo executor, the store in memory."""

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, Part, TextPart
from a2a.utils import new_task
from mangum import Mangum


class Echo(AgentExecutor):
    """A task whose one artifact is what the client said."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Submitted, the artifact, completed."""
        task = new_task(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.add_artifact([Part(root=TextPart(text=context.get_user_input()))], name="echo")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nothing here runs long enough."""
        raise NotImplementedError


card = AgentCard(
    name="Echo",
    description="Says it again",
    version="1",
    url="https://agents.example.com/echo",
    capabilities=AgentCapabilities(),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[],
)
app = A2AStarletteApplication(card, DefaultRequestHandler(Echo(), InMemoryTaskStore())).build(rpc_url="/echo")
handler = Mangum(app, lifespan="off")
