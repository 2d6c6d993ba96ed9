"""An agent of the OpenAI Agents SDK as an agent of a deployment. It has two tools, of which one needs an approval.

``MODEL`` is a model's name as the SDK knows it; OpenAI's models need ``OPENAI_API_KEY``. Without a name, a script
answers.
"""

import os
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from a2a_serverless import Agent as A2AAgent
from a2a_serverless import Skill
from a2a_serverless_frameworks.openai_agents import agent


@function_tool
async def price(thing: str) -> float:
    """The price of a thing in euros."""
    return float(len(thing))


@function_tool(needs_approval=True)
async def order(thing: str) -> str:
    """Orders a thing."""
    return f"ordered: {thing}"


def make_shop(model: Model | str) -> A2AAgent:
    """The shop with a model, or with the name of one."""
    shop = Agent("Shop", instructions="Say the price before you order.", model=model, tools=[price, order])
    skill = Skill("order", "Order", "Orders a thing.", ("demo",), ("a coat",))
    return agent(shop, id="shop", description="Orders what its client approves.", skills=[skill])


class Script(Model):
    """Calls the tool ``order`` with the client's words, and then repeats the tool's result."""

    model = "script"

    async def get_response(
        self, system_instructions: str | None, input: list[Any], *rest: Any, **options: Any
    ) -> ModelResponse:
        """The whole response."""
        return await next_turn(input).get_response(system_instructions, input, *rest, **options)

    def stream_response(
        self, system_instructions: str | None, input: list[Any], *rest: Any, **options: Any
    ) -> AsyncIterator[Any]:
        """The events of the response."""
        return next_turn(input).stream_response(system_instructions, input, *rest, **options)


def next_turn(items: list[Any]) -> ScriptedModel:
    """The SDK's model for tests, with the response to these items."""
    last = items[-1]
    if last.get("type") == "function_call_output":
        return ScriptedModel([[assistant_message(f"{last['output']} (no MODEL is set)")]])
    return ScriptedModel([[function_call("order", {"thing": last["content"][0]["text"]}, call_id="call-1")]])


SCRIPT = Script()
shop_agent = make_shop(os.environ.get("MODEL") or SCRIPT)
