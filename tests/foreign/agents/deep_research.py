"""Researches a topic: after examples/deep_research of langchain-ai/deepagents at 23b83ad50f63.

As there: ``create_deep_agent`` with a sub-agent for one topic, a tool that searches by blocking HTTP, a tool for
thoughts, and files for the request and the report. Changed: the search is a service whose address is a variable, in
place of Tavily's client. Left out: fetching the pages that the search finds.
"""

import os
from datetime import UTC, datetime

import httpx
from deepagents import create_deep_agent
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langgraph.graph.state import CompiledStateGraph

LEAD = (
    "You lead research. Save the request in /research_request.md. Delegate each topic to a research-agent, at most"
    " {units} at once and {rounds} times. Then write the report, with its sources, to /final_report.md."
)
RESEARCHER = (
    "You research one topic. Today is {date}. Search, think after each search, and stop after five searches. Answer"
    " with what you have learned, and its sources."
)


@tool(parse_docstring=True)
def web_search(query: str) -> str:
    """Searches the web.

    Args:
        query: The words to search for.
    """
    response = httpx.get(f"{os.environ['SEARCH_URL']}/search", params={"q": query})
    response.raise_for_status()
    return "\n\n".join(f"## {one['title']}\n{one['url']}\n\n{one['content']}" for one in response.json()["results"])


@tool(parse_docstring=True)
def think(reflection: str) -> str:
    """Notes what is known, what is missing, and what to do next. Use it after each search.

    Args:
        reflection: The thoughts.
    """
    return f"Noted: {reflection}"


def make_agent() -> CompiledStateGraph:
    """The agent that leads."""
    researcher = {
        "name": "research-agent",
        "description": "Researches one topic. Give it one topic at a time.",
        "system_prompt": RESEARCHER.format(date=datetime.now(UTC).strftime("%Y-%m-%d")),
        "tools": [web_search, think],
    }
    return create_deep_agent(
        ChatGoogleGenerativeAI(model="gemini-3-pro-preview"),
        tools=[web_search, think],
        system_prompt=LEAD.format(units=3, rounds=3),
        subagents=[researcher],
    )
