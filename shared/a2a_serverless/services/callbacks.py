"""News from an agent that a task has called. The webhook is a bell: it wakes the task, which asks for the truth.

What it says is a hint: a task is not woken for what it does not wait for, and a called agent that still works for a
task that has ended is canceled.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.bells import WorkBell
from a2a_serverless.domain.errors import Overloaded, TaskNotFound
from a2a_serverless.domain.head import with_orphan, woken
from a2a_serverless.domain.states import RUNNABLE, TERMINAL
from a2a_serverless.ports import ExpectedNews, StepResult, Unproven

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Json, TaskKey
    from a2a_serverless.ports import News, Proofs, TaskLog
    from a2a_serverless.services.tasks import Desk
    from a2a_serverless.wire.notification import Told

PREFIX: Final = "@call/"
TOKEN_HEADER: Final = "x-a2a-notification-token"  # noqa: S105 - a name, not a token
TRIES: Final = 20

logger = logging.getLogger(__name__)


def take_news(
    desk: Desk, proofs: Proofs, callback: str, news: News, check_body: Callable[[bytes], object] = bytes
) -> str | None:
    """Wakes the task that made the call, if it waits for that. Answers the question whether the address is ours.

    Raises TaskNotFound unless the news has the token that the call was given, and what ``proofs`` asks for. The body of
    whoever does not know address and token is not read; ``check_body`` raises for one that is refused.
    """
    found = desk.log.callback(callback)
    if found is None:
        raise TaskNotFound
    key, name = found
    call = _call(desk.log, key, name)
    if not compare_digest(call.expected.token.encode(), news.headers.get(TOKEN_HEADER, "").encode()):
        raise TaskNotFound
    check_body(news.body)
    try:
        challenge = proofs.check(news, call.expected)
    except Unproven as refusal:
        logger.warning("news of a call refused: %s", refusal, extra={"task": key.task, "call": name})
        raise TaskNotFound from refusal
    if challenge is None:
        from a2a_serverless.wire.notification import told

        _take(desk, key, call, told(news.body))
    return challenge


@dataclass(frozen=True, slots=True)
class _Call:
    """What is stored of a call. ``agent`` is unknown of one that an earlier release has opened."""

    name: str
    expected: ExpectedNews
    agent: str | None
    done: bool
    failed: bool


def _call(log: TaskLog, key: TaskKey, name: str) -> _Call:
    steps = log.steps(key)
    opened, sent = (_value(steps.get(f"{PREFIX}{name}{end}")) for end in ("", "/sent"))
    if "token" not in opened:
        raise TaskNotFound
    expected = ExpectedNews(opened["address"], opened["url"], opened["token"], sent.get("task"))
    done, failed = (f"{PREFIX}{name}/{end}" in steps for end in ("done", "failed"))
    return _Call(name, expected, opened.get("agent"), done, failed)


def _value(step: Any) -> dict[str, Any]:  # noqa: ANN401 - what the engine has stored
    return step.value if step and isinstance(step.value, dict) else {}


def _take(desk: Desk, key: TaskKey, call: _Call, news: Told) -> None:
    """Wakes the task for what it waits for; of one that has ended, has the agent told that still works for it."""
    if call.agent and news.task_id and call.expected.task is None and not call.done:
        _keep_told(desk, key, call, {"agent": call.agent, "task": news.task_id})
    for _ in range(TRIES):
        look = desk.log.look(key)
        if look is None:
            return
        after = _orphaned(look.head, call, news, desk) if look.head.ended else _woken(look.head, call, news, desk)
        if after is None:
            return
        if desk.log.touch(look.head, after):
            desk.bells.ring(WorkBell(key))
            return
    raise Overloaded


def _keep_told(desk: Desk, key: TaskKey, call: _Call, child: dict[str, Json]) -> None:
    """Notes which task a call has made, as its agent tells: whoever sent it may have died before noting it."""
    look = desk.log.look(key)
    if look is not None:
        desk.log.keep_step(key, f"{PREFIX}{call.name}/told", StepResult("", child), look.head.expires)


def _woken(head: Head, call: _Call, news: Told, desk: Desk) -> Head | None:
    """None when the task does not wait for that: the call is over, or its agent goes on."""
    if call.done or call.failed or news.state in RUNNABLE:
        return None
    return woken(head, now=desk.clock.now())


def _orphaned(head: Head, call: _Call, news: Told, desk: Desk) -> Head | None:
    """None when there is nobody to tell."""
    known = call.expected.task or (call.agent and news.task_id)
    if call.done or not known or news.task_id is None or news.state in TERMINAL:
        return None
    return with_orphan(head, now=desk.clock.now())
