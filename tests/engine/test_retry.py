"""Steps that are tried again: how often, when, after which errors, and over runs that die."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import Retry, Step, StepFailed, Task, TaskFailed, TaskRejected, TaskState
from a2a_serverless.domain.timeline import Span, SpanKind, step_spans
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.testing import CLIENT, AgentTestHarness
from tests.echo import agent_of
from tests.faults.plans import Count, kill_at
from tests.frameworks.kills import PORTS
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless import TaskContext
    from a2a_serverless.testing import Reply
    from tests.faults.plans import Faults

LATER = Retry(tries=4, first_s=60, factor=3, most_s=100)


class Limited(Exception):
    """The service has no room. It makes its text of its arguments."""

    def __init__(self, after_s: int) -> None:
        super().__init__(f"come again in {after_s} s")
        self.after_s = after_s


@dataclass
class Flaky:
    """Raises the errors, one at each try, and then works. ``at`` are the seconds of the tries."""

    errors: list[Exception]
    takes_s: float = 0
    at: list[int] = field(default_factory=list)
    harness: AgentTestHarness | None = None
    began: int = 0

    async def work(self) -> str:
        if self.harness:
            self.at.append((self.harness.now - self.began) // 1000)
        await asyncio.sleep(self.takes_s)
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    def play(self, work: Callable[[TaskContext], Awaitable[object]]) -> Reply:
        self.harness = AgentTestHarness(agent_of(work))
        self.began = self.harness.now
        return self.harness.send("go")


def trying(flaky: Flaky, retry: Retry) -> Callable[[TaskContext], Awaitable[str]]:
    async def work(task: TaskContext) -> str:
        try:
            return str(await task.step(Step("look", retry=retry), flaky.work))
        except OSError as error:
            return f"not done: {error}"

    return work


def test_a_step_that_raises_is_tried_again_after_pauses_that_grow_up_to_a_limit() -> None:
    flaky = Flaky([OSError("a"), OSError("b"), OSError("c"), OSError("d")])
    assert flaky.play(trying(flaky, Retry(tries=5, first_s=1, factor=3, most_s=5))).said == "done"
    assert flaky.at == [0, 1, 4, 9, 14]


def test_after_the_last_try_its_error_is_raised() -> None:
    flaky = Flaky([OSError("one"), OSError("two"), OSError("three")])
    assert flaky.play(trying(flaky, Retry(tries=2))).said == "not done: two"
    assert len(flaky.at) == 2


@pytest.mark.parametrize("pause_s", [10, 11])
def test_a_pause_of_more_than_ten_seconds_suspends_the_task(pause_s: int) -> None:
    flaky = Flaky([OSError("away")])
    assert flaky.play(trying(flaky, Retry(first_s=pause_s))).said == "done"
    assert flaky.harness
    assert len(flaky.harness.runs) == 1 + (pause_s > 10)
    assert flaky.at[1] in range(pause_s, pause_s + 3)


def test_a_suspended_task_says_which_try_it_waits_for_and_until_when() -> None:
    flaky = Flaky([OSError("away")])

    async def work(task: TaskContext) -> None:
        with task.scope("outer"):
            await trying(flaky, LATER)(task)

    harness = AgentTestHarness(agent_of(work))
    task = harness.begin("go")
    assert isinstance(task, Task)
    harness.settle(30_000)
    (wait,) = harness.waits(task.id)
    assert (wait.kind, wait.name) == ("retry", "outer > look/2")
    assert wait.until is not None
    assert wait.until - wait.since in range(59_000, 60_001)


def test_no_try_begins_when_the_time_for_all_of_them_is_over() -> None:
    flaky = Flaky([OSError(str(number)) for number in range(9)], takes_s=5)
    assert flaky.play(trying(flaky, Retry(tries=9, first_s=20, factor=1, total_s=60))).said == "not done: 2"
    assert [at // 2 for at in flaky.at] == [0, 12, 25]


def test_no_try_is_waited_for_beyond_the_life_of_the_task() -> None:
    flaky = Flaky([OSError("away")])
    years = 10.0 * 365 * 86_400
    assert flaky.play(trying(flaky, Retry(first_s=years, most_s=years))).said == "not done: away"


@pytest.mark.parametrize("final", [TaskRejected("no"), TaskFailed("broken"), KeyError("x"), LookupError("x")])
def test_an_error_of_the_author_s_decision_or_of_a_class_in_never_is_raised_at_once(final: Exception) -> None:
    flaky, caught = Flaky([final]), list[str]()

    async def work(task: TaskContext) -> str:
        try:
            await task.step(Step("look", retry=replace(LATER, never=(LookupError,))), flaky.work)
        except (TaskRejected, TaskFailed, LookupError) as error:
            caught.append(repr(error))
        await task.ask("Go on?")
        return "over"

    asked = flaky.play(work)
    assert flaky.harness
    assert flaky.harness.send("yes", task_id=asked.task.id).said == "over"
    assert (len(flaky.at), caught) == (1, [repr(final)] * 2)


def unnamed(text: str) -> Exception:
    class Unnamed(LookupError):
        """Nobody finds it by its name."""

    return Unnamed(text)


@pytest.mark.parametrize("never", [(), (LookupError,)])
def test_an_error_of_which_no_copy_can_be_made_is_a_step_failed_in_each_run_and_no_try_runs_again(never: Any) -> None:
    flaky, caught = Flaky([unnamed("no") for _ in range(9)]), list[tuple[str, object]]()

    async def work(task: TaskContext) -> str:
        try:
            await task.step(Step("look", retry=Retry(tries=3, first_s=20, never=never)), flaky.work)
        except StepFailed as failed:
            caught.append((str(failed), failed.__cause__))
        await task.ask("Go on?")
        return "over"

    asked = flaky.play(work)
    assert flaky.harness
    assert flaky.harness.send("yes", task_id=asked.task.id).said == "over"
    assert len(flaky.at) == (1 if never else 3)
    said = (
        "The step 'look' raised unnamed.<locals>.Unnamed, which a later run cannot raise again. Catch it in the step,"
        " and raise an error of your project."
    )
    assert caught == [(said, None)] * 2


class Full(TaskFailed):
    """A decision of the author's, which makes its text of its arguments."""

    def __init__(self, seats: int) -> None:
        super().__init__(f"all {seats} seats are taken")


def test_a_reason_for_the_client_keeps_its_type_and_its_text() -> None:
    flaky, caught = Flaky([Full(3)] * 9), list[str]()

    async def work(task: TaskContext) -> None:
        try:
            await task.step(Step("book", retry=LATER), flaky.work)
        except TaskFailed as failed:
            caught.append(repr(failed))
            await task.ask("Go on?")
            raise

    asked = flaky.play(work)
    assert flaky.harness
    ended = flaky.harness.send("yes", task_id=asked.task.id)
    assert (ended.state, ended.said, len(flaky.at)) == (TaskState.FAILED, "all 3 seats are taken", 1)
    assert caught == ["Full('all 3 seats are taken')"] * 2


def test_a_step_without_retry_raises_an_error_of_the_same_type() -> None:
    flaky = Flaky([Limited(3)])

    async def work(task: TaskContext) -> str:
        with suppress(Limited):
            await task.step("look", flaky.work)
        return "caught"

    assert flaky.play(work).said == "caught"


def test_an_error_whose_class_a_deployment_has_removed_is_a_step_failed_and_its_step_does_not_run_again() -> None:
    flaky, caught = Flaky([OSError("away")] * 9), list[str]()

    async def work(task: TaskContext) -> str:
        try:
            await task.step("look", flaky.work)
        except (OSError, StepFailed) as error:
            caught.append(type(error).__name__)
        await task.ask("Go on?")
        return "over"

    asked = flaky.play(work)
    assert flaky.harness
    key = CLIENT.key(asked.task.id)
    name, stored = next(pair for pair in flaky.harness.table.read_steps(key).items() if pair[0].startswith("@raised/"))
    removed = replace(stored, value=["builtins", "RemovedError", []])
    items = flaky.harness.table
    items.read_steps = lambda of, read=items.read_steps: {**read(of), **({name: removed} if of == key else {})}
    assert flaky.harness.send("yes", task_id=asked.task.id).said == "over"
    assert (caught, len(flaky.at)) == (["OSError", "StepFailed"], 1)


def test_no_error_with_a_secret_is_stored_and_its_try_does_not_run_again() -> None:
    ran = list[int]()

    async def work(task: TaskContext) -> str:
        await task.secret("weather")

        async def leak() -> str:
            ran.append(1)
            if len(ran) < 3:
                raise OSError("the key is hush-hush")
            return "done"

        return await task.step(Step("leak", retry=LATER), leak)

    harness = AgentTestHarness(agent_of(work))
    harness.engine = replace(harness.engine, read_secret=lambda _: "hush-hush")
    reply = harness.send("go")
    assert (reply.said, len(ran)) == ("done", 3)
    values = [str(one.value) for one in harness.table.read_steps(CLIENT.key(reply.task.id)).values()]
    assert not any("hush" in value for value in values)


def test_each_try_replaces_what_the_one_before_has_emitted_and_counts_its_own_usage() -> None:
    tries = list[int]()

    async def stream(task: TaskContext) -> None:
        tries.append(1)
        await task.record_usage("model", tokens=1)
        await task.emit("text", f"try {len(tries)} ", append=True)
        if len(tries) == 1:
            await task.emit("note", "only here")
        await asyncio.sleep(1)
        if len(tries) < 3:
            raise OSError
        await task.emit("text", "whole", append=True)

    async def work(task: TaskContext) -> None:
        await task.step(Step("write", retry=LATER), partial(stream, task))
        await task.ask("Go on?")

    harness = AgentTestHarness(agent_of(work))
    asked = harness.send("go")
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.text("text"), reply.text("note")) == ("try 3 whole", "")
    assert (reply.task.metadata or {})["a2a-serverless/usage"] == {"model": {"tokens": 3}}


def test_a_second_try_of_a_step_tries_the_steps_in_it_again_that_raised_and_no_others() -> None:
    ran = Counter[str]()

    async def pay() -> str:
        ran["pay"] += 1
        return "paid"

    async def send() -> str:
        ran["send"] += 1
        if ran["send"] < 5:
            raise OSError("away")
        return "sent"

    async def order(task: TaskContext) -> list[str]:
        ran["order"] += 1
        return [await task.step("pay", pay), await task.step(Step("send", retry=Retry(tries=2)), send)]

    async def work(task: TaskContext) -> str:
        return " ".join(await task.step(Step("order", retry=LATER), partial(order, task)))

    harness = AgentTestHarness(agent_of(work))
    assert harness.send("go").said == "paid sent"
    assert (ran["pay"], ran["send"]) == (1, 5)


@pytest.mark.parametrize("pause_s", [5, 60])
def test_an_inline_agent_whose_retry_waits_for_long_goes_on_in_the_worker(pause_s: float) -> None:
    flaky = Flaky([OSError("away")])
    world = World([replace(agent_of(trying(flaky, Retry(first_s=pause_s))), runs="inline")])
    task = world.send("go", push=False)
    EngineInlineRunner(world.engine, world.play).run(ME.key(task.id), 20_000)
    ended = world.get(task.id).status.state is TaskState.COMPLETED
    assert ended == (pause_s < 10), "the request waits for a short pause"
    world.settle()
    assert world.get(task.id).status.state is TaskState.COMPLETED
    assert flaky.errors == []


def test_steps_beside_each_other_wait_together_and_each_has_its_own_tries() -> None:
    flaky = {name: Flaky([OSError(name) for _ in range(count)]) for name, count in (("a", 1), ("b", 3))}

    async def work(task: TaskContext) -> str:
        steps = [task.step(Step(name, retry=LATER), one.work) for name, one in flaky.items()]
        return " ".join(await asyncio.gather(*steps))

    harness = AgentTestHarness(agent_of(work))
    assert harness.send("go").said == "done done"
    assert len(harness.runs) == 4


def test_a_time_limit_ends_a_pause_and_the_step_does_not_begin_again() -> None:
    flaky = Flaky([OSError("away")] * 9)

    async def work(task: TaskContext) -> str:
        try:
            async with task.timeout("limit", 30):
                await task.step(Step("look", retry=LATER), flaky.work)
        except TimeoutError:
            await task.sleep("afterwards", 1000)
            return "too late"
        return "never"

    assert flaky.play(work).said == "too late"
    assert len(flaky.at) == 1


def test_a_pause_that_loses_a_race_to_a_sleep_is_not_gone_on_with() -> None:
    flaky = Flaky([OSError("away")] * 9)

    async def work(task: TaskContext) -> str:
        look = asyncio.ensure_future(task.step(Step("look", retry=LATER), flaky.work))
        nap = asyncio.ensure_future(task.sleep("nap", 20))
        done, _ = await asyncio.wait({look, nap}, return_when=asyncio.FIRST_COMPLETED)
        look.cancel()
        await task.ask("Go on?")
        return "slept" if done == {nap} else "looked"

    asked = flaky.play(work)
    assert flaky.harness
    flaky.harness.wait(200_000)
    assert flaky.harness.send("yes", task_id=asked.task.id).said == "slept"
    assert len(flaky.at) == 1


def test_the_tries_are_in_the_timeline_and_the_last_one_is_the_failed_step() -> None:
    flaky = Flaky([OSError("a"), KeyError("b")], takes_s=2)

    async def work(task: TaskContext) -> None:
        await task.step(Step("look", retry=Retry(tries=2)), flaky.work)

    reply = flaky.play(work)
    assert reply.state is TaskState.FAILED
    assert flaky.harness
    spans = step_spans(flaky.harness.table.list_step_times(CLIENT.key(reply.task.id), 100))
    assert [(span.kind, span.name, span.error) for span in spans] == [
        (SpanKind.RAISED, "look", "OSError"),
        (SpanKind.FAILED, "look", "KeyError"),
    ]
    assert [_seconds(span) for span in spans] == [2, 2]


def _seconds(span: Span) -> int:
    assert span.ended_at
    return (span.ended_at - span.began_at) // 1000


@pytest.mark.parametrize(
    "wrong",
    [
        {"tries": 0},
        {"tries": 101},
        {"factor": 0.5},
        {"factor": 11},
        {"first_s": -1},
        {"most_s": float("nan")},
        {"total_s": float("inf")},
    ],
)
def test_a_retry_has_numbers_within_bounds(wrong: Any) -> None:
    with pytest.raises(ValueError, match="1 to 100 tries"):
        Retry(**wrong)


def test_the_first_pause_of_a_retry_is_not_longer_than_the_longest_one() -> None:
    with pytest.raises(ValueError, match="most_s"):
        Retry(first_s=300)


# ---- Deaths


def played(faults: Faults, pause_s: float, tries: Counter[str]) -> str:
    """What the task says in the end. Each of its two steps raises twice."""
    world = World([agent_of(None)], faults)

    async def look(name: str, task: str) -> str:
        ended = sum(one.startswith(f"@raised/{name}/") for one in world.table.read_steps(ME.key(task)))
        tries[name] += 1
        await asyncio.sleep(1)
        if ended < 2:
            raise Limited(ended) if name == "a" else OSError(name)
        return f"{name} at try {ended + 1}"

    async def work(task: TaskContext) -> str:
        retry = Retry(tries=3, first_s=pause_s, factor=1)
        steps = [task.step(Step(name, retry=retry), look, name, task.id) for name in "ab"]
        return ", ".join(await asyncio.gather(*steps))

    world.agents["echo"] = agent_of(work)
    task = world.send("go", push=False)
    world.settle()
    message = world.client(lambda: world.get(task.id)).status.message
    return message.text() if message else ""


@pytest.mark.parametrize("pause_s", [2, 30])
def test_rule_07_a_death_at_any_call_pays_no_try_twice_that_has_ended(pause_s: float) -> None:
    calls, tries = Count(PORTS), Counter[str]()
    said = "a at try 3, b at try 3"
    assert played(calls, pause_s, tries) == said
    assert tries == {"a": 3, "b": 3}
    for number in range(1, len(calls.calls) + 1):
        for late in (False, True):
            tries = Counter[str]()
            assert played(kill_at(number, late=late, ports=PORTS), pause_s, tries) == said, (number, late)
            assert max(tries.values()) <= 4, "the death interrupts one try of each step at most"
