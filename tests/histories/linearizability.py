"""Whether concurrent operations can be put in one order, which respects real time and a sequential specification.

The algorithm is that of Wing and Gong (1993): take any operation that no other one has to precede, apply it to the
specification, go on with the rest, and go back when that leads nowhere. Pairs of a set of operations and a state that
were tried before are not tried again (Lowe, 2017). A read that fits the current state is taken at once: it changes
nothing, and leaves fewer operations. The search is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

S = TypeVar("S", bound="Hashable")
LIMIT: Final = 200_000


@dataclass(frozen=True, slots=True)
class Step(Generic[S]):
    """An atomic part of an operation; ``apply`` returns the next state, or None if it is not possible in a state.

    ``invoked`` and ``completed`` bound the time at which it took effect; an ``optional`` one need not have done so.
    ``after`` is the index of the step of the same operation that comes before it.
    """

    text: str
    invoked: float
    completed: float
    apply: Callable[[S], S | None]
    is_read: bool = False
    optional: bool = False
    after: int | None = None


@dataclass(frozen=True)
class Specification(Generic[S]):
    """A sequential object. ``go_on`` returns what may follow a state by itself; ``is_final`` accepts the last state."""

    start: S
    go_on: Callable[[S], S | None] = lambda _: None
    is_final: Callable[[S], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class Verdict:
    """``problem`` is empty if there is an order; else it says what could not be placed. ``tried`` counts the states."""

    problem: str
    tried: int


def linearize(steps: Sequence[Step[S]], specification: Specification[S], limit: int = LIMIT) -> Verdict:
    """Looks for an order of the steps."""
    search = _Search(steps, specification)
    waiting = [(0, specification.start)]
    tried: set[tuple[int, S]] = set()
    while waiting and len(tried) < limit:
        done, state = search.take_reads(*waiting.pop())
        if (done, state) in tried:
            continue
        tried.add((done, state))
        if search.is_over(done, state):
            return Verdict("", len(tried))
        waiting += search.follow(done, state)
    return Verdict("undecided" if waiting else search.explain(), len(tried))


class _Search(Generic[S]):
    """``done`` is a set of steps, as bits."""

    def __init__(self, steps: Sequence[Step[S]], specification: Specification[S]) -> None:
        self._steps, self._specification = steps, specification
        self._needed = sum(1 << at for at, step in enumerate(steps) if not step.optional)
        self._furthest: tuple[int, int, S] = (-1, 0, specification.start)

    def is_over(self, done: int, state: S) -> bool:
        missing = self._needed & ~done
        if (done & self._needed).bit_count() >= self._furthest[0]:
            self._furthest = ((done & self._needed).bit_count(), done, state)
        return not missing and self._specification.is_final(state)

    def take_reads(self, done: int, state: S) -> tuple[int, S]:
        """Takes every read that may come next and fits the state."""
        while True:
            before = done
            for at, step in self._next(done):
                if step.is_read and step.apply(state) is not None:
                    done |= 1 << at
            if done == before:
                return done, state

    def follow(self, done: int, state: S) -> Iterator[tuple[int, S]]:
        """What may follow: the specification goes on by itself, or a step that changes the state."""
        if (after := self._specification.go_on(state)) is not None:
            yield done, after
        for at, step in self._next(done):
            if not step.is_read and (after := step.apply(state)) is not None:
                yield done | 1 << at, after

    def _next(self, done: int) -> list[tuple[int, Step[S]]]:
        """The steps that no other one has to precede."""
        left = [(at, step) for at, step in enumerate(self._steps) if not done >> at & 1]
        first_end = min((step.completed for _, step in left if not step.optional), default=inf)
        begun = max((step.invoked for at, step in enumerate(self._steps) if done >> at & 1), default=-inf)
        return [
            (at, step)
            for at, step in left
            if step.invoked <= first_end and step.completed >= begun and (step.after is None or done >> step.after & 1)
        ]

    def explain(self) -> str:
        _, done, state = self._furthest
        left = [step for at, step in self._next(done) if not step.optional]
        texts = "; ".join(step.text for step in sorted(left, key=lambda step: step.completed)[:3])
        return f"in state {state!r} there is no place for: {texts or 'the end'}"
