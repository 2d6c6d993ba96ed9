"""Each example in the cards of the samples and of a new project is clicked in the console, and gives a good result."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from a2a_serverless.agent_loader import import_agents
from a2a_serverless_tools.dev.loading import load_project
from a2a_serverless_tools.project import read_project
from a2a_serverless_tools.stack.library import CHECKOUT
from tests.browser import NEEDED, Browser, started
from tests.conformance.live import serving
from tests.console.test_console import CONSOLE, choose

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = NEEDED
SAMPLES: Final = tuple(agent for path in read_project(CHECKOUT).agents for agent in import_agents(path))
AGENTS: Final = (*SAMPLES, *load_project(read_project(CHECKOUT / "examples/project")))
DOCUMENT: Final = "Bees in the city.*shows how a healthy colony looks|城市里的蜜蜂.*另一个能显示健康的蜂群"
GOOD: Final = {
    "orchestrator": DOCUMENT,
    "document": DOCUMENT,
    "outline": "outline.json.*(Bees in the city|城市里的蜜蜂)",
    "summary": "Bees live well in cities: .* healthy colony looks|蜜蜂在城市里生活得很好：.*健康的蜂群",
    "image": "_image.png.*(A sailboat on the sea|A lighthouse by the sea at night|海面上有一艘帆船)",
    "travel": "Flight to Helsinki, date open|May I book this. Flight to Oslo|飞往赫尔辛基的航班",
    "tailor": "Which colour",
}
"""What the conversation says after each example of an agent."""
DONE: Final = "#task .badge:is([data-state=completed], [data-state=input-required], [data-state^=message])"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("profile")) as page, serving(AGENTS, console=CONSOLE) as url:
        page.do(f"open {url}/")
        page.do("wait #card h2")
        yield page
        page.do("open about:blank")


def test_each_skill_of_each_agent_has_examples() -> None:
    assert {agent.id for agent in AGENTS if all(skill.examples for skill in agent.skills)} == GOOD.keys()


@pytest.mark.parametrize("agent", GOOD)
def test_each_example_that_is_clicked_gives_a_good_result(page: Browser, agent: str) -> None:
    choose(page, agent)
    for number in range(page.do("count #card .example")):
        choose(page, agent)
        page.do(f"evaluate document.querySelectorAll('#card .example')[{number}].click()")
        page.do("click #send")
        page.do(f"wait {DONE}")
        said = " ".join(page.do("texts .theirs, .artifact")).replace("\n", " ")
        page.do(f"picture example-{agent}-{number}")
        assert re.search(GOOD[agent], said), said
        assert not re.search("questions to answer|待回答|this text:", said), said
    assert page.do("problems") == []
