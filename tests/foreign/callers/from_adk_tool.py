"""Calls the clerk as a tool of an agent of Google's ADK, and prints what the agent's model gets."""

import asyncio
import json
import re
import sys
import warnings

from fastapi.openapi.models import APIKey
from google.adk.agents import LlmAgent
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types


def remote(url: str, key: str) -> RemoteA2aAgent:
    return RemoteA2aAgent(
        "clerk",
        f"{url}/.well-known/agent-card.json",
        auth_scheme=APIKey.model_validate({"in": "header", "name": "X-API-Key"}),
        auth_credential=AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key=key),
    )


def agent_with(url: str, key: str, model: BaseLlm) -> LlmAgent:
    return LlmAgent(name="visitor", model=model, tools=[AgentTool(remote(url, key))])


class Script(BaseLlm):
    """Calls the tool with each text, then ends with what the tool returned last."""

    texts: list[str]

    async def generate_content_async(self, llm_request, stream=False):  # noqa: FBT002 - the method of the library
        del stream
        part = llm_request.contents[-1].parts[-1]
        if self.texts:
            call = types.FunctionCall(name="clerk", args={"request": self.texts.pop(0)})
            answer = types.Part(function_call=call)
        else:
            answer = types.Part(text=part.function_response.response["result"])
        yield LlmResponse(content=types.Content(role="model", parts=[answer]))


async def main(url: str, slow_url: str, key: str, *_: str) -> None:
    async def converse(agent: str, *texts: str, url: str = url, key: str = key) -> str:
        runner = InMemoryRunner(agent_with(f"{url}/{agent}", key, Script(model="script", texts=list(texts))))
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id="me")
        message = types.Content(role="user", parts=[types.Part(text="Ask the clerk.")])
        events = runner.run_async(user_id="me", session_id=session.id, new_message=message)
        *_, last = [event async for event in events]
        text = last.content.parts[0].text or ""
        return re.sub(r"[0-9a-f-]{36}", "ID", text.partition("\n")[0].replace(url, ""))

    print(
        json.dumps(
            {
                "answer": await converse("clerk", "answer"),
                "message": await converse("greeter", "hello"),
                "artifacts": await converse("clerk", "write"),
                "artifact and message": await converse("clerk", "report"),
                "question": await converse("clerk", "ask"),
                "context": await converse("clerk", "remember door", "recall"),
                "failure": await converse("clerk", "fail"),
                "refused": await converse("clerk", "answer", key="wrong"),
                "file out": await converse("clerk", "draw"),
                "data out": await converse("clerk", "count"),
                "work within a stream": await converse("clerk", "slow"),
                "long work": await converse("clerk", "slow", url=slow_url),
            }
        )
    )


warnings.simplefilter("ignore")
asyncio.run(main(*sys.argv[1:]))
