from a2a_serverless_frameworks import langgraph
from tests.foreign.agents.deep_research import make_agent

agent = langgraph.agent(make_agent(), id="deep_research", description="Researches a topic, and writes a report.")
