"""The one seam through which callers come in: who is calling, and in whose name (tenant) they may act."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from a2a_serverless.domain.model import Principal


class Unauthenticated(Exception):
    """The caller is nobody that we know. The answer is 401, the same for everything that needs a caller."""


class Gate(Protocol):
    """Says who calls."""

    def admit(self, headers: Mapping[str, str]) -> Principal:
        """The caller; raises Unauthenticated."""
        ...

    def enter(self, who: Principal, tenant: str) -> Principal:
        """The caller acting in the tenant that the request names."""
        ...


@dataclass(frozen=True, slots=True)
class OpenGate:
    """Everybody is one fixed principal, in whichever tenant they name. For local runs only."""

    def admit(self, headers: Mapping[str, str]) -> Principal:
        del headers
        return ANYBODY

    def enter(self, who: Principal, tenant: str) -> Principal:
        return replace(who, tenant=tenant)


@dataclass(frozen=True, slots=True)
class ClosedGate:
    """Nobody comes in: what a deployment has until it is told whom to admit."""

    def admit(self, headers: Mapping[str, str]) -> Principal:
        del headers
        raise Unauthenticated

    def enter(self, who: Principal, tenant: str) -> Principal:
        del who, tenant
        raise Unauthenticated


ANYBODY: Final = Principal("local", "anybody")
