from a2a_serverless_frameworks import langgraph
from tests.foreign.agents.currency import CurrencyAgent

agent = langgraph.agent(CurrencyAgent().graph, id="currency", description="Converts currencies.")
