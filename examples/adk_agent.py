"""An agent of Google's ADK as an agent of a deployment. It has two tools, of which one asks the client first.

``MODEL`` is a model's name (``gemini-2.5-flash``), for which the framework reads ``GOOGLE_API_KEY``.
"""

import os

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.tools import FunctionTool

from a2a_serverless_frameworks.adk import agent


async def price(thing: str) -> float:
    """The price of a thing in euros."""
    return float(len(thing))


async def order(thing: str) -> str:
    """Orders a thing."""
    return f"ordered: {thing}"


def make_shop(model: BaseLlm | str | None = None) -> LlmAgent:
    """The root agent."""
    return LlmAgent(
        name="shop",
        description="Tells prices and orders what its client approves.",
        model=model or os.environ.get("MODEL", "gemini-2.5-flash"),
        instruction="Say the price before you order.",
        tools=[price, FunctionTool(order, require_confirmation=True)],
    )


shop_agent = agent(make_shop(), id="shop")
