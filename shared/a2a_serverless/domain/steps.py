"""The options of a step: retries, and the codec of its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json

T = TypeVar("T")


class Codec(Protocol[T]):
    """Converts a step's result to a JSON value and back. ``load`` must return a value equal to the one dumped."""

    def dump(self, value: T) -> Json:
        """The JSON value to store; raises for a value that cannot be stored."""

    def load(self, stored: Json) -> T:
        """The value that was dumped; raises for any other."""


@dataclass(frozen=True, slots=True)
class Retry:
    """When a step that raises is tried again: ``tries`` (1 to 100) in all.

    The pause after the first try has ``first_s`` seconds. Each later one is ``factor`` (1 to 10) times as long, and has
    ``most_s`` seconds at most. No try begins later than ``total_s`` seconds after the first one. ``never`` are classes
    of errors that are raised at once; so are ``TaskFailed`` and ``TaskRejected``. Raises ValueError for other numbers.
    """

    tries: int = 3
    first_s: float = 1.0
    factor: float = 2.0
    most_s: float = 60.0
    total_s: float | None = None
    never: tuple[type[Exception], ...] = ()

    def __post_init__(self) -> None:
        """Checks the numbers."""
        times = (self.first_s, self.most_s, self.total_s or 0)
        if not (1 <= self.tries <= 100 and 1 <= self.factor <= 10 and all(0 <= time < float("inf") for time in times)):  # noqa: PLR2004 - as documented
            raise ValueError("A retry has 1 to 100 tries, a factor from 1 to 10, and times of 0 seconds or more.")
        if self.first_s > self.most_s:
            raise ValueError("The first pause of a retry (first_s) is longer than the longest one (most_s).")


@dataclass(frozen=True, slots=True)
class Step:
    """The name of a step, with options. It takes the place of the name in ``TaskContext.step``.

    With ``repeat`` the name may be used again: the second use is stored as ``name#2``, and so on, in the order of the
    calls. Two that run at the same time raise ``StepConflict``, because their order could differ in a later run.
    ``codec`` stores results that are no JSON values. A step that ``waits`` does no work of its own: while it runs, the
    task may be suspended because its calls wait, and then the step runs again. ``tool`` is the name of the tool whose
    call the step is, for traces. With ``retry`` a step that raises is tried again; each try that has ended is stored.
    """

    name: str
    repeat: bool = False
    codec: Codec[Any] | None = None
    waits: bool = False
    tool: str = ""
    retry: Retry | None = None
