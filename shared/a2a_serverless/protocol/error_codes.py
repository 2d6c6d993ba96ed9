"""The JSON-RPC code, HTTP status and gRPC status name of each error, in 1.0 and in 0.3: one table.

1.0: specification 5.4 at v1.0.1 (its HTTP statuses, not those of 1.0.0) and 9.5, 11.6. 0.3: specification 8; its REST
binding names no statuses, so they are those of the official 0.3 SDK. An error that 0.3 has no code for degrades to
-32603 (its text still tells the cause). An exception that is no ``A2AError`` is our fault: the caller
reads none of its text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.domain import errors
from a2a_serverless.domain.errors import A2AError, InvalidRequest, MethodNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.protocol.versions import ProtocolVersion


class BodyTooLarge(InvalidRequest):
    """The body is over the limit of bytes, or of JSON values (-32600, HTTP 413)."""


class ContentEncodingNotSupported(InvalidRequest):
    """The body is compressed (-32600, HTTP 415)."""

    default = "The header Content-Encoding names a coding, and none is supported. Send the body as it is."


class EventAlreadyTaken(InvalidRequest):
    """Another event from outside was accepted at this address before (-32600, HTTP 409)."""

    default = "This address has taken another body before."


class HttpMethodNotAllowed(MethodNotFound):
    """The path exists, but not for this HTTP method (405); ``allowed`` is the value of the ``Allow`` header."""

    def __init__(self, allowed: Iterable[str], hint: str = "") -> None:
        self.allowed = tuple(sorted(set(allowed)))
        super().__init__(f"This path takes {', '.join(self.allowed)} only. {hint}".rstrip())


DOMAIN: Final = "a2a-protocol.org"
TYPE: Final = "type.googleapis.com/google.rpc."


class Code(NamedTuple):
    """One error. ``v0_3_rpc`` and ``v0_3_http`` are the JSON-RPC code and the HTTP status that a 0.3 caller gets.

    ``by_http``: every binding answers with HTTP's own status and headers, JSON-RPC and streams too.
    """

    name: str
    rpc: int
    http: int
    grpc: str
    v0_3_http: int
    v0_3_rpc: int | None = None
    by_http: bool = False

    @property
    def reason(self) -> str:
        """The reason in ErrorInfo: the class name without ``Error``, in UPPER_SNAKE."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", self.name.removesuffix("Error")).upper()

    def rpc_for(self, version: ProtocolVersion) -> int:
        """The JSON-RPC code for a caller of ``version``."""
        return self.rpc if version == "1.0" or self.v0_3_rpc is None else self.v0_3_rpc

    def http_for(self, version: ProtocolVersion) -> int:
        """The HTTP status for a REST caller of ``version``."""
        return self.http if version == "1.0" else self.v0_3_http


INTERNAL: Final = Code("InternalError", -32603, 500, "INTERNAL", 500)

CODES: Final[dict[type[A2AError], Code]] = {
    errors.ParseError: Code("JSONParseError", -32700, 400, "INVALID_ARGUMENT", 400),
    errors.InvalidRequest: Code("InvalidRequestError", -32600, 400, "INVALID_ARGUMENT", 400),
    EventAlreadyTaken: Code("InvalidRequestError", -32600, 409, "ALREADY_EXISTS", 409),
    ContentEncodingNotSupported: Code("InvalidRequestError", -32600, 415, "INVALID_ARGUMENT", 415, by_http=True),
    BodyTooLarge: Code("InvalidRequestError", -32600, 413, "INVALID_ARGUMENT", 413),
    errors.MethodNotFound: Code("MethodNotFoundError", -32601, 404, "NOT_FOUND", 404),
    HttpMethodNotAllowed: Code("MethodNotFoundError", -32601, 405, "UNIMPLEMENTED", 405),
    errors.InvalidParams: Code("InvalidParamsError", -32602, 400, "INVALID_ARGUMENT", 400),
    errors.InternalError: INTERNAL,
    errors.TaskNotFound: Code("TaskNotFoundError", -32001, 404, "NOT_FOUND", 404),
    errors.TaskNotCancelable: Code("TaskNotCancelableError", -32002, 400, "FAILED_PRECONDITION", 409),
    errors.PushNotSupported: Code("PushNotificationNotSupportedError", -32003, 400, "FAILED_PRECONDITION", 501),
    errors.UnsupportedOperation: Code("UnsupportedOperationError", -32004, 400, "FAILED_PRECONDITION", 501),
    errors.ContentTypeNotSupported: Code("ContentTypeNotSupportedError", -32005, 400, "INVALID_ARGUMENT", 415),
    errors.InvalidAgentResponse: Code("InvalidAgentResponseError", -32006, 500, "INTERNAL", 502),
    errors.ExtendedCardNotConfigured: Code(
        "ExtendedAgentCardNotConfiguredError", -32007, 400, "FAILED_PRECONDITION", 404
    ),
    errors.ExtensionRequired: Code("ExtensionSupportRequiredError", -32008, 400, "FAILED_PRECONDITION", 400, -32603),
    errors.VersionNotSupported: Code("VersionNotSupportedError", -32009, 400, "FAILED_PRECONDITION", 400, -32603),
    errors.Overloaded: Code("OverloadedError", -32000, 503, "UNAVAILABLE", 503, -32603),
    # JSON-RPC leaves the codes above -32000 to applications; A2A uses the rest.
    errors.Unauthenticated: Code("UnauthenticatedError", -31401, 401, "UNAUTHENTICATED", 401, -32603, by_http=True),
    errors.InvalidSignature: Code("UnauthenticatedError", -31401, 401, "UNAUTHENTICATED", 401, -32603, by_http=True),
    errors.InsufficientScope: Code(
        "InsufficientScopeError", -31403, 403, "PERMISSION_DENIED", 403, -32603, by_http=True
    ),
    errors.TooManyRequests: Code("TooManyRequestsError", -31429, 429, "RESOURCE_EXHAUSTED", 429, -32603, by_http=True),
}


def code_of(error: Exception) -> Code:
    """The error's row; a subclass takes the row of its nearest base, everything else is internal."""
    for kind in type(error).__mro__:
        if kind in CODES:
            return CODES[kind]
    return INTERNAL


def text_of(error: Exception) -> str:
    """The text for the caller."""
    return str(error) if isinstance(error, A2AError) else errors.InternalError.default


def headers_of(error: Exception) -> dict[str, str]:
    """The HTTP headers of an error: RFC 6750 (section 3) for 401 and 403, ``Retry-After`` for 429 and 503.

    For 415 ``Accept-Encoding`` (RFC 9110, 12.5.3).
    """
    match error:
        case ContentEncodingNotSupported():
            return {"accept-encoding": "identity"}
        case errors.Unauthenticated():
            return {"www-authenticate": 'Bearer realm="a2a"' + (', error="invalid_token"' if error.given else "")}
        case errors.InsufficientScope():
            challenge = f'Bearer realm="a2a", error="insufficient_scope", scope="{error.scope}"'
            return {"www-authenticate": challenge}
        case errors.TooManyRequests() | errors.Overloaded():
            return {"retry-after": str(error.retry_after_s)}
    return {}
