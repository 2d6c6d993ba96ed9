"""The one table that says which status may follow which.

Everything that changes a task's state goes through ``check``; there is no other way. Artifact chunks are allowed in
``CHUNKS`` only. The picture in ARCHITECTURE.md is drawn from this table by a test.
"""

from __future__ import annotations

from typing import Final

from a2a_serverless.domain.errors import IllegalTransition
from a2a_serverless.domain.model import TaskState

S = TaskState

TERMINAL: Final = frozenset({S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED})
INTERRUPTED: Final = frozenset({S.INPUT_REQUIRED, S.AUTH_REQUIRED})
RUNNABLE: Final = frozenset({S.SUBMITTED, S.WORKING})
CHUNKS: Final = frozenset({S.WORKING})

NEXT: Final[dict[TaskState | None, frozenset[TaskState]]] = {
    None: frozenset({S.SUBMITTED}),
    S.SUBMITTED: frozenset({S.SUBMITTED, S.WORKING, S.FAILED, S.CANCELED, S.REJECTED}),
    S.WORKING: frozenset({S.WORKING, *INTERRUPTED, *TERMINAL}),
    S.INPUT_REQUIRED: frozenset({S.WORKING, S.FAILED, S.CANCELED}),
    S.AUTH_REQUIRED: frozenset({S.WORKING, S.FAILED, S.CANCELED}),
    S.COMPLETED: frozenset(),
    S.FAILED: frozenset(),
    S.CANCELED: frozenset(),
    S.REJECTED: frozenset(),
}


def check(before: TaskState | None, after: TaskState) -> None:
    """Returns when ``after`` may follow ``before``; raises ``IllegalTransition`` otherwise. None is "no task yet"."""
    if after not in NEXT[before]:
        raise IllegalTransition(f"{after} may not follow {before or 'nothing'}")


def check_chunk(state: TaskState | None) -> None:
    """Returns when an artifact chunk may be appended in ``state``; raises ``IllegalTransition`` otherwise."""
    if state not in CHUNKS:
        raise IllegalTransition(f"an artifact chunk may not follow {state or 'nothing'}")
