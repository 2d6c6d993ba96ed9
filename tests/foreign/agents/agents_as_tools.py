"""An assistant whose tools are agents: after 01-tutorials/02-multi-agent-systems/01-agent-as-tool of
strands-agents/samples at d07254ac4a4e.

As there: plain functions as tools, of which each makes an agent, calls it, and returns its text; Bedrock by default.
Changed: the assistant is made in a function; its tool for files sends a note to a service that a variable names. Left
out: the product assistant, the second notebook.
"""

import os

import httpx
from strands import Agent, tool

RESEARCH_PROMPT = "You do research. Answer with facts, and name your sources."
TRIP_PROMPT = "You plan journeys, day by day."
MAIN_PROMPT = (
    "You send questions to specialists: research to research_assistant, journeys to trip_planning_assistant. Answer"
    " simple questions yourself. Save what the user wants to keep by save_note."
)


@tool
def research_assistant(query: str) -> str:
    """Answers questions that need research.

    Args:
        query: The question.
    """
    try:
        return str(Agent(system_prompt=RESEARCH_PROMPT)(query))
    except Exception as error:
        return f"Error in research assistant: {error}"


@tool
def trip_planning_assistant(query: str) -> str:
    """Plans a journey.

    Args:
        query: Where to, and what the traveler likes.
    """
    try:
        return str(Agent(system_prompt=TRIP_PROMPT)(query))
    except Exception as error:
        return f"Error in trip planning: {error}"


@tool
def save_note(text: str) -> str:
    """Saves a text.

    Args:
        text: The text.
    """
    httpx.post(f"{os.environ['NOTES_URL']}/notes", json={"text": text}).raise_for_status()
    return "saved"


def make_orchestrator() -> Agent:
    """The assistant."""
    return Agent(system_prompt=MAIN_PROMPT, tools=[research_assistant, trip_planning_assistant, save_note])
