from a2a_serverless_frameworks import adk
from tests.foreign.agents.dice import create_agent

agent = adk.agent(create_agent(), id="dice")
