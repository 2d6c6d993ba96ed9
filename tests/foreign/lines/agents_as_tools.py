from a2a_serverless_frameworks import strands
from tests.foreign.agents.agents_as_tools import make_orchestrator

agent = strands.agent(make_orchestrator, id="agents_as_tools", description="Sends questions to specialists.")
