from functools import partial

from a2a_serverless_frameworks.a2a_sdk import from_executor
from tests.foreign.agents.multitenancy import AGENTS

agents = [from_executor(partial(type(made), made.transform), card, id=path[1:]) for path, card, made in AGENTS]
