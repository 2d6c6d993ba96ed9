"""How each outcome of a request is answered and logged: the same on every platform.

========== ====== =========================================================== ==========================================
outcome    status body                                                        log line
========== ====== =========================================================== ==========================================
accepted   200    ``{"received":true,"duplicate":false,"late":false}``        ``accepted task=<id> event=<number>``
late       200    ``{"received":true,"duplicate":false,"late":true}``         ``late task=<id> event=<number>``
duplicate  200    ``{"received":true,"duplicate":true}``                      ``duplicate task=<id> event=<number>``
challenge  200    ``{"challenge":"<the same>"}``                              ``challenge``
refused    401    ``{"error":"unauthenticated"}`` for all that is unauthentic ``refused code=<code>: <reason>``
refused    other  ``{"error":"<code>"}``                                      ``refused code=<code>: <reason>``
failed     500    ``{"error":"internal"}``                                    ``failed task=<id> event=<number> error=<type>``
========== ====== =========================================================== ==========================================

A log line has ids that the issuer signed, codes and fixed sentences: nothing that an unauthentic request can choose, and
no content. The line of a refusal has ` task=<id> event=<number>` behind its code if the request was authentic. The JavaScript package has the same table (``javascript/answers.js``); a test compares all receivers.
"""  # noqa: E501 - a table

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from a2a_webhook_receiver.errors import (
    Refused,
    TooLarge,
    TooSlow,
    TryLater,
    Unauthentic,
    Unreadable,
    UnsupportedMedia,
)
from a2a_webhook_receiver.receive import Claimed, Repeated
from a2a_webhook_receiver.subject import Subject
from a2a_webhook_receiver.verifier import VerifiedChallenge

logger = logging.getLogger("a2a_webhook_receiver")

STATUS: Final[Mapping[type[Refused], int]] = {
    Unauthentic: 401,
    Unreadable: 400,
    TooSlow: 408,
    TooLarge: 413,
    UnsupportedMedia: 415,
    TryLater: 503,
}
_ALWAYS: Final = {"Content-Type": "application/json", "Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """An HTTP answer. ``headers`` are those besides ``Content-Type`` and ``Cache-Control``."""

    status: int
    content: Mapping[str, str | bool]
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_headers(self) -> dict[str, str]:
        return {**_ALWAYS, **self.headers}

    @property
    def body(self) -> str:
        """Compact JSON."""
        return json.dumps(self.content, separators=(",", ":"), ensure_ascii=False)


FAILED: Final = WebhookAnswer(500, {"error": "internal"})
NOT_ALLOWED: Final = WebhookAnswer(405, {"error": "method-not-allowed"}, {"Allow": "POST"})


def answer_without_handler(outcome: Repeated | VerifiedChallenge) -> WebhookAnswer:
    """The answer to a genuine request that needs no handler, logged."""
    if isinstance(outcome, VerifiedChallenge):
        logger.info("challenge")
        return WebhookAnswer(200, {"challenge": outcome.challenge})
    logger.info("duplicate %s", _ids(outcome.subject))
    return WebhookAnswer(200, {"received": True, "duplicate": True})


def answer_handled(claimed: Claimed) -> WebhookAnswer:
    """The answer to a notification that was handled."""
    return WebhookAnswer(200, {"received": True, "duplicate": False, "late": claimed.admitted.late})


def answer_refusal(refusal: Refused) -> WebhookAnswer:
    """The answer to a refused request, logged. Everything unauthentic gets the same answer."""
    about = f" {_ids(refusal.subject)}" if refusal.subject else ""
    logger.warning("refused code=%s%s: %s", refusal.code, about, refusal.reason)
    status = next(STATUS[kind] for kind in type(refusal).__mro__ if kind in STATUS)
    if isinstance(refusal, Unauthentic):
        return WebhookAnswer(status, {"error": "unauthenticated"}, {"WWW-Authenticate": "Bearer"})
    headers = {"Retry-After": str(refusal.retry_after)} if isinstance(refusal, TryLater) else {}
    return WebhookAnswer(status, {"error": refusal.code}, headers)


def log_handled(claimed: Claimed) -> None:
    """Logs that the handler has returned."""
    logger.info("%s %s", "late" if claimed.admitted.late else "accepted", _ids(claimed.notification.subject))


def log_failed(claimed: Claimed, error: BaseException) -> None:
    """Logs that the handler has raised: the type only. Who calls the handler decides about the traceback."""
    logger.error("failed %s error=%s", _ids(claimed.notification.subject), type(error).__name__)


def _ids(subject: Subject) -> str:
    return f"task={subject.task_id} event={subject.event_number}"
