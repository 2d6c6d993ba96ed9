from a2a_serverless_frameworks.a2a_sdk import from_executor
from tests.foreign.agents.travel_planner import CARD, TravelPlannerAgentExecutor

agent = from_executor(TravelPlannerAgentExecutor, CARD, id="travel_planner")
