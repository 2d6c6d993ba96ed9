"""The errors in the answers of agents: those of A2A by their codes, others by the HTTP status."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import A2AError, FieldViolation
from a2a_serverless.protocol.error_codes import CODES
from a2a_serverless.protocol.retry_after import seconds_to_wait
from a2a_serverless.protocol.strict_json import ANSWER_LIMITS, loads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.http_client.transport import ClientResponse

REDIRECT: Final = 300
ERROR: Final = 400
SERVER_ERROR: Final = 500
BEGINNING: Final = 120
"""So many bytes of an answer are shown."""
LONGEST: Final = 2000
"""The longest text of an error, in characters."""

logger = logging.getLogger(__name__)

# Where several classes share a code, the first class in the table is the general class.
_BY_CODE: Final[dict[int, type[A2AError]]] = {
    code.rpc: kind for kind, code in reversed(CODES.items()) if not code.by_http
}
BY_HTTP: Final = frozenset(code.http for code in CODES.values() if code.by_http)


class HttpError(Exception):
    """The request was refused with an HTTP status and without an A2A error. ``status`` is that status.

    ``retry_after_s`` is the value of the answer's ``Retry-After`` in seconds, or None.
    """

    def __init__(self, status: int, text: str, retry_after_s: int | None = None) -> None:
        super().__init__(f"HTTP {status}: {text}" if text else f"HTTP {status}")
        self.status = status
        self.retry_after_s = retry_after_s


class PeerError(A2AError):
    """The peer answered with an error code that the protocol does not define. ``code`` is 0 if it was no number."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} ({code})")
        self.code = code


@dataclass(frozen=True, slots=True)
class SkippedContent:
    """What of an answer was left out: the paths with the reasons, and the first bytes of the answer as a text."""

    method: str
    version: str
    address: str
    skipped: tuple[str, ...]
    beginning: str


def log_skipped(content: SkippedContent) -> None:
    """Logs it as a warning."""
    logger.warning("parts of an agent's answer were left out", extra=asdict(content))


def beginning_of(body: bytes) -> str:
    """The first bytes of an answer as a printable text."""
    return body[:BEGINNING].decode("utf-8", "replace")


def code_of(problem: Json) -> int | None:
    """The code of an error: an integer, however it is written."""
    code = problem.get("code") if isinstance(problem, dict) else None
    try:
        return int(code) if isinstance(code, int | float | str) and float(code).is_integer() else None
    except (ValueError, OverflowError):
        return None


def kind_by_code(problem: Json) -> type[A2AError] | None:
    """The class of an error with a code of JSON-RPC; None if the code is unknown."""
    return _BY_CODE.get(code) if (code := code_of(problem)) is not None else None


def redirect_error(answer: ClientResponse) -> HttpError:
    """The error of a redirect. It names the target, without the query, in which there may be secrets."""
    target, *_ = answer.headers.get("location", "").split("?")
    text = f"the agent is at {target[:500]}; redirects are not followed, so name that address if it is right"
    return HttpError(answer.status, text if target else "redirects are not followed", retry_after_s(answer.headers))


def http_error(answer: ClientResponse, document: Json) -> HttpError:
    """The error of an answer whose status says more than its document."""
    return HttpError(answer.status, _words(document), retry_after_s(answer.headers))


def retry_after_s(headers: Mapping[str, str]) -> int | None:
    """The seconds that ``Retry-After`` asks for; a date counts from the answer's ``Date``."""
    return seconds_to_wait(headers.get("retry-after"), headers.get("date", ""))


def words_in(body: bytes) -> str:
    """Returns the message in the body of an error response; empty when there is none."""
    try:
        return _words(loads(body, ANSWER_LIMITS))
    except A2AError:
        return ""


def _words(document: Json) -> str:
    """Returns the ``message`` of a gateway's error, cut at 200 characters; empty when there is none."""
    inner = document.get("error", document) if isinstance(document, dict) else None
    return _text_in(inner)[:200] if isinstance(inner, dict | str) else ""


def a2a_error(kind: type[A2AError] | None, problem: Json, details: str) -> A2AError:
    """The error of this class that an agent answered with. ``details`` is the name of the member with its details."""
    text = (_text_in(problem) or "The agent gave no reason.")[:LONGEST]
    if kind is None:
        return PeerError(code_of(problem) or 0, text)
    error = kind(text)
    error.violations = tuple(
        FieldViolation(str(violation.get("field", "")), str(violation.get("description", "")))
        for detail in objects_in(problem, details)
        for violation in objects_in(detail, "fieldViolations")
    )
    return error


def _text_in(problem: Json) -> str:
    """The text of an error: its ``message``, else what it has in its place."""
    if isinstance(problem, dict):
        texts = [problem.get(name) for name in ("message", "detail", "error", "data")]
        return next((text for text in texts if text and isinstance(text, str)), "")
    if isinstance(problem, list):
        return "; ".join(filter(None, map(_text_in, problem[:10])))
    return problem if isinstance(problem, str) else ""


def objects_in(document: Json, name: str) -> list[JsonObject]:
    """Returns the objects in the list of this name in a document; none if it has no such list."""
    items = document.get(name) if isinstance(document, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
