from a2a_serverless_frameworks.a2a_sdk import from_executor
from tests.foreign.agents.a2a_mcp import CARD, DocumentsAgentExecutor

agent = from_executor(DocumentsAgentExecutor, CARD, id="a2a_mcp")
