"""An agent of the OpenAI Agents SDK as an agent of a deployment. It has two tools, of which one needs an approval.

``MODEL`` is a model's name as the SDK knows it; without one, the SDK's default model answers. OpenAI's models need
``OPENAI_API_KEY``.
"""

import os

from agents import Agent, function_tool

from a2a_serverless_frameworks.openai_agents import agent


@function_tool
async def price(thing: str) -> float:
    """The price of a thing in euros."""
    return float(len(thing))


@function_tool(needs_approval=True)
async def order(thing: str) -> str:
    """Orders a thing."""
    return f"ordered: {thing}"


shop = Agent(
    "Shop", instructions="Say the price before you order.", model=os.environ.get("MODEL"), tools=[price, order]
)
shop_agent = agent(shop, id="shop", description="Tells prices and orders what its client approves.")
