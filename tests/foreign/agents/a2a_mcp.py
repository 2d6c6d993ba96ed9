"""Answers questions by the tools of an MCP server, without a framework: after
samples/python/agents/a2a-mcp-without-framework of a2aproject/a2a-samples at 6603ba3f2c31 (its server).

As there: a blocking stream of Google's client in an async function, prompts by Jinja, tool calls in a block of JSON
that the model writes, MCP over SSE with a connection for each call, several calls at once, and an executor that sends
every piece as a chunk of one artifact with an id of its own making. Changed: the MCP server's address is a variable.
"""

import asyncio
import json
import os
import re
import uuid
from collections.abc import AsyncGenerator, Generator
from typing import Any

from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    Artifact,
    Part,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from google import genai
from jinja2 import Template
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.types import CallToolResult

MCP_URL = os.getenv("MCP_URL", "https://gitmcp.io/google/A2A")
TOOLS = Template("{% for tool in tools %}- {{ tool.name }}: {{ tool.description }}\n{% endfor %}")
CALLED = Template("{% for one in called %}- {{ one.tool }}({{ one.arguments }}) gave {{ one.result }}\n{% endfor %}")
DECIDE = Template(
    "Choose tools for the question, in a block of JSON: a list of objects with name and arguments. If you need no tool,"
    " leave it out, and write the answer.\nThe question: {{ question }}\n{{ called }}\nThe tools:\n{{ tools }}"
)


async def get_mcp_tool_prompt(url: str) -> str:
    """The tools of a server, as text."""
    async with sse_client(url) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return TOOLS.render(tools=(await session.list_tools()).tools)


async def call_mcp_tool(url: str, name: str, arguments: dict[str, Any]) -> CallToolResult:
    """The result of a tool."""
    async with sse_client(url) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return await session.call_tool(name, arguments=arguments)


def stream_llm(prompt: str) -> Generator[str, None, None]:
    """What the model says, piece by piece."""
    client = genai.Client(vertexai=False, api_key=os.getenv("GOOGLE_API_KEY"))
    for chunk in client.models.generate_content_stream(model="gemini-2.5-flash-lite", contents=prompt):
        yield chunk.text or ""


class Agent:
    """Asks the model which tools to call, until it calls none."""

    def __init__(self, mcp_url: str) -> None:
        self.mcp_url = mcp_url

    async def decide(self, question: str, called: list[dict[str, Any]]) -> Generator[str, None, None]:
        """What the model says to the question and the results so far."""
        tools = await get_mcp_tool_prompt(self.mcp_url)
        return stream_llm(DECIDE.render(question=question, called=CALLED.render(called=called), tools=tools))

    def extract_tools(self, response: str) -> list[dict[str, Any]]:
        """The tool calls in a response."""
        match = re.search(r"```json\n(.*?)\n```", response, re.DOTALL)
        return json.loads(match.group(1)) if match else []

    async def stream(self, question: str) -> AsyncGenerator[tuple[bool, str], None]:
        """Pieces of text, each with whether it is the last one."""
        called: list[dict[str, Any]] = []
        for number in range(10):
            yield False, f"Step {number}: "
            response = ""
            for chunk in await self.decide(question, called):
                response += chunk
                yield False, chunk
            if not (tools := self.extract_tools(response)):
                break
            calls = [call_mcp_tool(self.mcp_url, tool["name"], tool["arguments"]) for tool in tools]
            results = await asyncio.gather(*calls)
            called += [
                {"tool": tool["name"], "arguments": tool["arguments"], "result": result.content[0].text}
                for tool, result in zip(tools, results, strict=True)
            ]
            yield False, CALLED.render(called=called)
        yield True, "Task completed"


class DocumentsAgentExecutor(AgentExecutor):
    """Sends what the agent says as chunks of one artifact."""

    def __init__(self) -> None:
        self.agent = Agent(MCP_URL)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answers the question."""
        if not context.message:
            raise ValueError("there is no message")
        task = context.current_task
        if not task:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        artifact_id, is_first = str(uuid.uuid4()), True
        async for is_last, text in self.agent.stream(context.get_user_input()):
            if is_first:
                working = TaskStatus(state=TaskState.TASK_STATE_WORKING)
                await event_queue.enqueue_event(
                    TaskStatusUpdateEvent(status=working, context_id=task.context_id, task_id=task.id)
                )
            await event_queue.enqueue_event(
                TaskArtifactUpdateEvent(
                    append=not is_first,
                    context_id=task.context_id,
                    task_id=task.id,
                    last_chunk=is_last,
                    artifact=Artifact(artifact_id=artifact_id, name="current_result", parts=[Part(text=text)]),
                )
            )
            is_first = False
        completed = TaskStatus(state=TaskState.TASK_STATE_COMPLETED)
        await event_queue.enqueue_event(
            TaskStatusUpdateEvent(status=completed, context_id=task.context_id, task_id=task.id)
        )

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Is not supported."""
        raise RuntimeError("cancel is not supported")


CARD = AgentCard(
    name="Documents Agent",
    description="Answers questions about a repository by the tools of its MCP server.",
    version="1.0.0",
    default_input_modes=["text"],
    default_output_modes=["text"],
    capabilities=AgentCapabilities(streaming=True),
    skills=[AgentSkill(id="answer", name="Answer", description="Looks for information and answers.", tags=["docs"])],
)
