"""The agents of docs/frameworks/recipes.md: they answer and ask, and a death repeats no call that is stored."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from warnings import catch_warnings, simplefilter

import pytest

pytest.importorskip("smolagents", reason="the frameworks of the recipes are not installed here: make frameworks")

from a2a_serverless.testing import AgentTestHarness
from tests.foreign.model_server import ModelServer, ToolCall, model_server
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_everywhere
from tests.frameworks.pages import blocks_of, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from a2a_serverless import Agent
    from tests.foreign.model_server import ModelRequest, Said

pytestmark = [pytest.mark.enable_socket, pytest.mark.filterwarnings("ignore")]  # the frameworks' own warnings
PAGE: Final = "recipes.md"
LINES: Final = 20


def plan(_: ModelRequest) -> Said:
    """A text, as of a model without tools."""
    return ["By train."]


def pay(request: ModelRequest) -> Said:
    """Two calls of the tool at once, then their results."""
    last = request.turns[-1]
    return [" and ".join(last.results)] if last.role == "tool" else [ToolCall("pay", {"amount": n}) for n in (3, 4)]


def settle(request: ModelRequest) -> Said:
    """The same in CrewAI, whose prompt explains how to call a tool."""
    if any(turn.role == "model" for turn in request.turns):
        return ["Thought: I now know the final answer\nFinal Answer: Done: paid 3"]
    return ['Thought: I pay.\nAction: settle\nAction Input: {"amount": 3}']


def solve(_: ModelRequest) -> Said:
    """A call of the tool with which smolagents ends."""
    return [ToolCall("final_answer", {"answer": "42"})]


@dataclass(frozen=True)
class Recipe:
    """An agent of the page, by its name there, and what its model and its client say.

    ``models`` has the step that stores each request to the model, in their order, and ``payments`` those that store the
    payments of these amounts. ``others`` are all other steps.
    """

    name: str
    say: Callable[[ModelRequest], Said]
    answers: list[str]
    final: str
    models: list[str]
    others: Collection[str] = ()
    payments: Mapping[int, str] = field(default_factory=dict)

    @property
    def steps(self) -> set[str]:
        return {*self.models, *self.others, *self.payments.values()}

    def step_of(self, what: str) -> str:
        kind, _, number = what.partition(" ")
        return self.models[int(number)] if kind == "model" else self.payments[int(number)]


RECIPES: Final = [
    Recipe("trip", plan, ["yes"], "By train. Booked: yes", ["play"], ["play#2"]),
    Recipe("crew", settle, ["7"], "Done: paid 3 (7)", ["model", "model#2"], (), {3: "pay"}),
    Recipe("payer", pay, [], "paid 3 and paid 4", ["agent", "agent"], (), {3: "agent > pay", 4: "agent > pay#2"}),
    Recipe("buyer", pay, [], "paid 3 and paid 4", ["model", "model#2"], (), {3: "pay", 4: "pay#2"}),
    Recipe("solver", solve, [], "42", ["agent"]),
]
each = pytest.mark.parametrize("recipe", RECIPES, ids=[recipe.name for recipe in RECIPES])


class Payments(list[int]):
    """What the page's tool has paid."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self._ledger = ledger

    def append(self, amount: int) -> None:
        super().append(amount)
        self._ledger.pay(f"payment {amount}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    """The model of all recipes, and the variables of a container as docs/container.md sets them.

    The frameworks read both when the page is imported or an agent is made.
    """
    with model_server() as made, pytest.MonkeyPatch.context() as environment:
        own = {"HOME": f"{tmp_path_factory.mktemp('home')}", "CREWAI_DISABLE_TELEMETRY": "true"}
        for name, value in (made.environment() | own).items():
            environment.setenv(name, value)
        yield made
    with catch_warnings():
        simplefilter("ignore", ResourceWarning)  # clients of the frameworks that nobody closes
        gc.collect()


@each
def test_each_recipe_gives_its_answer_with_the_calls_of_its_models(recipe: Recipe, server: ModelServer) -> None:
    requests: list[ModelRequest] = []

    def say(request: ModelRequest) -> Said:
        requests.append(request)
        return recipe.say(request)

    server.say = say
    harness = AgentTestHarness(names_of(PAGE)[recipe.name])
    reply = harness.send("cats")
    for answer in recipe.answers:
        assert reply.state == "input-required", reply.error
        reply = harness.send(answer, task_id=reply.task.id)
    assert reply.said == recipe.final, reply.error
    assert len(requests) == len(recipe.models)


@each
def test_a_death_at_any_call_repeats_no_model_and_no_tool_that_is_stored(recipe: Recipe, server: ModelServer) -> None:
    def make(ledger: Ledger) -> Agent:
        def say(request: ModelRequest) -> Said:
            ledger.pay(f"model {sum(turn.role == 'model' for turn in request.turns)}")
            return recipe.say(request)

        server.say = say
        page = names_of(PAGE)
        page["payments"] = Payments(ledger)
        made: Agent = page[recipe.name]
        return made

    def check(played: Played) -> None:
        assert_one_answer(played)
        message = played.task.status.message
        assert message
        assert message.text() == recipe.final
        assert {name for name in played.steps if not name.startswith("@")} == recipe.steps
        assert {f"payment {amount}" for amount in recipe.payments} <= set(played.ledger.paid)

    report = kill_everywhere(Scenario(make, recipe.step_of, recipe.answers, "cats"), check)
    print(f"{recipe.name}: {report.kills.total()} kills, {len(report.wrong)} wrong")
    assert not report.wrong


def test_a_recipe_is_no_longer_than_the_bound() -> None:
    lengths = [sum(map(bool, map(str.strip, block.splitlines()))) for block in blocks_of(PAGE)]
    assert max(lengths) <= LINES, lengths
