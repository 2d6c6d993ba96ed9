"""Converts currencies by a skill: after samples/python/agents/adk_skills_agent of a2aproject/a2a-samples at
6603ba3f2c31.

As there: a SkillToolset with a folder of skills, a generic tool for HTTP, an answer in a schema with a status, and an
executor over a Runner that turns the status into one of A2A. Left out: the server, and the card in a file.
"""

import pathlib
from typing import Any, Literal

import httpx
from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events.event_queue import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import AgentCard, AgentSkill, Part, TaskState
from google.adk.agents import LlmAgent
from google.adk.runners import Runner
from google.adk.skills import load_skill_from_dir
from google.adk.tools import skill_toolset
from google.genai import types
from pydantic import BaseModel, Field


async def execute_http_request(url: str, method: str, params: dict[str, Any] | None = None) -> Any:
    """Makes an HTTP request.

    Args:
        url: The whole URL.
        method: The method of HTTP.
        params: The parameters of the query.
    """
    async with httpx.AsyncClient() as client:
        response = await client.request(method=method, url=url, params=params)
        response.raise_for_status()
        return response.json() if response.content else None


frankfurter_skill = load_skill_from_dir(pathlib.Path(__file__).parent / "skills" / "frankfurter")


class AgentResponse(BaseModel):
    """The form of an answer."""

    message: str = Field(description="What the user reads")
    status: Literal["completed", "input-required", "failed"] = Field(
        description="completed if the question is answered, input-required for a question to the user, failed if a tool"
        " has failed"
    )


root_agent = LlmAgent(
    name="skills_agent",
    model="gemini-3-flash-preview",
    description="Converts currencies",
    instruction="You convert currencies by your tools. Never assume the target currency: ask for it.",
    tools=[skill_toolset.SkillToolset(skills=[frankfurter_skill]), execute_http_request],
    output_schema=AgentResponse,
)


class CurrencyAgentExecutor(AgentExecutor):
    """Runs the agent, and turns the status of its answer into a status of the task."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Handles a message."""
        user_id = context.call_context.user.user_name if context.call_context else "a2a_user"
        session = {"app_name": self._runner.app_name, "user_id": user_id, "session_id": context.context_id}
        if not await self._runner.session_service.get_session(**session):
            await self._runner.session_service.create_session(**session)
        task = context.current_task
        if not task:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        content = types.Content(role="user", parts=[types.Part.from_text(text=context.get_user_input())])
        async for event in self._runner.run_async(user_id=user_id, session_id=context.context_id, new_message=content):
            if event.is_final_response():
                await self._answer(event, updater)

    async def _answer(self, event: Any, updater: TaskUpdater) -> None:
        if not (event.content and event.content.parts and event.content.parts[0].text):
            await updater.update_status(TaskState.TASK_STATE_FAILED, new_text_message("There is no text."))
            return
        response = AgentResponse.model_validate_json(event.content.parts[0].text.strip())
        if response.status == "completed":
            await updater.add_artifact([Part(text=response.message)], name="conversion_result")
            await updater.update_status(TaskState.TASK_STATE_COMPLETED)
            return
        asks = response.status == "input-required"
        state = TaskState.TASK_STATE_INPUT_REQUIRED if asks else TaskState.TASK_STATE_FAILED
        await updater.update_status(state, new_text_message(response.message))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Is not supported."""
        raise NotImplementedError("cancel is not supported")


CARD = AgentCard(
    name="Currency Agent",
    description="Converts currencies",
    version="1.0.0",
    skills=[AgentSkill(id="convert", name="Convert", description="Converts an amount.", tags=["currency"])],
)
