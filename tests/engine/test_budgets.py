"""Budgets of tasks: of the agent, of the caller, and handed down to called agents."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import Budget, Message, Part, Task, TaskState, current_task
from a2a_serverless.domain.budgets import METADATA_KEY, reported_amounts
from a2a_serverless.domain.call_records import OpenedCall
from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.domain.model import DAY_MS
from a2a_serverless.domain.record_names import call_name
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.engine.budgets import TaskBudget
from a2a_serverless.protocol.v1 import Role
from a2a_serverless.store import keys
from a2a_serverless.store.stores import agent_pause
from a2a_serverless.testing import CLIENT, AgentTestHarness
from tests.echo import agent_of
from tests.faults.plans import Count as Counted
from tests.faults.plans import kill_at
from tests.frameworks.kills import PORTS
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless import Agent, TaskContext
    from tests.faults.plans import Faults


async def spend(usd: float = 0.0, tokens: int = 0, seconds: float = 1) -> str:
    await asyncio.sleep(seconds)
    await current_task().record_usage("model", cost_usd=usd, input_tokens=tokens)
    return "spent"


def thrifty(work: object, budget: Budget, name: str = "echo") -> Agent:
    return replace(agent_of(work, name), budget=budget)


def begun(harness: AgentTestHarness, budget: object, to: str = "echo") -> Task:
    """A task whose caller sets this budget, at its end."""
    metadata: Any = {METADATA_KEY: budget}
    message = Message(role=Role.USER, message_id=harness.ids.new(), parts=(Part(text="go"),), metadata=metadata)
    task = harness.take(to, message)
    assert isinstance(task, Task)
    harness.settle()
    return harness.reply(task.id, to=to).task


def reason(task: Task) -> dict[str, Any]:
    """Which bound has ended the task, as programs read it."""
    assert task.status.state is TaskState.FAILED
    assert task.status.message
    found: Any = (task.status.message.metadata or {})[METADATA_KEY]
    return dict(found)


async def five_steps(task: TaskContext) -> str:
    for number in range(5):
        await task.step(f"step {number}", spend, 0.1, 100)
    return "all"


@pytest.mark.parametrize(
    ("budget", "why", "text"),
    [
        (Budget(steps=3), {"kind": "steps", "spent": 3, "bound": 3}, "3 of 3 steps"),
        (Budget(tokens=250), {"kind": "tokens", "spent": 300, "bound": 250}, "300 of 250 tokens"),
        (Budget(usd=0.3), {"kind": "usd", "spent": 0.3, "bound": 0.3}, "0.3 of 0.3 USD"),
        (Budget(usd=0.3, steps=1), {"kind": "steps", "spent": 1, "bound": 1}, "1 of 1 steps"),
        (Budget(usd=0), {"kind": "usd", "spent": 0, "bound": 0}, "0 of 0 USD"),
    ],
)
def test_the_agent_s_bound_ends_the_task_before_the_next_step(budget: Budget, why: dict[str, Any], text: str) -> None:
    reply = AgentTestHarness(thrifty(five_steps, budget)).send("go")
    assert reason(reply.task) == {"whose": "agent", **why}
    assert reply.said == f"The budget of the agent is spent: {text}."


def test_spending_the_budget_in_the_last_step_does_not_end_the_task() -> None:
    assert AgentTestHarness(thrifty(five_steps, Budget(usd=0.41))).send("go").said == "all"
    assert AgentTestHarness(thrifty(five_steps, Budget(usd=0.5, tokens=500, steps=5))).send("go").said == "all"


@pytest.mark.parametrize(("agent", "caller", "whose"), [(2, 3, "agent"), (3, 2, "caller"), (None, 2, "caller")])
def test_the_smaller_bound_of_agent_and_caller_counts(agent: int | None, caller: int, whose: str) -> None:
    task = begun(AgentTestHarness(thrifty(five_steps, Budget(steps=agent))), {"steps": caller, "usd": 100})
    assert reason(task) == {"whose": whose, "kind": "steps", "spent": 2, "bound": 2}
    shown: Any = (task.metadata or {})[METADATA_KEY]
    assert shown == {"spent": {"usd": 0.2, "tokens": 200, "steps": 2}, "bounds": {"usd": 100, "steps": 2}}


def test_a_task_without_a_budget_says_nothing_of_one() -> None:
    assert METADATA_KEY not in (AgentTestHarness(agent_of(five_steps)).send("go").task.metadata or {})


@pytest.mark.parametrize(
    "budget",
    [None, 3, [], {"usd": -1}, {"tokens": 1.5}, {"steps": "3"}, {"usd": True}, {"euro": 1}, {"usd": 1e16}, {"usd": {}}],
)
def test_a_caller_s_budget_that_is_none_is_refused_by_its_member(budget: object) -> None:
    with pytest.raises(InvalidParams, match=r"message\.metadata\.a2a-serverless/budget"):
        begun(AgentTestHarness(agent_of(five_steps)), budget)


def test_whole_numbers_may_be_written_as_floats() -> None:
    assert reason(begun(AgentTestHarness(agent_of(five_steps)), {"steps": 2.0}))["bound"] == 2


@pytest.mark.parametrize("bad", [{"usd": -0.1}, {"tokens": 1.5}, {"steps": float("inf")}, {"usd": float("nan")}])
def test_a_budget_of_an_agent_has_bounds_that_can_be_counted(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="of 0 or more"):
        Budget(**bad)  # type: ignore[arg-type]


def test_a_question_is_not_asked_when_the_budget_is_spent() -> None:
    async def work(task: TaskContext) -> str:
        await task.step("one", spend)
        return (await task.ask("Go on?")).text()

    assert reason(AgentTestHarness(thrifty(work, Budget(steps=1))).send("go").task)["kind"] == "steps"


def test_a_question_that_was_asked_within_the_budget_keeps_its_answer() -> None:
    async def work(task: TaskContext) -> str:
        answer = await task.ask("Go on?")
        await task.step("one", spend)
        await task.sleep("nap", 100)
        return answer.text()

    harness = AgentTestHarness(thrifty(work, Budget(steps=1)))
    asked = harness.send("go").task
    assert harness.send("yes", task_id=asked.id).said == "yes"


def test_an_agent_cannot_go_on_after_its_budget_by_catching_the_error() -> None:
    ran: list[str] = []

    async def note(name: str) -> None:
        ran.append(name)

    async def work(task: TaskContext) -> str:
        for name in "abcd":
            with suppress(Exception):  # as some libraries do
                await task.step(name, note, name)
        return "done"

    assert reason(AgentTestHarness(thrifty(work, Budget(steps=2))).send("go").task)["spent"] == 2
    assert ran == ["a", "b"]


def test_parallel_steps_end_at_their_bound_and_what_is_in_flight() -> None:
    ran: list[int] = []

    async def work(task: TaskContext) -> str:
        free = asyncio.Semaphore(3)

        async def one(number: int) -> None:
            async with free:
                await task.step(f"step {number}", spend, 0.1, 0, 1 + number % 3)
                ran.append(number)

        await asyncio.gather(*map(one, range(10)))
        return "all"

    why = reason(AgentTestHarness(thrifty(work, Budget(usd=0.35))).send("go").task)
    assert 0.35 <= why["spent"] <= 0.35 + 3 * 0.1
    assert len(ran) <= 6


def test_ten_parallel_steps_are_as_many_as_the_bound_allows() -> None:
    ran: list[int] = []

    async def note(number: int) -> None:
        ran.append(number)
        await asyncio.sleep(5)

    async def work(task: TaskContext) -> str:
        await asyncio.gather(*(task.step(f"step {number}", note, number) for number in range(10)))
        return "all"

    assert reason(AgentTestHarness(thrifty(work, Budget(steps=4))).send("go").task)["spent"] == 4
    assert ran == [0, 1, 2, 3]


def test_the_agent_reads_the_same_rest_of_its_budget_in_each_run() -> None:
    seen: list[Budget] = []

    async def work(task: TaskContext) -> str:
        await task.step("one", spend, 0.25, 10)
        seen.append(await task.budget_left())
        await task.step("two", spend, 0.25, 10)
        seen.append(await task.budget_left())
        await task.sleep("nap", 100)
        return "rested"

    assert AgentTestHarness(thrifty(work, Budget(usd=1, tokens=15, steps=9))).send("go").said == "rested"
    assert seen[-2:] == [Budget(0.75, 5, 8), Budget(0.5, 0, 7)]
    assert all(left in seen[-2:] for left in seen)


def test_without_a_budget_nothing_bounds_what_is_left() -> None:
    async def work(task: TaskContext) -> str:
        return str(await task.budget_left())

    assert AgentTestHarness(agent_of(work)).send("go").said == str(Budget())


# ---- Handed down


async def parent(task: TaskContext) -> str:
    called = await task.call("work", "child", "go")
    assert isinstance(called, Task)
    return f"{called.status.state.name} {(await task.budget_left())}"


def test_a_called_agent_gets_what_is_left_and_its_spending_counts() -> None:
    async def work(task: TaskContext) -> str:
        await task.step("own", spend, 0.1, 10)
        return await parent(task)

    harness = AgentTestHarness(thrifty(work, Budget(usd=1, tokens=1000, steps=20)), agent_of(five_steps, "child"))
    reply = harness.send("go")
    assert reply.said == f"COMPLETED {Budget(0.4, 490, 14)}"
    shown: Any = (reply.task.metadata or {})[METADATA_KEY]
    assert shown["spent"] == {"usd": 0.6, "tokens": 510, "steps": 6}


def test_a_called_agent_ends_at_the_bound_of_its_caller_s_caller() -> None:
    harness = AgentTestHarness(agent_of(parent), agent_of(five_steps, "child"))
    task = begun(harness, {"usd": 0.25})
    assert task.status.message
    assert task.status.message.text() == f"FAILED {Budget(usd=0)}", "a child that overspends, by its last step"
    shown: Any = (task.metadata or {})[METADATA_KEY]
    assert shown["spent"]["usd"] == 0.3


def test_a_call_may_get_less_but_never_more_than_what_is_left() -> None:
    async def work(task: TaskContext) -> str:
        states = []
        for number, usd in enumerate((0.15, 99)):
            called = await task.call(f"call {number}", "child", "go", budget=Budget(usd=usd))
            assert isinstance(called, Task)
            states.append(reason(called)["bound"])
        return str(states)

    harness = AgentTestHarness(thrifty(work, Budget(usd=0.5)), agent_of(five_steps, "child"))
    assert harness.send("go").said == "[0.15, 0.3]"


def test_parallel_calls_share_the_budget_and_end_at_their_bound() -> None:
    async def work(task: TaskContext) -> str:
        called = await asyncio.gather(
            *(task.call(f"call {n}", "child", "go", budget=Budget(usd=0.3)) for n in range(10))
        )
        return " ".join(one.status.state.name for one in called if isinstance(one, Task))

    harness = AgentTestHarness(thrifty(work, Budget(usd=1)), agent_of(five_steps, "child"))
    task = harness.send("go").task
    assert reason(task)["kind"] == "usd"
    assert 1 <= reason(task)["spent"] <= 1.3


def test_a_call_for_which_nothing_is_left_waits_for_the_calls_that_have_it() -> None:
    async def work(task: TaskContext) -> str:
        called = await asyncio.gather(*(task.call(f"call {n}", "child", "go") for n in range(3)))
        return " ".join(one.status.state.name for one in called if isinstance(one, Task))

    async def nap(task: TaskContext) -> str:
        await task.sleep("nap", 3600)
        return await five_steps(task)

    harness = AgentTestHarness(thrifty(work, Budget(usd=2)), agent_of(nap, "child"))
    task = harness.begin("go")
    assert isinstance(task, Task)
    harness.settle(60_000)
    waits = {(wait.kind, wait.name) for wait in harness.waits(task.id)}
    assert waits == {("call", "call 0"), ("budget", "call 1"), ("budget", "call 2")}
    harness.settle()
    reply = harness.reply(task.id)
    assert reply.said == "COMPLETED COMPLETED COMPLETED"


def test_steps_beside_a_call_are_not_refused_because_of_its_reservation() -> None:
    async def work(task: TaskContext) -> str:
        await asyncio.gather(task.call("work", "child", "go"), task.step("own", spend, 0.1))
        return "both"

    harness = AgentTestHarness(thrifty(work, Budget(usd=2)), agent_of(five_steps, "child"))
    assert harness.send("go").said == "both"


def test_the_share_of_a_call_that_its_agent_drops_is_not_handed_out_again() -> None:
    async def work(task: TaskContext) -> str:
        with suppress(TimeoutError):
            async with task.timeout("patience", 60):
                await task.call("first", "child", "go")
        await task.call("second", "child", "go")
        return "both"

    async def nap(task: TaskContext) -> str:
        await task.sleep("nap", 7200)
        return "rested"

    harness = AgentTestHarness(thrifty(work, Budget(usd=2)), agent_of(nap, "child"))
    assert reason(harness.send("go").task) == {"whose": "agent", "kind": "usd", "spent": 2, "bound": 2}


def test_a_spent_budget_ends_the_task_although_its_agent_waits_for_something_else() -> None:
    async def work(task: TaskContext) -> str:
        await task.step("one", spend)
        await asyncio.gather(task.step("two", spend), task.sleep("nap", 7200), return_exceptions=True)
        return "rested"

    harness = AgentTestHarness(thrifty(work, Budget(steps=1)))
    began = harness.now
    assert reason(harness.send("go").task)["spent"] == 1
    assert harness.runs[-1][2] - began < 60_000


@pytest.mark.parametrize(
    ("records", "left"),
    [
        ((), 2.0),
        (("opened",), 1.5),
        (("opened", "sent"), 1.5),
        (("opened", "failed"), 2.0),
        (("opened", "sent", "failed"), 1.5),
        (("opened", "told", "failed"), 1.5),
        (("opened", "canceled"), 1.5),
        (("opened", "canceled", "sent"), 1.5),
        (("opened", "canceled", "told"), 1.5),
        (("opened", "sent", "done"), 1.75),
    ],
)
def test_a_share_is_reserved_until_its_spending_is_known(records: tuple[str, ...], left: float) -> None:
    name = call_name("work")
    opened: Any = OpenedCall("a", "c", "m", "t", 0, "u", "a", budget={"usd": 0.5}).value
    done: Any = {"task": {"metadata": {METADATA_KEY: {"spent": {"usd": 0.25, "tokens": "many", "steps": -1}}}}}
    values: dict[str, Any] = {"opened": opened, "done": done}
    results = {getattr(name, record): StepResult("", values.get(record, {})) for record in records}
    first, *others = results or [""]
    for order in permutations(others):  # the first record is known first in each run
        budget = TaskBudget(Budget(usd=2))
        for record in filter(None, (first, *order)):
            budget.count(record, results[record], results)
        assert budget.left() == Budget(usd=left)


@pytest.mark.parametrize(
    "answer", [{}, {"task": {}}, {"task": {"metadata": {METADATA_KEY: 3}}}, {"message": {}}, None, 3]
)
def test_an_agent_elsewhere_may_say_nothing_of_its_spending(answer: Any) -> None:
    assert reported_amounts(answer) == {}


# ---- Owner and day


def daily(usd: int, *agents: Agent) -> AgentTestHarness:
    harness = AgentTestHarness(*agents)
    harness.engine = replace(harness.engine, owner_usd=usd)
    return harness


async def dear(task: TaskContext) -> str:
    for number in range(3):
        await task.step(f"step {number}", spend, 0.5)
    return "all"


def test_an_owner_s_tasks_share_one_bound_a_day() -> None:
    harness = daily(2, agent_of(dear))
    assert harness.send("go").said == "all"
    why = reason(harness.send("go").task)
    assert why == {"whose": "owner and day", "kind": "usd", "spent": 2, "bound": 2}
    assert harness.send("go").said == "The budget of the owner and day is spent: 2 of 2 USD."
    harness.wait(DAY_MS)
    assert harness.send("go").said == "all"


def test_the_spending_of_a_long_run_counts_once() -> None:
    async def slow(task: TaskContext) -> str:
        for number in range(4):
            await task.step(f"step {number}", spend, 0.5, 0, 20)
        return "all"

    harness = daily(2, agent_of(slow))
    assert harness.send("go").said == "all"
    assert harness.send("go").said == "The budget of the owner and day is spent: 2 of 2 USD."


def test_the_bound_of_a_day_is_each_owner_s_own_and_each_tenant_s() -> None:
    harness = daily(1, agent_of(dear))
    assert reason(harness.send("go").task)["spent"] == 1
    for other in (replace(CLIENT, owner="somebody"), replace(CLIENT, tenant="other")):
        message = Message(role=Role.USER, message_id=harness.ids.new(), parts=(Part(text="go"),))
        task = harness.take("echo", message, other)
        assert isinstance(task, Task)
        harness.settle()
        assert harness.table.read_spent(other.key(""), harness.now) == 1_000_000


def test_the_counter_expires_after_the_next_day() -> None:
    harness = daily(9, agent_of(dear))
    harness.send("go")
    [item] = harness.table.items.partitions[keys.owner(CLIENT)].values()
    day = harness.now // DAY_MS
    assert (item["used"], item["expires"]) == ({"N": "1500000"}, {"N": str((day + 2) * DAY_MS // 1000)})


def test_called_agents_count_once_for_the_owner() -> None:
    async def work(task: TaskContext) -> str:
        await task.call("work", "child", "go")
        return "both"

    harness = daily(9, thrifty(work, Budget(usd=9)), agent_of(dear, "child"))
    harness.send("go")
    assert harness.table.read_spent(CLIENT.key(""), harness.now) == 1_500_000


def test_without_the_setting_nothing_is_counted_and_nothing_read() -> None:
    harness = AgentTestHarness(agent_of(dear))
    harness.send("go")
    assert keys.owner(CLIENT) not in harness.table.items.partitions


def test_a_death_at_any_call_counts_each_step_once() -> None:
    def play(faults: Faults) -> World:
        world = World([agent_of(dear)], faults)
        world.engine = replace(world.engine, owner_usd=9)
        world.send("go", push=False)
        world.settle()
        return world

    calls = Counted(PORTS)
    play(calls)
    for number in range(1, len(calls.calls) + 1):
        for late in (False, True):
            world = play(kill_at(number, late=late, ports=PORTS))
            assert world.table.read_spent(ME.key(""), world.now) == 1_500_000, (number, late)


def test_a_death_at_any_call_of_parent_or_child_keeps_the_budget_that_was_handed_down() -> None:
    async def work(task: TaskContext) -> str:
        called = await asyncio.gather(*(task.call(f"call {n}", "child", "go", budget=Budget(usd=1)) for n in range(2)))
        return f"{[one.status.state.name for one in called if isinstance(one, Task)]} {await task.budget_left()}"

    def play(faults: Faults) -> str:
        world = World([thrifty(work, Budget(usd=4)), agent_of(dear, "child")], faults)
        task = world.send("go", push=False)
        world.settle()
        said = world.client(lambda: world.get(task.id)).status.message
        return said.text() if said else ""

    calls = Counted(PORTS)
    expected = f"['FAILED', 'FAILED'] {Budget(usd=2.0)}"
    assert play(calls) == expected
    for number in range(1, len(calls.calls) + 1, 4):
        assert play(kill_at(number, late=number % 8 < 4, ports=PORTS)) == expected, number


class TwoWorkers(World):
    workers = 2


def test_a_call_whose_budget_comes_during_a_pause_is_not_made_before_the_pause_is_over() -> None:
    made = list[str]()

    async def work(task: TaskContext) -> None:
        calls = (task.call(f"call {n}", "child", f"go {n}") for n in range(2))
        await asyncio.gather(*calls, task.step("beside", asyncio.sleep, 300))  # so the run looks itself

    async def child(task: TaskContext) -> None:
        made.append(task.text())
        await task.step("work", asyncio.sleep, 60)

    world = TwoWorkers([thrifty(work, Budget(usd=2)), agent_of(child, "child")])
    world.plan(30_000, lambda: world.table.add_pause(agent_pause("echo"), world.now))
    task = world.send("go", push=False)
    world.wait(200_000)
    assert set(made) == {"go 0"}
    world.table.remove_pause(agent_pause("echo"))
    world.settle()
    assert (set(made), world.get(task.id).status.state) == ({"go 0", "go 1"}, TaskState.COMPLETED)
