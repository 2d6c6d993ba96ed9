"""A Strands agent as an agent of a deployment. It has two tools, of which one asks the client first.

``MODEL`` is a model's id on Amazon Bedrock; without one, a script answers.
"""

import json
import os
import re
from collections.abc import AsyncIterator
from typing import Any

from strands import Agent, ToolContext, tool
from strands.models import Model

from a2a_serverless import Agent as A2AAgent
from a2a_serverless import Skill
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


def make_shop(model: Model | str) -> A2AAgent:
    """The shop with a model, or with the id of one."""

    def make_agent() -> Agent:
        prompt = "Say the price before you order."
        return Agent(model, system_prompt=prompt, tools=[price, order], callback_handler=None)

    skill = Skill("order", "Order", "Orders a thing.", ("demo",), ("a coat",))
    return agent(make_agent, id="shop", description="Orders what its client approves.", skills=[skill])


class Script(Model):
    """Calls the tool ``order`` with the client's words, and then repeats the tool's result."""

    def update_config(self, **_: object) -> None:
        """Has nothing to set."""

    def get_config(self) -> dict[str, Any]:
        """The name that usage is counted by."""
        return {"model_id": "script"}

    async def structured_output(self, *_: object, **__: object) -> AsyncIterator[dict[str, Any]]:
        """Has no output but text."""
        raise NotImplementedError
        yield {}

    async def stream(self, messages: list[Any], *_: object, **__: object) -> AsyncIterator[Any]:
        """Streams one message."""
        last = messages[-1]["content"][-1]
        yield {"messageStart": {"role": "assistant"}}
        if "toolResult" in last:
            for word in re.findall(r"\S+\s*", f"{last['toolResult']['content'][0]['text']} (no MODEL is set)"):
                yield {"contentBlockDelta": {"delta": {"text": word}}}
        else:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": "order", "toolUseId": "call-1"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps({"thing": last["text"]})}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if "toolResult" in last else "tool_use"}}


SCRIPT = Script()
shop_agent = make_shop(os.environ.get("MODEL") or SCRIPT)
