from a2a_serverless_frameworks.a2a_sdk import from_executor
from a2a_serverless_frameworks.adk_sessions import ConversationSessions
from tests.foreign.agents.expense import CARD, ReimbursementAgentExecutor


def make_executor() -> ReimbursementAgentExecutor:
    made = ReimbursementAgentExecutor()
    made.agent._runner.session_service = ConversationSessions()
    return made


agent = from_executor(make_executor, CARD, id="expense")
