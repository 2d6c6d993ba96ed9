from a2a_serverless_frameworks import pydantic_ai
from tests.foreign.agents.bank_support import SupportDependencies, connect, support_agent

agent = pydantic_ai.agent(support_agent, id="bank_support", deps=lambda _: SupportDependencies(123, connect()))
