from a2a_serverless_frameworks.a2a_sdk import from_executor
from tests.foreign.agents.multitenancy import AGENTS

agents = [from_executor(lambda made=made: made, card, id=path[1:]) for path, card, made in AGENTS]
