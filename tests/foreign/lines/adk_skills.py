from google.adk.runners import Runner

from a2a_serverless_frameworks.a2a_sdk import from_executor
from a2a_serverless_frameworks.adk_sessions import ConversationSessions
from tests.foreign.agents.adk_skills import CARD, CurrencyAgentExecutor, root_agent

runner = Runner(app_name="skills", agent=root_agent, session_service=ConversationSessions())
agent = from_executor(lambda: CurrencyAgentExecutor(runner), CARD, id="adk_skills")
