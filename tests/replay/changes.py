"""Random changes of random agents, and what the engine does to a task that waits: the oracle of rehearsals."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from a2a_serverless.domain.record_names import TIMER
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless.testing.harness import CLIENT
from tests.echo import agent_of

if TYPE_CHECKING:
    from random import Random

    from a2a_serverless import Agent, TaskContext
    from a2a_serverless.testing.rehearsal_report import Rehearsal

KINDS: Final = (
    *("step", "step", "step", "chained", "chained", "ask", "ask", "sleep", "say", "emit", "call", "now", "value"),
    *("both", "race", "scope", "branch", "caught", "remind", "repeat", "usage"),
)
CHANGES: Final = ("rename", "rename", "insert", "insert", "remove", "swap", "arguments", "text", "wrap", "end", "raise")
MOST_ANSWERS: Final = 12


@dataclass(frozen=True)
class Act:
    """An act. ``label`` stays when the act is renamed; ``name`` is what the engine knows."""

    kind: str
    label: str
    name: str
    argument: str = ""
    inner: tuple[Act, ...] = ()

    def __str__(self) -> str:
        inner = f"[{' '.join(map(str, self.inner))}]" if self.inner else ""
        return f"{self.kind}:{self.label}:{self.name}:{self.argument}{inner}"


Acts: TypeAlias = tuple[Act, ...]


@dataclass
class Work:
    """An agent that plays acts. ``done`` counts the effects by label, those of the old code and of the new one."""

    acts: Acts
    done: Counter[str] = field(default_factory=Counter)

    @property
    def agent(self) -> Agent:
        return agent_of(self._work)

    async def _effect(self, label: str, *_: object) -> str:
        self.done[label] += 1
        await asyncio.sleep(1)
        return f"result of {label}"

    async def _work(self, task: TaskContext) -> str:
        return " ".join([str(one) for one in await self._play(task, self.acts, ["first"])])

    async def _play(self, task: TaskContext, acts: Acts, results: list[Any]) -> list[Any]:
        for act in acts:
            results.append(await self._do(task, act, results))
        return results

    async def _do(self, task: TaskContext, act: Act, results: list[Any]) -> Any:  # noqa: C901, PLR0911, PLR0912 - a table
        work = partial(self._effect, act.label)
        match act.kind:
            case "step" | "repeat":
                return await task.step(act.name, work, act.argument)
            case "chained":
                return await task.step(act.name, work, results[-1], act.argument)
            case "ask":
                return (await task.ask(question_of(act))).text()
            case "remind":
                return (await task.ask(question_of(act), remind_s=3600)).text()
            case "sleep":
                await task.sleep(act.name, 600)
            case "say":
                await task.report_progress(f"say {act.name}")
            case "emit":
                await task.emit(f"artifact {act.name}", act.argument or "text")
            case "call":
                called: Any = await task.call(act.name, "child", f"{act.label} {act.argument}")
                return called.status.message.text()
            case "now":
                return (await task.now(act.name)).isoformat()
            case "value":
                await task.store.put(act.name, act.argument)
            case "usage":
                await task.record_usage("model", tokens=1)
            case "scope":
                with task.scope(act.name):
                    return (await self._play(task, act.inner, [act.argument]))[-1]
            case "both":
                played = (self._play(task, (one,), [act.argument]) for one in act.inner)
                return [one[-1] for one in await asyncio.gather(*played)]
            case "race":
                racing = [asyncio.ensure_future(self._play(task, (one,), [act.argument])) for one in act.inner]
                done, others = await asyncio.wait(racing, return_when=asyncio.FIRST_COMPLETED)
                for other in others:
                    other.cancel()
                await asyncio.gather(*others, return_exceptions=True)
                return min(one.result()[-1] for one in done)
            case "branch":
                if "result" in str(results[-1]):
                    return (await self._play(task, act.inner, [act.argument]))[-1]
            case "caught":
                with suppress(LookupError):
                    return await task.step(act.name, partial(self._fail, act.label), act.argument)
            case "raise":
                raise ValueError(act.label)
        return act.label

    async def _fail(self, label: str, *_: object) -> str:
        self.done[label] += 1
        raise LookupError(label)


def question_of(act: Act) -> str:
    """The question of an act: as unlike those of others as people's are."""
    return f"{act.label}? {sha256(act.label.encode()).hexdigest()[:24]} {act.argument}"


def make_acts(chance: Random, prefix: str = "", depth: int = 0) -> Acts:
    """A random agent's acts."""
    count = chance.randint(2, 6) if depth == 0 else chance.randint(1, 2)
    acts = [make_act(chance, f"{prefix}{number}", depth) for number in range(count)]
    if depth == 0:
        acts.insert(chance.randint(1, len(acts)), Act(chance.choice(["ask", "ask", "remind"]), "q", "q"))
    return tuple(acts)


def make_act(chance: Random, label: str, depth: int = 0) -> Act:
    """A random act."""
    kind = chance.choice(KINDS)
    if depth and kind in {"both", "race", "scope", "branch", "ask", "remind"}:
        kind = "step"
    inner: Acts = ()
    if kind in {"scope", "branch"}:
        inner = make_acts(chance, f"{label}.", 1)
    if kind in {"both", "race"}:
        inner = tuple(Act("step", f"{label}.{number}", f"{label}.{number}") for number in range(2))
    return Act(kind, label, f"n{label}", chance.choice(["", "x", "y"]), inner)


def change(chance: Random, acts: Acts, kinds: tuple[str, ...] = CHANGES) -> Acts:  # noqa: PLR0911 - one for each change
    """The acts with one random change."""
    at = chance.randrange(len(acts))
    act, before, after = acts[at], acts[:at], acts[at + 1 :]
    if act.inner and chance.random() < 0.5 and act.kind not in {"both", "race"}:
        return (*before, replace(act, inner=change(chance, act.inner, CHANGES[:-1])), *after)
    match chance.choice(kinds):
        case "rename":
            return (*before, replace(act, name=f"{act.name}!"), *after)
        case "insert":
            return (*before, make_act(chance, f"new{chance.randrange(100)}"), act, *after)
        case "remove":
            return (*before, *after) if len(acts) > 1 else acts
        case "swap":
            return (*before, *after[:1], act, *after[1:])
        case "arguments" | "text":
            return (*before, replace(act, argument=f"{act.argument}+"), *after)
        case "wrap":
            return (*before, Act("scope", f"s{act.label}", f"s{act.label}", inner=(act,)), *after)
        case "end":
            return (*before, *after, act)
    # In front of all: what fails behind the wait is not seen.
    return (Act("raise", "raised", "raised"), *acts)


async def child(task: TaskContext) -> str:
    """The called agent."""
    await task.sleep("for a while", 60)
    return f"child of {task.text()}"


@dataclass(frozen=True)
class Outcome:
    """What the rehearsal says, and what the engine then does: "fails", "again" or "goes on"."""

    rehearsal: Rehearsal
    engine: str
    why: str


def compare(old: Acts, new: Acts, answers: int) -> Outcome | None:
    """Plays the old acts until a question after ``answers`` answers, then the new ones; None if nothing waits."""
    done, children = Counter[str](), Counter[str]()

    async def count(task: TaskContext) -> str:
        return await child(task)

    harness = AgentTestHarness(Work(old, done).agent, agent_of(count, "child"), replay=False)  # counts executions
    task = harness.send("hello", until_question=True).task
    for number in range(answers):
        if not _is_asked(harness, task.id):
            break
        harness.send(f"answer {number}", task_id=task.id, until_question=True)
    if not _is_asked(harness, task.id):
        return None
    found = [one for one in harness.rehearse(Work(new, Counter()).agent) if one.task == task.id]
    before, asked, timers = Counter(done), _asked(harness, task.id), _timers(harness, task.id)
    harness.deploy(Work(new, done).agent)
    for number in range(MOST_ANSWERS):
        if not _is_asked(harness, task.id):
            break
        harness.send(f"later answer {number}", task_id=task.id, until_question=True)
    again = [label for label in before if done[label] > before[label]]
    asked_later = _asked(harness, task.id)
    again += [label for label in asked if asked_later[label] > asked[label]]
    later_timers = _timers(harness, task.id)
    again += [name for name in timers if later_timers[name] > timers[name]]
    for other in harness.tasks():
        if other.agent == "child":
            text = harness.reply(other.task, to="child").task.history[0].text()
            children[text.partition(" ")[0]] += 1
    again += [label for label, count_ in children.items() if count_ > 1]
    state = harness.reply(task.id).state
    engine = "fails" if state == "failed" else "again" if again else "goes on"
    return Outcome(found[0], engine, f"{again} {harness.reply(task.id).error!r}")


def _is_asked(harness: AgentTestHarness, task: str) -> bool:
    return harness.reply(task).state == "input-required"


def _asked(harness: AgentTestHarness, task: str) -> Counter[str]:
    """How often the client was asked each question, reminders counted once."""
    log = harness.table.read_log(CLIENT.key(task))
    assert log
    events: list[Any] = [event for event in log[1] if getattr(event, "state", "") == "input-required"]
    return Counter(event.message.text().partition("?")[0] for event in events)


def _timers(harness: AgentTestHarness, task: str) -> Counter[str]:
    """The sleeps, by their first names, without scopes."""
    names = [name.rpartition(" > ")[2] for name in harness.table.read_steps(CLIENT.key(task)) if TIMER in name]
    return Counter(name.removeprefix(TIMER).rstrip("!") for name in names if "sleep:" in name)
