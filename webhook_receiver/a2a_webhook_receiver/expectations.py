"""What we asked agents for. A notification that nobody here asked for is refused, whoever signed it.

A webhook can arrive before the answer of the ``SendMessage`` that caused it, so we may know a token but no task yet:
such an expectation binds to the first task id that comes verified with its token, and to no other afterwards. Tokens
and credentials are kept as SHA-256 only; all comparisons take the same time whatever they compare.
"""

import hmac
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Protocol

from a2a_webhook_receiver.errors import UnknownTask, WrongCredentials, WrongToken


def digest(secret: str) -> str:
    """What is kept of a secret: hex SHA-256 of its UTF-8."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Expectation:
    """One push configuration that we gave to an agent. ``expires``: milliseconds since the epoch.

    ``agent_url`` is where the task can be fetched. Digests are of ``X-A2A-Notification-Token`` and of the whole
    ``Authorization`` value that we asked for; None when we asked for none.
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
    """What an authentic request shows to match an expectation."""

    task_id: str
    token: str | None
    authorization: str | None

    @property
    def token_digest(self) -> str | None:
        return None if self.token is None else digest(self.token)


class Expectations(Protocol):
    """Where expectations are kept. Expired ones are as good as gone."""

    def add(self, expectation: Expectation) -> None:
        """Holds until it expires."""

    def find(self, task_id: str, token_digest: str | None, now: int) -> tuple[Expectation, ...]:
        """All that name this task or this token."""

    def bind(self, expectation: Expectation, task_id: str) -> bool:
        """From now on it names this task. False if it already names another."""

    def any_open(self, now: int) -> bool:
        """Whether we expect anything at all."""


STANDING: Final = "standing"
"""The id of the expectation of a static token."""


class WithStaticToken:
    """Expectations, and one token that any number of tasks may come with, for as long as this is set."""

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


def match(presented: Presented, expectations: Iterable[Expectation], now: int) -> Expectation:
    """The expectation that this request meets. Raises UnknownTask, WrongToken or WrongCredentials.

    Looks at all of them before it decides, so that the time tells nothing about a token.
    """
    current = [expectation for expectation in expectations if expectation.expires > now]
    named = [expectation for expectation in current if expectation.task_id in (None, presented.task_id)]
    right = [expectation for expectation in named if _same(expectation.token_digest, presented.token_digest)]
    if not right:
        known = any(expectation.task_id == presented.task_id for expectation in current)
        raise WrongToken("not the token of this task") if known else UnknownTask("a task that nobody here asked for")
    given = None if presented.authorization is None else digest(presented.authorization)
    met = [expectation for expectation in right if _same(expectation.authorization_digest, given)]
    if not met:
        raise WrongCredentials("not the credentials that we gave")
    return max(met, key=lambda expectation: expectation.task_id is not None)


def _same(expected: str | None, given: str | None) -> bool:
    """Nothing expected is met by anything."""
    return expected is None or hmac.compare_digest(expected, given or "")
