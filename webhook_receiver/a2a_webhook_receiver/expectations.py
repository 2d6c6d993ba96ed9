"""Registered tokens and tasks. A notification that matches none of them is refused, even if its signature is valid.

A webhook can arrive before the answer of the ``SendMessage`` that caused it, so a token may be registered before its
task is known: such an expectation binds to the first task id that comes verified with its token, and then to no other.
Tokens and credentials are stored as SHA-256 only and compared in constant time.
"""

import hmac
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Protocol

from a2a_webhook_receiver.errors import NoToken, UnknownTask, WrongCredentials, WrongToken

STANDING: Final = "standing"
"""The id of the expectation of a static token."""


def digest(secret: str) -> str:
    """The stored form of a secret: hex SHA-256 of its UTF-8."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Expectation:
    """One registered push configuration. ``expires``: milliseconds since the epoch.

    ``agent_url`` is where the task can be fetched. The digests are of ``X-A2A-Notification-Token`` and of the whole
    ``Authorization`` value that were registered; None when there is none.
    """

    id: str
    expires: int
    task_id: str | None = None
    token_digest: str | None = None
    authorization_digest: str | None = None
    agent_url: str | None = None

    def __post_init__(self) -> None:
        if self.task_id is None and self.token_digest is None:
            raise ValueError("an expectation names a task, a token, or both")

    def bound_to(self, task_id: str) -> "Expectation":
        return replace(self, task_id=task_id)


@dataclass(frozen=True, slots=True)
class Presented:
    """The values of an authentic request that are matched against expectations."""

    task_id: str
    token: str | None
    authorization: str | None

    @property
    def token_digest(self) -> str | None:
        return None if self.token is None else digest(self.token)


class Expectations(Protocol):
    """A store of expectations. Expired ones count as absent."""

    def add(self, expectation: Expectation) -> None:
        """Stores an expectation until it expires."""

    def find(self, task_id: str, token_digest: str | None, now: int) -> tuple[Expectation, ...]:
        """All expectations with this task or this token."""

    def bind(self, expectation: Expectation, task_id: str) -> bool:
        """Binds an expectation to this task. False if it is already bound to another."""

    def any_open(self, now: int) -> bool:
        """Whether there is any expectation that has not expired."""

    def list_open(self, now: int, limit: int) -> tuple[Expectation, ...]:
        """The expectations that have not expired, those that expire last first; at most ``limit``."""


class WithStaticToken:
    """Expectations, and one static token that is valid for any number of tasks and does not expire."""

    def __init__(self, expectations: Expectations, token: str) -> None:
        self._expectations = expectations
        self._standing = Expectation(STANDING, sys.maxsize, token_digest=digest(token))

    def add(self, expectation: Expectation) -> None:
        self._expectations.add(expectation)

    def find(self, task_id: str, token_digest: str | None, now: int) -> tuple[Expectation, ...]:
        return (*self._expectations.find(task_id, token_digest, now), self._standing)

    def bind(self, expectation: Expectation, task_id: str) -> bool:
        return expectation.id == STANDING or self._expectations.bind(expectation, task_id)

    def any_open(self, _now: int) -> bool:
        return True

    def list_open(self, now: int, limit: int) -> tuple[Expectation, ...]:
        return (self._standing, *self._expectations.list_open(now, limit - 1))


def match(presented: Presented, expectations: Iterable[Expectation], now: int) -> Expectation:
    """The expectation that the request matches. Raises UnknownTask, WrongToken or WrongCredentials.

    Compares all of them before it decides, so that the time reveals nothing about a token.
    """
    current = [expectation for expectation in expectations if expectation.expires > now]
    candidates = [expectation for expectation in current if expectation.task_id in (None, presented.task_id)]
    right = [expectation for expectation in candidates if _same(expectation.token_digest, presented.token_digest)]
    if not right:
        is_known = any(expectation.task_id == presented.task_id for expectation in current)
        kind = WrongToken if is_known else UnknownTask if presented.token is not None else NoToken
        raise kind(kind.reason)
    authorization = None if presented.authorization is None else digest(presented.authorization)
    met = [expectation for expectation in right if _same(expectation.authorization_digest, authorization)]
    if not met:
        raise WrongCredentials(WrongCredentials.reason)
    return max(met, key=lambda expectation: expectation.task_id is not None)


def _same(expected: str | None, value: str | None) -> bool:
    """Compares in constant time. If nothing is expected, any value matches."""
    return expected is None or hmac.compare_digest(expected, value or "")
