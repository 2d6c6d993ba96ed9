"""A Strands agent as an agent of a deployment. It has two tools, of which one asks the client first.

``MODEL`` is a model's id on Amazon Bedrock; without one, the framework's default model answers.
"""

import os

from strands import Agent, ToolContext, tool
from strands.models import Model

from a2a_serverless_frameworks.strands import agent


@tool
async def price(thing: str) -> float:
    """The price of a thing in euros."""
    return float(len(thing))


@tool(context=True)
async def order(thing: str, tool_context: ToolContext) -> str:
    """Orders a thing."""
    if tool_context.interrupt("order", reason=f"May I order {thing}?") != "yes":
        return "not approved"
    return f"ordered: {thing}"


def make_shop(model: Model | str | None = None) -> Agent:
    """A new agent: a Strands agent has the messages of one conversation."""
    prompt = "Say the price before you order."
    return Agent(model or os.environ.get("MODEL"), system_prompt=prompt, tools=[price, order], callback_handler=None)


shop_agent = agent(make_shop, id="shop", description="Tells prices and orders what its client approves.")
