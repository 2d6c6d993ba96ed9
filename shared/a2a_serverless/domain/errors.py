"""The errors that clients can get, as classes. ``protocol/error_codes.py`` maps them to codes, and adds three errors.

The text of an ``A2AError`` is shown to the caller: it tells the caller's next step, and contains no internal name or
secret. Any other exception is our own fault; the response is an internal error without details. The log gets its class
and where it was raised, without its text, which may quote client data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

VIOLATIONS_NAMED: Final = 3
LONGEST: Final = 200


class FieldViolation(NamedTuple):
    """A bad field: its path as the client wrote it (``message.parts``), and the valid values."""

    field: str
    description: str


class A2AError(Exception):
    """An error of the protocol (specification 3.3.2).

    Without a text, the message lists the wrong fields, because most clients show only the message.
    """

    default = "The request could not be served."

    def __init__(self, text: str | None = None, *, violations: tuple[FieldViolation, ...] = ()) -> None:
        super().__init__(text or _sentences(violations) or self.default)
        self.violations = violations


def _sentences(violations: tuple[FieldViolation, ...]) -> str:
    """The first violations as sentences of limited length, and the number of others; "" for none."""
    sentences = [
        f"{_cut(violation.field or 'The object')} {_cut(violation.description).rstrip('.')}."
        for violation in violations[:VIOLATIONS_NAMED]
    ]
    more = len(violations) - VIOLATIONS_NAMED
    return " ".join([*sentences, f"{more} more under fieldViolations."] if more > 0 else sentences)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


class ParseError(A2AError):
    """The body is not JSON (-32700)."""

    default = "The body is not valid JSON."


class InvalidRequest(A2AError):
    """The envelope is not a JSON-RPC 2.0 request (-32600)."""

    default = "The body is not a JSON-RPC 2.0 request."


class MethodNotFound(A2AError):
    """The method or route does not exist (-32601)."""

    default = "There is no such method."


class InvalidParams(A2AError):
    """A parameter is missing or wrong (-32602)."""

    default = "A parameter is missing or wrong."


class InternalError(A2AError):
    """Our fault; the text does not say why (-32603)."""

    default = "An internal error happened. It has been logged."


class TaskNotFound(A2AError):
    """The task does not exist or belongs to another caller; both get the same error (-32001)."""

    default = "The task was not found."


class TaskNotCancelable(A2AError):
    """The task has already ended (-32002)."""

    default = "The task has ended and cannot be canceled."


class PushNotSupported(A2AError):
    """The agent's card does not offer push notifications (-32003)."""

    default = "This agent does not support push notifications."


class UnsupportedOperation(A2AError):
    """The operation does not fit the task or the agent (-32004)."""

    default = "This operation is not supported here."


class ContentTypeNotSupported(A2AError):
    """A media type that the agent does not accept (-32005)."""

    default = "This content type is not supported."


class InvalidAgentResponse(A2AError):
    """The agent violated the protocol (-32006)."""

    default = "The agent gave an invalid answer."


class ExtendedCardNotConfigured(A2AError):
    """The agent has no extended card (-32007)."""

    default = "This agent has no extended card."


class ExtensionRequired(A2AError):
    """The client did not declare an extension that the agent requires (-32008)."""

    default = "This agent requires an extension that the request does not name."


class VersionNotSupported(A2AError):
    """The A2A version is not supported (-32009)."""

    default = "This A2A version is not supported."


class Overloaded(A2AError):
    """Too much load; nothing was changed. The client should retry after ``retry_after_s`` seconds."""

    default = "Too many writers at once. Try again."

    def __init__(self, text: str | None = None, retry_after_s: int = 1) -> None:
        super().__init__(text)
        self.retry_after_s = max(1, retry_after_s)


class Unauthenticated(A2AError):
    """The caller is not authenticated. ``given``: it sent credentials, but they are not valid."""

    default = "Sign in to call this agent."

    def __init__(self, *, given: bool = False) -> None:
        super().__init__()
        self.given = given


class InvalidSignature(Unauthenticated):
    """The request with an event has no right signature; the text tells why."""

    def __init__(self, text: str) -> None:
        A2AError.__init__(self, text)
        self.given = False


class InsufficientScope(A2AError):
    """The caller is authenticated but lacks a scope for this agent. Does not reveal what exists."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"Your credentials lack the scope {scope}.")
        self.scope = scope


class TooManyRequests(A2AError):
    """The caller's quota is used up; nothing was changed. It should retry after ``retry_after_s`` seconds."""

    def __init__(self, text: str, retry_after_s: int) -> None:
        super().__init__(text)
        self.retry_after_s = max(1, retry_after_s)


class IllegalTransition(Exception):
    """The event is not allowed in the task's state. It refuses the event and is not a crash."""


def safe_error_fields(error: BaseException) -> dict[str, object]:
    """Fields for a log line: ``error`` has the classes of the exception and its causes, ``raised_at`` the traceback."""
    chain = list(causes_of(error))
    kinds = " < ".join(_kind(cause) for cause in chain)
    fields: dict[str, object] = {"error": kinds}
    if "UnknownServiceError" in kinds:
        fields["remedy"] = "the zip has data of AWS services only whose names stand as text in the project's code"
    return fields | {"raised_at": [place for cause in reversed(chain) for place in _places(cause)]}


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """The error, then its causes and contexts."""
    ids: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in ids:
        ids.add(id(cause))
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _kind(error: BaseException) -> str:
    """The class; for an AWS error also the operation and the error code, which never contain client data."""
    fields = vars(error)  # without properties, which may raise
    answer = fields.get("response")
    code = answer.get("Error", {}).get("Code") if isinstance(answer, dict) else None
    return f"{type(error).__name__}({fields.get('operation_name', '')}: {code})" if code else type(error).__name__


def text_of(error: BaseException) -> str:
    """The error's text; "" if the error's own code for its text raises."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - any exception of that code
        return ""


def _places(error: BaseException) -> Iterator[str]:
    step = error.__traceback__
    while step:
        code = step.tb_frame.f_code
        yield f"{code.co_filename}:{step.tb_lineno} {code.co_name}"
        step = step.tb_next
