"""Random agents whose models call tools, and what they must come to, whatever framework they are written in.

A program has three kinds of operations more than those of ``programs``: ``agent`` runs an agent of the framework,
``later`` does so within a step, and ``delegate`` within a tool. ``inner`` of such an operation has the tool calls of
each turn of its model. The ids of tool calls repeat from turn to turn, as those of weak models do, and so do the names
of agents. A model ends with what it heard, so that a result that is read back in a wrong place shows.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.testing.simulated_loop import START, SimulatedLoop
from tests.replay.programs import NAMES, Effects, Operation, Oracle, Player, make_program

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from random import Random

IDS: Final = ("c1", "c2", "c3")
BESIDE: Final = ("step", "repeat", "repeat", "flaky", "emit", "say", "usage")
ALONE: Final = (*BESIDE, "ask", "ask")
BETWEEN: Final = ("ask", "step", "say", "usage", "emit", "sleep")
SILENT: Final = frozenset({"emit"})
"""What only a step that is in no other step can do."""
MOST_TURNS: Final = 2


def make_tool_program(chance: Random) -> list[Operation]:
    """A random program: two or three runs of agents, with other operations in between."""
    operations = list[Operation]()
    for number in range(3):
        label = str(2 * number)
        if number % 2 == 0:
            operations.append(_agent(chance, "agent", label))
        elif chance.random() < 0.5:
            operations.append(_agent(chance, "later", label))
        else:
            kind = chance.choice(BETWEEN)
            name = label if kind == "step" else chance.choice(NAMES)
            operations.append(Operation(kind, label, name))
    return operations


def _agent(chance: Random, kind: str, label: str, *, beside: bool = False) -> Operation:
    """A run of an agent. ``beside`` is whether something else runs at the same time."""
    name, most = chance.choice(NAMES), MOST_TURNS if kind == "agent" else 1
    turns = range(chance.randint(1, most))
    inner = tuple(_turn(chance, f"{label}.{turn}", in_step=kind != "agent", beside=beside) for turn in turns)
    return Operation(kind, label, name, chance.choice([1, 7]), inner)


def _turn(chance: Random, label: str, *, in_step: bool, beside: bool) -> tuple[Operation, ...]:
    calls = 1 if chance.random() < 0.6 else chance.randint(2, 3)
    return tuple(
        _tool(chance, f"{label}.{place}", IDS[place], in_step=in_step, beside=beside or calls > 1)
        for place in range(calls)
    )


def _tool(chance: Random, label: str, use_id: str, *, in_step: bool, beside: bool) -> Operation:
    kind = chance.choice(["work", "work", "guarded"] if in_step else ["work", "work", "guarded", "guarded", "delegate"])
    if kind == "guarded" and in_step and beside:
        kind = "work"
    if kind == "delegate":
        return Operation(kind, label, use_id, inner=((_agent(chance, "nested", f"{label}.", beside=beside),),))
    kinds = tuple(one for one in (BESIDE if beside else ALONE) if not (in_step and one in SILENT))
    return Operation(kind, label, use_id, inner=(tuple(make_program(chance, 1, f"{label}.", kinds)),))


def answer_to(question: str, number: int) -> str:
    """The client's answers: it approves every second time."""
    if "May I" not in question:
        return f"answer {number}"
    return "yes" if number % 2 else f"no {number}"


class ToolPlayer(Player):
    """Plays a program. Each framework has a subclass with ``run_agent``."""

    async def run_agent(self, operation: Operation, *, stream: bool) -> str:
        """Runs the agent, and returns what its model says at last."""
        raise NotImplementedError

    async def play_tool(self, call: Operation, approve: Callable[[], Awaitable[str]] | None = None) -> str:
        """What the call returns to the model. ``approve`` asks the client, if the tool has to do it."""
        if call.kind == "guarded" and approve and (answer := await approve()) != "yes":
            return answer
        return " ".join(leaves(await self.play(call.inner[0])))

    async def _agent(self, operation: Operation) -> str:
        return await self.run_agent(operation, stream=True)

    async def _nested(self, operation: Operation) -> str:
        return await self.run_agent(operation, stream=False)

    async def _later(self, operation: Operation) -> str:
        return str(await self._task.step(f"later {operation.label}", lambda: self._nested(operation)))

    def pay(self, operation: Operation, turn: int) -> None:
        """Notes that a model was paid for a response."""
        self._effects.end(f"{operation.label} turn {turn}")


def last_words(operation: Operation, heard: list[str]) -> list[str]:
    """What a model says when its tools have answered, in pieces."""
    return [f"({operation.label} heard ", f"{'; '.join(heard)})"]


def leaves(value: Any) -> Iterator[str]:
    """The texts in lists of lists."""
    if isinstance(value, list):
        for one in value:
            yield from leaves(one)
    elif value:
        yield str(value)


class _OraclePlayer(ToolPlayer):
    def __init__(self, oracle: Oracle, model: str, approval: str, *, together: bool) -> None:
        super().__init__(oracle, Effects())
        self._together = together
        self._oracle, self._model, self._approval = oracle, model, approval
        self.steps: dict[str, str] = {}

    async def run_agent(self, operation: Operation, *, stream: bool) -> str:
        heard = list[str]()
        for number, turn in enumerate([*operation.inner, ()]):
            self._oracle.usage[self._model] += 1
            if stream:
                self._name_step(operation, number)
            heard += await Rounds(self._put).gather(*(self.play_tool(call, self._approve) for call in turn))
        text = "".join(last_words(operation, heard))
        if stream:
            self._oracle.texts["answer"] = text
        return text

    def _name_step(self, operation: Operation, turn: int) -> None:
        """The n-th request of agents of this name, outside of steps, is the n-th of its step's name."""
        number = 1 + sum(name.startswith(f"{operation.name}#") for name in self.steps.values())
        self.steps[f"{operation.label} turn {turn}"] = f"{operation.name}#{number}"

    async def _approve(self) -> str:
        answer = await ROUNDS.get().interrupt(self._approval)
        return answer if self._together else answer.removeprefix("no ")

    def _put(self, questions: list[str]) -> list[str]:
        asked = self._oracle.asked
        answers = []
        for place, question in enumerate(questions):
            asked.append("\n".join(questions[place:]) if self._together else question)
            answers.append(answer_to(question, len(asked)))
        return answers


class Rounds:
    """Branches that run at once, in the oracle: when each has ended or asks, ``put`` answers the questions in order."""

    def __init__(self, put: Callable[[list[str]], list[str]]) -> None:
        self._put = put
        self._open = 0
        self._asked: dict[int, tuple[str, asyncio.Future[str]]] = {}

    async def gather(self, *branches: Awaitable[Any]) -> list[Any]:
        """The results of the branches."""
        self._open = len(branches)
        return list(await asyncio.gather(*(self._run(place, one) for place, one in enumerate(branches))))

    async def interrupt(self, question: str) -> str:
        """The answer to a question of this branch."""
        future = asyncio.get_running_loop().create_future()
        self._asked[_PLACE.get()] = (question, future)
        self._answer()
        return str(await future)

    async def _run(self, place: int, branch: Awaitable[Any]) -> Any:
        ROUNDS.set(self)
        _PLACE.set(place)
        try:
            return await branch
        finally:
            self._open -= 1
            self._answer()

    def _answer(self) -> None:
        if self._asked and len(self._asked) == self._open:
            asked, self._asked = [self._asked[place] for place in sorted(self._asked)], {}
            for (_, future), answer in zip(asked, self._put([text for text, _ in asked]), strict=True):
                future.set_result(answer)


ROUNDS: ContextVar[Rounds] = ContextVar("rounds")
_PLACE: ContextVar[int] = ContextVar("place")


def tool_outcome_of(
    operations: list[Operation], model: str, approval: str, *, together: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """What a task that plays the operations must come to; and where the responses of its models are stored.

    ``model`` is the name that usage is recorded under, ``approval`` the question whether a tool may be called. With
    ``together`` a question has all approvals of a turn that have no answer, and a denied tool returns the answer; else
    the model hears why the client denies.
    """
    clock = [START]

    def wait(ms: int) -> None:
        clock[0] += ms

    oracle = Oracle()
    player = _OraclePlayer(oracle, model, approval, together=together)
    loop = SimulatedLoop(lambda: clock[0], wait)
    try:
        answer = loop.run_until_complete(player.play(operations))
    finally:
        loop.close()
    outcome = {
        "answer": " ".join(leaves(answer)),
        "asked": oracle.asked,
        "progress": Counter(oracle.progress),
        "artifacts": oracle.texts,
        "usage": dict(oracle.usage),
    }
    return outcome, player.steps
