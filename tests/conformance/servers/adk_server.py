"""An agent of Google's ADK behind ``to_a2a``: its model repeats what it has heard, and asks for an approval.

``python adk_server.py`` prints its base URL.
"""

import asyncio
import socket
import warnings
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools import LongRunningFunctionTool
from google.genai import types

warnings.simplefilter("ignore")


def approve() -> None:
    """Asks."""


class Fake(BaseLlm):  # type: ignore[misc]
    """Says all texts that it has heard. "buy" is a call of the tool ``approve`` first."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:  # noqa: ARG002, FBT001, FBT002
        """One answer."""
        parts = [part for content in llm_request.contents if content.role == "user" for part in content.parts]
        heard = [part.text for part in parts if part.text]
        said = types.Part(text=" | ".join(heard))
        if heard[-1] == "buy" and not any(part.function_call for one in llm_request.contents for part in one.parts):
            said = types.Part(function_call=types.FunctionCall(name="approve", id="c1", args={}))
        yield LlmResponse(content=types.Content(role="model", parts=[said]))


def main() -> None:
    """Serves it on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    agent = LlmAgent(
        name="repeater", description="Repeats", model=Fake(model="fake"), tools=[LongRunningFunctionTool(approve)]
    )
    app = to_a2a(agent, host="127.0.0.1", port=port)
    print(f"http://127.0.0.1:{port}", flush=True)  # noqa: T201
    asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
