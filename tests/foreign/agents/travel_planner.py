"""Plans journeys: after samples/python/agents/travel_planner_agent of a2aproject/a2a-samples at 6603ba3f2c31.

As there: a chat model without a graph, streamed, an executor that sends each piece as an artifact with a new id and the
same name, and an error of the model as a text. Changed: the settings are variables in place of a file. Left out: the
server.
"""

import os
from collections.abc import AsyncGenerator

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils import new_text_artifact
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI

PROMPT = (
    "You are an expert for journeys. Plan day by day, with realistic times between places, meals and local customs."
    " Consider season and budget, and say what you do not know."
)


class TravelPlannerAgent:
    """Plans journeys."""

    def __init__(self) -> None:
        self.model = ChatOpenAI(model=os.getenv("MODEL_NAME", "gpt-4o"), temperature=0.7)

    async def stream(self, query: str) -> AsyncGenerator[tuple[str, bool], None]:
        """Pieces of the plan, each with whether it is the last one."""
        try:
            messages = [SystemMessage(content=PROMPT), HumanMessage(content=query)]
            async for chunk in self.model.astream(messages):
                if chunk.content:
                    yield str(chunk.content), False
            yield "", True
        except Exception as error:
            print(f"error: {error}")
            yield "Sorry, something went wrong.", True


class TravelPlannerAgentExecutor(AgentExecutor):
    """Sends the plan."""

    def __init__(self) -> None:
        self.agent = TravelPlannerAgent()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answers with artifacts, of which each has a piece."""
        if not context.message:
            raise ValueError("there is no message")
        place = {"context_id": context.context_id, "task_id": context.task_id}
        async for text, is_last in self.agent.stream(context.get_user_input()):
            artifact = new_text_artifact(name="current_result", text=text)
            await event_queue.enqueue_event(TaskArtifactUpdateEvent(artifact=artifact, **place))
            if is_last:
                break
        completed = TaskStatus(state=TaskState.completed)
        await event_queue.enqueue_event(TaskStatusUpdateEvent(status=completed, final=True, **place))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Is not supported."""
        raise RuntimeError("cancel is not supported")


CARD = AgentCard(
    name="Travel Planner Agent",
    description="Plans journeys",
    url="http://127.0.0.1:10001/",
    version="1.0.0",
    default_input_modes=["text"],
    default_output_modes=["text"],
    capabilities=AgentCapabilities(streaming=True),
    skills=[AgentSkill(id="travel_planner", name="Travel planner", description="Plans a journey.", tags=["travel"])],
)
