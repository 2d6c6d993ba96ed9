"""The stored results of steps, and their order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.usage import Usage

MOMENT_BITS: Final = 20


@dataclass(frozen=True, slots=True)
class StepResult:
    """The stored result of a named step; the first write wins. ``arguments`` is a digest of the step's arguments.

    ``attempt`` marks the chunks of the log that belong to it (``ArtifactEvent.attempt``), ``sequence`` orders the
    endings of steps and waits (``engine.endings``), and ``usage`` is the models' usage in it. ``moment`` is its place
    in the order of the results that runs have stored one by one: above its ``MOMENT_BITS`` lowest bits it is the number
    of the last event before it. ``fence`` is that of the run which stored it, 0 for any other writer, and ``seen`` the
    latest moment of the results that this run read at its beginning. Times are ms. ``error`` (the class of the
    exception that ended a failed step) is written and not read back with the result: ``TaskLog.list_step_times`` lists
    it.
    """

    arguments: str
    value: Json
    attempt: int = 0
    sequence: int = 0
    usage: Usage = field(default_factory=dict)
    began_at: int = field(default=0, compare=False)
    ended_at: int = field(default=0, compare=False)
    error: str = field(default="", compare=False)
    moment: int = field(default=0, compare=False)
    fence: int = field(default=0, compare=False)
    seen: int = field(default=0, compare=False)


NamedResult: TypeAlias = tuple[str, StepResult]
"""A result and the name under which it is stored."""


def late_names(results: Mapping[str, StepResult]) -> list[str]:
    """The names of the results that do not count: a later run has stored something and had not read them.

    A process may stand still within a write that began under its lease. The write then comes after the next run has
    read what is stored, and has perhaps done something else.
    """
    stored = [result for result in results.values() if result.fence]
    return [
        name
        for name, late in results.items()
        if late.fence and any(late.fence < other.fence and other.seen < late.moment for other in stored)
    ]


class StoredError(NamedTuple):
    """The error of a step's try, as the value of its result. ``arguments`` is None if no copy of it can be made.

    ``attributes`` are those that its arguments do not make, its notes included. ``errors`` are those of a group, each
    as this record. Without ``is_made`` its type's constructor wants other arguments. The next try begins at
    ``retry_at`` (ms), 0 for no other try. The first one began at ``began_at`` (ms), 0 without a retry.
    """

    module: str
    name: str
    arguments: list[Json] | None
    attributes: JsonObject | None = None
    retry_at: int = 0
    began_at: int = 0
    errors: list[Json] | None = None
    is_made: bool = True

    @classmethod
    def of(cls, result: StepResult) -> StoredError:
        """The error that is stored as this result."""
        return cls(*cast("Any", result.value))
