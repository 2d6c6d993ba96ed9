"""Error bodies as models: google.rpc's detail objects, and the objects around them in each binding and version.

The table of codes is that of ``protocol/error_codes.py``. 1.0: specification 9.5 and 11.6. 0.3: specification 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field
from pydantic_core import to_json

from a2a_serverless.domain import errors
from a2a_serverless.protocol.error_codes import DOMAIN, TYPE, code_of, text_of
from a2a_serverless.protocol.protojson import ProtoModel

if TYPE_CHECKING:
    from a2a_serverless.protocol.jsonrpc import RpcId
    from a2a_serverless.protocol.versions import ProtocolVersion


class Detail(ProtoModel):
    """A detail object of google.rpc, which names its type."""

    type_url: str = Field(alias="@type")


class ErrorInfo(Detail):
    """The reason, domain and metadata of an error."""

    reason: str
    domain: str
    metadata: dict[str, str] | None = None


class BadField(ProtoModel):
    """A bad field: its path as the client wrote it, and the valid values."""

    field: str
    description: str


class BadRequest(Detail):
    """The wrong fields of a request."""

    field_violations: tuple[BadField, ...]


class RetryInfo(Detail):
    """The time to wait before the next try."""

    retry_delay: str


Details = tuple[ErrorInfo | BadRequest | RetryInfo, ...]


class JsonRpcError(ProtoModel):
    """The ``error`` of a JSON-RPC response."""

    code: int
    message: str
    data: Details


class Status(ProtoModel):
    """The ``error`` of an HTTP answer of 1.0 (11.6)."""

    code: int
    status: str
    message: str
    details: Details


class ErrorResponse(ProtoModel):
    """The body of an HTTP answer of 1.0 with an error."""

    error: Status


class OldErrorResponse(ProtoModel):
    """The same in 0.3, which names no form (8.2).

    The official clients read JSON-RPC's ``code`` (JavaScript), the ``type`` (Python), or 1.0's ``error`` (Go).
    """

    code: int
    type: str
    message: str
    error: Status


def details(error: Exception) -> Details:
    """google.rpc.ErrorInfo; also BadRequest if fields were wrong, and RetryInfo if the client may try again later."""
    reason = code_of(error).reason
    match error:
        case errors.InsufficientScope():
            return (_info(reason, {"scope": error.scope}),)
        case errors.TooManyRequests() | errors.Overloaded():
            return _info(reason), RetryInfo(type_url=TYPE + "RetryInfo", retry_delay=f"{error.retry_after_s}s")
        case errors.A2AError(violations=violations) if violations:
            fields = tuple(
                [BadField(field=violation.field, description=violation.description) for violation in violations]
            )
            return _info(reason), BadRequest(type_url=TYPE + "BadRequest", field_violations=fields)
    return (_info(reason),)


def _info(reason: str, metadata: dict[str, str] | None = None) -> ErrorInfo:
    return ErrorInfo(type_url=TYPE + "ErrorInfo", reason=reason, domain=DOMAIN, metadata=metadata)


def json_rpc_failure(call_id: RpcId, error: Exception, version: ProtocolVersion) -> bytes:
    """An error response of JSON-RPC. ``version`` is the method's."""
    body = JsonRpcError(code=code_of(error).rpc_for(version), message=text_of(error), data=details(error))
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (to_json(call_id), body.json_bytes())


def http_failure(error: Exception, version: ProtocolVersion) -> tuple[int, bytes]:
    """HTTP status and body of an error."""
    code = code_of(error)
    status, text = code.http_for(version), text_of(error)
    body = Status(code=status, status=code.grpc, message=text, details=details(error))
    if version == "1.0":
        return status, ErrorResponse(error=body).json_bytes()
    old = OldErrorResponse(code=code.rpc_for(version), type=code.name, message=text, error=body)
    return status, old.json_bytes()
