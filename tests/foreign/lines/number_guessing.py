from a2a_serverless_frameworks.a2a_sdk import from_executor
from tests.foreign.agents.number_guessing import HistoryHelperExecutor, NumberGuessExecutor, alice_card, carol_card

agents = [
    from_executor(NumberGuessExecutor, alice_card, id="alice"),
    from_executor(HistoryHelperExecutor, carol_card, id="carol", keep_executor=True),
]
