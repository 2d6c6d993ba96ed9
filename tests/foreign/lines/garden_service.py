from a2a_serverless_frameworks import adk
from tests.foreign.agents.garden_service import root_agent

agent = adk.agent(root_agent, id="garden_service")
