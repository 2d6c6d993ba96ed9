"""The states of a task, and the only table of transitions between them.

Every change of a task's state goes through ``check``. Artifact chunks are allowed in ``CHUNKS`` only. A test compares
the diagram in docs/internals.md with the table.
"""

from __future__ import annotations

from typing import Final

from a2a_serverless.domain.errors import IllegalTransition
from a2a_serverless.protocol.v1 import TaskState

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
    """Checks that ``after`` may follow ``before`` (None: no task yet); raises ``IllegalTransition``."""
    if after not in NEXT[before]:
        raise IllegalTransition(f"{after} may not follow {before or 'nothing'}")


def check_chunk(state: TaskState | None) -> None:
    """Checks that an artifact chunk may be appended in ``state``; raises ``IllegalTransition``."""
    if state not in CHUNKS:
        raise IllegalTransition(f"an artifact chunk may not follow {state or 'nothing'}")
