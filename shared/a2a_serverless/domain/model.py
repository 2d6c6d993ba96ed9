"""JSON values, and the keys of tasks: tenant, owner and id. The objects of A2A are in ``protocol/v1.py``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"


class TaskKey(NamedTuple):
    """A task's tenant, owner and id. Callers cannot reach tasks of other owners: every key starts with both."""

    tenant: str
    owner: str
    task: str


@dataclass(frozen=True, slots=True)
class Principal:
    """The tenant and owner of a caller; every key that the caller can reach starts with them.

    A dataclass, because agents get it (``TaskContext.caller``) and may pass it to a step: see ``domain/digest.py``.
    """

    tenant: str
    owner: str

    def key(self, task: str) -> TaskKey:
        """The key of one of this principal's tasks."""
        return TaskKey(self.tenant, self.owner, task)
