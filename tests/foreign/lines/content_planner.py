from a2a_serverless_frameworks import adk
from tests.foreign.agents.content_planner import root_agent

agent = adk.agent(root_agent, id="content_planner")
