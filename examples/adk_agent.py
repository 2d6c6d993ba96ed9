"""An agent of Google's ADK as an agent of a deployment. It has two tools, of which one asks the client first.

``MODEL`` is a model's name (``gemini-2.5-flash``), for which the framework reads ``GOOGLE_API_KEY``. Without one, a
script answers.
"""

import os
import re
from collections.abc import AsyncIterator

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.tools import FunctionTool
from google.genai.types import Content, FunctionCall, GenerateContentResponseUsageMetadata, Part

from a2a_serverless import Agent, Skill
from a2a_serverless_frameworks.adk import agent


async def price(thing: str) -> float:
    """The price of a thing in euros."""
    return float(len(thing))


async def order(thing: str) -> str:
    """Orders a thing."""
    return f"ordered: {thing}"


def make_shop(model: BaseLlm | str) -> Agent:
    """The shop with a model, or with the name of one."""
    root = LlmAgent(
        name="shop",
        description="Orders what its client approves.",
        model=model,
        instruction="Say the price before you order.",
        tools=[price, FunctionTool(order, require_confirmation=True)],
    )
    return agent(root, id="shop", skills=[Skill("order", "Order", "Orders a thing.", ("demo",), ("a coat",))])


class Script(BaseLlm):
    """Calls the tool ``order`` with the client's words, and then repeats the tool's result."""

    model: str = "script"

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        """Yields one response, after its words if it streams."""
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is None:
            yield say(Part(function_call=FunctionCall(name="order", args={"thing": last.text})))
            return
        text = f"{' '.join(map(str, last.function_response.response.values()))} (no MODEL is set)"
        for word in re.findall(r"\S+\s*", text) if stream else ():
            yield say(Part(text=word), partial=True)
        yield say(Part(text=text))


def say(part: Part, *, partial: bool = False) -> LlmResponse:
    """A response of one part."""
    usage = GenerateContentResponseUsageMetadata(prompt_token_count=0, candidates_token_count=0)
    return LlmResponse(content=Content(role="model", parts=[part]), partial=partial, usage_metadata=usage)


SCRIPT = Script()
shop_agent = make_shop(os.environ.get("MODEL") or SCRIPT)
