from a2a_serverless_frameworks.a2a_sdk import from_executor
from tests.foreign.agents.helloworld import CARD, HelloWorldAgentExecutor

agent = from_executor(HelloWorldAgentExecutor, CARD, id="helloworld")
