"""An executor that greets: after samples/python/agents/helloworld of a2aproject/a2a-samples at 6603ba3f2c31.

As there: an agent behind an executor, a task made from the message, progress, an artifact, an end with a message, and a
refusal to cancel. Left out: the server, and the card for signed-in clients.
"""

from a2a.helpers import get_message_text, new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, TaskState


class HelloWorldAgent:
    """Greets."""

    async def invoke(self, request: str) -> str:
        """The greeting for a request."""
        return f"Hello, world! You wrote: {request}"


class HelloWorldAgentExecutor(AgentExecutor):
    """Runs the agent for each message."""

    def __init__(self) -> None:
        self.agent = HelloWorldAgent()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Greets in an artifact."""
        task = context.current_task
        if not task:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue=event_queue, task_id=task.id, context_id=task.context_id)
        await updater.update_status(TaskState.TASK_STATE_WORKING, message=new_text_message("I read your message."))
        query = get_message_text(context.message)
        result = await self.agent.invoke(query) if query else "There is no text."
        await updater.add_artifact(parts=[new_text_part(text=result, media_type="text/plain")])
        await updater.update_status(TaskState.TASK_STATE_COMPLETED, message=new_text_message("That is all."))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Is not supported."""
        raise NotImplementedError("cancel is not supported")


CARD = AgentCard(
    name="Hello World Agent",
    description="Greets whoever writes to it",
    version="0.0.1",
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    capabilities=AgentCapabilities(streaming=True),
    supported_interfaces=[
        AgentInterface(protocol_binding="JSONRPC", url="http://127.0.0.1:9999", protocol_version="1.0")
    ],
    skills=[
        AgentSkill(
            id="echo_bot",
            name="Echo Bot",
            description="Answers with a greeting and your message.",
            input_modes=["text/plain"],
            output_modes=["text/plain"],
            tags=["a2a", "echo"],
            examples=["hi"],
        )
    ],
)
