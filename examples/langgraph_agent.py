"""A LangGraph graph as an agent of a deployment. It asks the client before it orders.

``MODEL`` is a model's id on Amazon Bedrock (``pip install langchain-aws``). Without one, a fake model answers.
"""

import os
from typing import Any

from langchain_core.language_models import BaseChatModel, SimpleChatModel
from langchain_core.messages import BaseMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from a2a_serverless import Agent, Skill
from a2a_serverless_frameworks.langgraph import agent


class Order(MessagesState):
    """The messages, and what the client said to the price."""

    said: str


def make_shop(model: BaseChatModel) -> Agent:
    """The shop with a model: a graph of two nodes."""

    def ask(state: Order) -> dict[str, Any]:
        thing = str(state["messages"][-1].text)
        return {"said": interrupt(f"May I order {thing} for {len(thing)} euros?")}

    async def answer(state: Order) -> dict[str, Any]:
        return {"messages": [await model.ainvoke([*state["messages"], ("user", state["said"])])]}

    graph = StateGraph(Order)
    graph.add_node("ask", ask)
    graph.add_node("answer", answer)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "answer")
    skill = Skill("order", "Order", "Orders a thing.", ("demo",), ("a coat",))
    return agent(graph, id="shop", description="Orders what its client approves.", skills=[skill])


def configured_model() -> BaseChatModel:
    """The model that ``MODEL`` names."""
    if not os.environ.get("MODEL"):
        return SCRIPT
    from langchain_aws import ChatBedrockConverse

    return ChatBedrockConverse(model=os.environ["MODEL"])


class Script(SimpleChatModel):
    """Says what the client's answer means: only a yes orders."""

    _llm_type = "script"

    def _call(self, messages: list[BaseMessage], *_: object, **__: object) -> str:
        is_yes = str(messages[-1].text).lower().startswith("yes")
        return f"{'It is ordered.' if is_yes else 'It is not ordered.'} (no MODEL is set)"


SCRIPT = Script()
shop_agent = make_shop(configured_model())
