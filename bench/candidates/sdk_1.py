"""a2a-sdk 1.x as its documentation builds a server: Starlette under Mangum, an echo executor, the store in memory."""

from a2a.helpers.proto_helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from mangum import Mangum
from starlette.applications import Starlette


class Echo(AgentExecutor):
    """A task whose artifacts are the words that the client said, separated by commas."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Submitted, the artifacts, completed."""
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        for word in context.get_user_input().split(","):
            await updater.add_artifact([Part(text=word)], name="echo")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nothing here runs long enough."""
        raise NotImplementedError


card = AgentCard(
    name="Echo",
    description="Says it again",
    version="1",
    capabilities=AgentCapabilities(streaming=True),
    supported_interfaces=[
        AgentInterface(url="https://agents.example.com/echo", protocol_binding="JSONRPC", protocol_version="1.0")
    ],
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="echo", name="Echo", description="Says it again", tags=["echo"])],
)
asked = DefaultRequestHandler(Echo(), InMemoryTaskStore(), card)
app = Starlette(routes=create_jsonrpc_routes(asked, "/echo"))
handler = Mangum(app, lifespan="off")
