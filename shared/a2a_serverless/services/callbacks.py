"""News from an agent that a task has called. The webhook is a bell: it wakes the task, which asks for the truth."""

from __future__ import annotations

import logging
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.bells import WorkBell
from a2a_serverless.domain.errors import Overloaded, TaskNotFound
from a2a_serverless.domain.head import NotRunnable, woken
from a2a_serverless.ports import ExpectedNews, Unproven

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports import News, Proofs, TaskLog
    from a2a_serverless.services.tasks import Desk

PREFIX: Final = "@call/"
TOKEN_HEADER: Final = "x-a2a-notification-token"  # noqa: S105 - a name, not a token
TRIES: Final = 20

logger = logging.getLogger(__name__)


def take_news(desk: Desk, proofs: Proofs, callback: str, news: News) -> str | None:
    """Wakes the task that made the call; for a question whether the address is ours, the answer to that.

    Raises TaskNotFound unless the news has the token that the call was given, and what ``proofs`` asks for.
    """
    found = desk.log.callback(callback)
    if found is None:
        raise TaskNotFound
    key, call = found
    expected = _expected(desk.log, key, call)
    if not compare_digest(expected.token.encode(), news.headers.get(TOKEN_HEADER, "").encode()):
        raise TaskNotFound
    try:
        challenge = proofs.check(news, expected)
    except Unproven as refusal:
        logger.warning("news of a call refused: %s", refusal, extra={"task": key.task, "call": call})
        raise TaskNotFound from refusal
    if challenge is None:
        _wake(desk, key)
    return challenge


def _expected(log: TaskLog, key: TaskKey, call: str) -> ExpectedNews:
    steps = log.steps(key)
    opened, sent = (_value(steps.get(f"{PREFIX}{call}{end}")) for end in ("", "/sent"))
    if "token" not in opened:
        raise TaskNotFound
    return ExpectedNews(opened["address"], opened["url"], opened["token"], sent.get("task"))


def _value(step: Any) -> dict[str, Any]:  # noqa: ANN401 - what the engine has stored
    return step.value if step and isinstance(step.value, dict) else {}


def _wake(desk: Desk, key: TaskKey) -> None:
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
