"""Converts currencies: after samples/python/agents/langgraph of a2aproject/a2a-samples at 6603ba3f2c31 (app/agent.py).

As there: ``create_react_agent`` with a checkpointer in memory, a tool that calls a public service by blocking HTTP, and
an answer in a schema that says whether the user must say more. Changed: the service's address may be set by a variable.
Left out: the executor and the server, in whose place the line of ours is.
"""

import os
from typing import Any, Literal

import httpx
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.prebuilt import create_react_agent
from pydantic import BaseModel

memory = MemorySaver()


@tool
def get_exchange_rate(currency_from: str = "USD", currency_to: str = "EUR", currency_date: str = "latest") -> Any:
    """Gets an exchange rate.

    Args:
        currency_from: The currency to convert from, such as "USD".
        currency_to: The currency to convert to, such as "EUR".
        currency_date: A date, or "latest".

    Returns:
        The rate, or an error.
    """
    base = os.getenv("FRANKFURTER_URL", "https://api.frankfurter.dev/v1")
    try:
        response = httpx.get(f"{base}/{currency_date}", params={"from": currency_from, "to": currency_to})
        response.raise_for_status()
        data = response.json()
    except httpx.HTTPError as error:
        return {"error": f"the request failed: {error}"}
    except ValueError:
        return {"error": "the response is no JSON"}
    return data if "rates" in data else {"error": "the response has no rates"}


class ResponseFormat(BaseModel):
    """The form of an answer."""

    status: Literal["input_required", "completed", "error"] = "input_required"
    message: str


class CurrencyAgent:
    """An assistant that converts currencies and nothing else."""

    SYSTEM_INSTRUCTION = (
        "You convert currencies. Use the tool get_exchange_rate for every question about a rate. If you are asked for"
        " anything else, say politely that you cannot help."
    )
    FORMAT_INSTRUCTION = (
        "The status is input_required if the user must say more, error if something went wrong, and completed if the"
        " request is answered."
    )

    def __init__(self) -> None:
        if os.getenv("model_source", "google") == "google":
            self.model = ChatGoogleGenerativeAI(model="gemini-2.0-flash")
        else:
            self.model = ChatOpenAI(model=os.environ["TOOL_LLM_NAME"], temperature=0)
        self.graph = create_react_agent(
            self.model,
            tools=[get_exchange_rate],
            checkpointer=memory,
            prompt=self.SYSTEM_INSTRUCTION,
            response_format=(self.FORMAT_INSTRUCTION, ResponseFormat),
        )
