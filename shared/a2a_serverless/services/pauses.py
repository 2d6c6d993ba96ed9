"""Paused agents and owners: while one is paused, none of its tasks starts, and each run suspends at its next act."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

from a2a_serverless.domain.waits import OpenWait, WaitKind
from a2a_serverless.store.stores import agent_pause, owner_pause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.model import Principal, TaskKey

MEMORY_MS: Final = 10_000
"""How long a process remembers the list of pauses."""
SHORTEST_MS: Final = 60_000
LONGEST_MS: Final = 3_600_000


class Pauses:
    """The pauses that ``read`` returns, read again after ``MEMORY_MS``: the time of each (ms) by its name."""

    def __init__(self, read: Callable[[], Mapping[str, int]] = dict, now: Callable[[], int] = int) -> None:
        self._read, self._now = read, now
        self._known: Mapping[str, int] = {}
        self._read_at = -MEMORY_MS

    def find(self, agent: str, key: TaskKey | Principal) -> OpenWait | None:
        """The pause of the agent, or else of the owner; None without one."""
        if self._now() - self._read_at >= MEMORY_MS:
            self._known, self._read_at = self._read(), self._now()
        if not self._known:
            return None
        since = {"agent": self._known.get(agent_pause(agent)), "owner": self._known.get(owner_pause(key))}
        return next((OpenWait(WaitKind.PAUSE, name, at) for name, at in since.items() if at is not None), None)


def retry_at(pause: OpenWait, task: str, now: int) -> int:
    """When a paused task tries again (ms): in half to all of the time that the pause lasts, an hour at most.

    The task's id decides which, so that not all tasks come at once.
    """
    wait_ms = min(max(now - pause.since, SHORTEST_MS), LONGEST_MS)
    return now + wait_ms // 2 + wait_ms * (crc32(task.encode()) % 1024) // 2048
