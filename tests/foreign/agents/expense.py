"""Reimburses expenses: after samples/python/agents/adk_expense_reimbursement of a2aproject/a2a-samples at 6603ba3f2c31.

As there: a tool that returns a form instead of an answer (``skip_summarization``), an executor that asks with the
form as data, sessions in memory, and the ids of forms in the process. Changed: Gemini by name, in place of LiteLLM;
the payment is a request to a service that a variable names. Left out: the server.
"""

import json
import os
import random
from collections.abc import AsyncIterable
from typing import Any

import httpx
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import AgentCard, DataPart, Part, TaskState, TextPart, UnsupportedOperationError
from a2a.utils import new_agent_parts_message, new_agent_text_message, new_task
from a2a.utils.errors import ServerError
from google.adk.agents.llm_agent import LlmAgent
from google.adk.artifacts import InMemoryArtifactService
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.tool_context import ToolContext
from google.genai import types

request_ids: set[str] = set()


def create_request_form(date: str = "", amount: str = "", purpose: str = "") -> dict[str, Any]:
    """Makes a form for the employee.

    Args:
        date: The date of the expense, or "".
        amount: The amount, or "".
        purpose: What it was for, or "".
    """
    request_id = f"request_id_{random.randint(1000000, 9999999)}"
    request_ids.add(request_id)
    return {"request_id": request_id, "date": date or "<date>", "amount": amount or "<amount>", "purpose": purpose}


def return_form(form_request: dict[str, Any], tool_context: ToolContext, instructions: str = "") -> str:
    """Shows the form to the employee.

    Args:
        form_request: The form.
        instructions: How to fill it in, or "".
    """
    tool_context.actions.skip_summarization = True
    tool_context.actions.escalate = True
    fields = {name: {"type": "string", "title": name.title()} for name in form_request}
    form = {"type": "object", "properties": fields, "required": list(form_request)}
    return json.dumps({"type": "form", "form": form, "form_data": form_request, "instructions": instructions})


def reimburse(request_id: str) -> dict[str, Any]:
    """Reimburses the employee for a request."""
    if request_id not in request_ids:
        return {"request_id": request_id, "status": "error: the request_id is invalid"}
    httpx.post(f"{os.environ['PAYMENTS_URL']}/payments/{request_id}", json={}).raise_for_status()
    return {"request_id": request_id, "status": "approved"}


class ReimbursementAgent:
    """Handles requests for reimbursement."""

    def __init__(self) -> None:
        self._agent = LlmAgent(
            model="gemini-2.0-flash-001",
            name="reimbursement_agent",
            description="Reimburses employees for what they have paid.",
            instruction=(
                "First make a form by create_request_form with what the user has said, and show it by return_form."
                " When the filled-in form comes back, check it, and reimburse. Name the request_id and the status."
            ),
            tools=[create_request_form, reimburse, return_form],
        )
        self._user_id = "remote_agent"
        self._runner = Runner(
            app_name=self._agent.name,
            agent=self._agent,
            artifact_service=InMemoryArtifactService(),
            session_service=InMemorySessionService(),
            memory_service=InMemoryMemoryService(),
        )

    async def stream(self, query: str, session_id: str) -> AsyncIterable[tuple[bool, Any]]:
        """What the agent says, each with whether it is the end: a text, or the response of the form's tool."""
        where = {"app_name": self._agent.name, "user_id": self._user_id, "session_id": session_id}
        service = self._runner.session_service
        session = await service.get_session(**where) or await service.create_session(state={}, **where)
        content = types.Content(role="user", parts=[types.Part.from_text(text=query)])
        async for event in self._runner.run_async(user_id=self._user_id, session_id=session.id, new_message=content):
            if not event.is_final_response():
                yield False, "I process the request."
                continue
            parts = (event.content and event.content.parts) or []
            responses = [part.function_response.model_dump() for part in parts if part.function_response]
            yield True, responses[0] if responses else "\n".join(part.text for part in parts if part.text)


class ReimbursementAgentExecutor(AgentExecutor):
    """Asks with the form, and answers with a text."""

    def __init__(self) -> None:
        self.agent = ReimbursementAgent()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Handles a message."""
        task = context.current_task
        if not task:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        async for is_end, content in self.agent.stream(context.get_user_input(), task.context_id):
            if not is_end:
                message = new_agent_text_message(content, task.context_id, task.id)
                await updater.update_status(TaskState.working, message)
            elif isinstance(content, dict):
                form = [Part(root=DataPart(data=json.loads(content["response"]["result"])))]
                message = new_agent_parts_message(form, task.context_id, task.id)
                await updater.update_status(TaskState.input_required, message, final=True)
            else:
                await updater.add_artifact([Part(root=TextPart(text=content))], name="form")
                await updater.complete()
                break

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Is not supported."""
        raise ServerError(error=UnsupportedOperationError())


CARD = AgentCard.model_validate(
    {
        "name": "Reimbursement Agent",
        "description": "Reimburses employees for what they have paid.",
        "url": "http://127.0.0.1:10002/",
        "version": "1.0.0",
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text", "text/plain"],
        "defaultOutputModes": ["text", "text/plain"],
        "skills": [{"id": "reimburse", "name": "Reimburse", "description": "Pays back.", "tags": ["expenses"]}],
    }
)
