"""Plans a text: after samples/python/agents/content_planner of a2aproject/a2a-samples at 6603ba3f2c31.

As there: an agent with Google's search, which the model itself executes. Left out: the generic executor and the server,
in whose place the line of ours is.
"""

from google.adk.agents import Agent
from google.adk.tools import google_search

root_agent = Agent(
    name="content_planner_agent",
    model="gemini-2.5-flash",
    description="Makes a detailed outline of a text from a short description.",
    instruction="You plan texts. Make a detailed and logical outline from a short description.",
    tools=[google_search],
)
