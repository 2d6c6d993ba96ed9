"""A Pydantic AI agent as an agent of a deployment. It has two tools, of which one needs the client's approval.

``MODEL`` is a model's name as Pydantic AI knows it, such as ``bedrock:amazon.nova-pro-v1:0``. Without one, the
framework's own test model answers: it calls each tool once and understands nothing.
"""

import os

from pydantic_ai import Agent

from a2a_serverless_frameworks.pydantic_ai import agent

shop = Agent(
    os.environ.get("MODEL", "test"),
    name="shop",
    description="Tells prices and orders what its client approves.",
    instructions="Say the price before you order.",
)


@shop.tool_plain
async def price(thing: str) -> float:
    """The price of a thing in euros."""
    return float(len(thing))


@shop.tool_plain(requires_approval=True)
async def order(thing: str) -> str:
    """Orders a thing."""
    return f"ordered: {thing}"


shop_agent = agent(shop)
