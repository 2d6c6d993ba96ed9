from pydantic_ai_examples.weather_agent import Deps, weather_agent

from a2a_serverless_frameworks import pydantic_ai
from tests.foreign.redirected import make_client

agent = pydantic_ai.agent(weather_agent, id="weather", deps=lambda _: Deps(make_client()))
