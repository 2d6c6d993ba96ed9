"""A LangGraph graph as an agent of a deployment. It asks the client before it orders.

``MODEL`` is a model's id on Amazon Bedrock (``pip install langchain-aws``). Without one, a fake model answers.
"""

import os
from itertools import repeat
from typing import Any

from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from a2a_serverless_frameworks.langgraph import agent


class Order(MessagesState):
    """The messages, and what the client said to the price."""

    said: str


def configured_model() -> BaseChatModel:
    """The model that ``MODEL`` names."""
    if "MODEL" not in os.environ:
        return GenericFakeChatModel(messages=repeat("I have done what you said."))
    from langchain_aws import ChatBedrockConverse

    return ChatBedrockConverse(model=os.environ["MODEL"])


def make_shop(model: BaseChatModel) -> StateGraph[Order, None, Order, Order]:
    """A graph of two nodes."""

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
    return graph


shop_agent = agent(make_shop(configured_model()), id="shop", description="Orders what its client approves.")
