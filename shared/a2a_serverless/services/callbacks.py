"""News from an agent that a task has called. The webhook is a bell: it wakes the task, which asks for the truth."""

from __future__ import annotations

from hmac import compare_digest
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.bells import WorkBell
from a2a_serverless.domain.errors import Overloaded, TaskNotFound
from a2a_serverless.domain.head import NotRunnable, woken

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.services.tasks import Desk

PREFIX: Final = "@call/"
TRIES: Final = 20


def take_news(desk: Desk, key: TaskKey, call: str, token: str) -> None:
    """Wakes the task that made the call. Raises TaskNotFound unless ``token`` is the one that the call was given."""
    step = desk.log.steps(key).get(PREFIX + call)
    given = step.value.get("token") if step and isinstance(step.value, dict) else None
    if not isinstance(given, str) or not compare_digest(given.encode(), token.encode()):
        raise TaskNotFound
    for _ in range(TRIES):
        look = desk.log.look(key)
        if look is None or look.head.ended:
            return
        try:
            after = woken(look.head, now=desk.clock.now())
        except NotRunnable:
            return
        if desk.log.touch(look.head, after):
            desk.bells.ring(WorkBell(key))
            return
    raise Overloaded
