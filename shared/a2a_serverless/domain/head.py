"""The head of a task: its current state, and the queries on it. ``domain/decisions.py`` changes it."""

from __future__ import annotations

from typing import Final, NamedTuple

from a2a_serverless.domain.access import FULL_SCOPE, READ, Caller, scope_of
from a2a_serverless.domain.model import Principal, TaskKey
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.domain.waits import OpenWaits, load_waits
from a2a_serverless.protocol.v1 import TaskState  # noqa: TC001 - tests build heads by their annotations

LOST_LIMIT: Final = 8  # fewer than the deliveries of a work message


class Head(NamedTuple):
    """The current state of a task. ``n`` is the last *status* event; ``expires`` is in seconds, the table's TTL.

    ``scopes`` (separated by spaces) and ``api_key`` (its digest) are those of the caller who sent the last message.
    ``trace`` is the trace of the last client request that changed the task (``domain/trace.py``). ``snapshot`` is the
    reference to the last snapshot of a long log: the number of its last event, then its place in the store.
    ``sweeps_in_a_row`` are the sweeps in a row that enqueued the task, ``lost`` are the runs in a row that died
    and stored no result.
    ``parked`` means suspended, until the task is woken or until ``wake_at`` if that is not 0; ``waits`` are the waits
    for which it was suspended last (``domain/waits.py``). ``periods`` are its runs, and the times between them
    (``domain/periods.py``). ``children`` means that the task has called other agents.
    ``holder`` is the id of the run that took the lease last, behind the name of its worker and a slash if that has a
    name; or of the sweeper that has enqueued the end of its wait.
    A retried task has to copy the task ``repeats`` from the step ``repeats_from`` ("" is the step that failed);
    ``origin`` is the first task that was retried; results and events up to the moment ``copied`` (as
    ``StepResult.moment``) are copies. ``code`` is the digest of the code of the run that took the lease last. Other
    times are in ms.
    """

    key: TaskKey
    agent: str
    context_id: str
    state: TaskState
    n: int
    created_at: int
    status_at: int
    deadline: int
    expires: int
    rev: int = 1
    fence: int = 0
    lease_until: int = 0
    holder: str = ""
    wake: int = 0
    push: bool = False
    due_at: int | None = None
    sweeps_in_a_row: int = 0
    lost: int = 0
    parked: bool = False
    children: bool = False
    trace: str = ""
    snapshot: str = ""
    scopes: str = ""
    api_key: str = ""
    wake_at: int = 0
    waits: str = ""
    origin: str = ""
    repeats: str = ""
    repeats_from: str = ""
    copied: int = 0
    code: str = ""
    periods: str = ""

    @property
    def caller(self) -> Caller:
        """The caller in whose name the task's agent calls others, with no more scopes than the last message had.

        For a head without scopes: full use of this agent, and reading of all others.
        """
        scopes = self.scopes.split() or (scope_of(self.agent, "operate"), f"{FULL_SCOPE}:{READ}")
        return Caller(Principal(self.key.tenant, self.key.owner), frozenset(scopes), key=self.api_key)

    @property
    def snapshot_position(self) -> int:
        """The number of the last event in the stored snapshot; 0 without one."""
        return int(self.snapshot.partition(" ")[0] or 0)

    @property
    def snapshot_bytes(self) -> int:
        """The size of the stored snapshot; 0 without one."""
        return int(self.snapshot.rpartition(" ")[2] or 0)

    @property
    def open_waits(self) -> OpenWaits:
        """What the task waits for; nothing unless it is suspended."""
        return load_waits(self.waits if self.parked else "")

    @property
    def is_terminal(self) -> bool:
        """Whether the task is in a terminal state."""
        return self.state in TERMINAL

    @property
    def is_given_up(self) -> bool:
        """Whether the task has failed because its runs died, and its queue message belongs to the dead letters."""
        return self.is_terminal and self.lost >= LOST_LIMIT

    def is_runnable(self, now: int) -> bool:
        """Whether a run may begin at ``now`` (ms), if none has the lease."""
        return not self.is_terminal and (not self.parked or (self.wake_at != 0 and self.wake_at <= now))

    def is_leased(self, now: int) -> bool:
        """Whether a run has the lease at ``now`` (ms)."""
        return self.lease_until > now

    def is_held_by_another(self, run: str) -> bool:
        """Whether a run other than ``run`` took the lease and did not release it; it may have died since."""
        return self.lease_until != 0 and self.holder != run


class CurrentHead(NamedTuple):
    """A head and the number of the ``last`` event of any kind, read together."""

    head: Head
    last: int
