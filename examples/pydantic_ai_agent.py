"""A Pydantic AI agent as an agent of a deployment. It has two tools, of which one needs the client's approval.

``MODEL`` is a model's name as Pydantic AI knows it, such as ``bedrock:amazon.nova-pro-v1:0``. Without one, a script
answers.
"""

import json
import os
import re
from collections.abc import AsyncIterator

from pydantic_ai import Agent, ModelMessage, Tool
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from a2a_serverless import Agent as A2AAgent
from a2a_serverless import Skill
from a2a_serverless_frameworks.pydantic_ai import agent


async def price(thing: str) -> float:
    """The price of a thing in euros."""
    return float(len(thing))


async def order(thing: str) -> str:
    """Orders a thing."""
    return f"ordered: {thing}"


def make_shop(model: Model | str) -> A2AAgent:
    """The shop with a model, or with the name of one."""
    shop = Agent(
        model,
        name="shop",
        description="Orders what its client approves.",
        instructions="Say the price before you order.",
        tools=[price, Tool(order, requires_approval=True)],
    )
    return agent(shop, skills=[Skill("order", "Order", "Orders a thing.", ("demo",), ("a coat",))])


async def script(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """Calls the tool ``order`` with the client's words, and then repeats the tool's result."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        for word in re.findall(r"\S+\s*", f"{last.content} (no MODEL is set)"):
            yield word
    else:
        yield {0: DeltaToolCall("order", json.dumps({"thing": last.content}), tool_call_id="call-1")}


SCRIPT = FunctionModel(stream_function=script)
shop_agent = make_shop(os.environ.get("MODEL") or SCRIPT)
