"""The binding HTTP+JSON (specification 11): the address and the body of a request, and the error in an answer.

0.3 has the same operations below ``/v1``. It names no form of errors, so they are recognised by the name or the code of
the error, or by the HTTP status, as the official SDKs of 0.3 send them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from a2a_serverless.client.errors import BY_HTTP, ERROR, SERVER_ERROR, a2a_error, http_error, kind_by_code, objects_in
from a2a_serverless.domain.errors import InternalError, TaskNotCancelable, TaskNotFound, UnsupportedOperation
from a2a_serverless.domain.origins import address_below
from a2a_serverless.protocol import peers
from a2a_serverless.protocol.error_codes import CODES, INTERNAL
from a2a_serverless.protocol.protojson import as_json

if TYPE_CHECKING:
    from a2a_serverless.client.errors import HttpError
    from a2a_serverless.domain.errors import A2AError
    from a2a_serverless.domain.model import Json
    from a2a_serverless.http_client.transport import ClientResponse
    from a2a_serverless.protocol.operations import Operation
    from a2a_serverless.protocol.protojson import ProtoModel
    from a2a_serverless.protocol.versions import ProtocolVersion

# Where several classes share a name, the first class in the table is the general class.
_BY_REASON: Final = {code.reason: kind for kind, code in reversed(CODES.items())}
_BY_NAME: Final = {code.name: kind for kind, code in reversed(CODES.items())}
_BY_STATUS: Final = {404: TaskNotFound, 409: TaskNotCancelable, 501: UnsupportedOperation}


def address_and_body(
    base: str, version: ProtocolVersion, operation: Operation, request: ProtoModel
) -> tuple[str, bytes | None]:
    """The URL of a request and its body; None for GET. The tenant is in the path."""
    members: dict[str, Any] = as_json(request)
    tenant = quote(members.pop("tenant", ""), safe="")
    prefix = "/v1" if version == "0.3" else tenant and f"/{tenant}"
    url = address_below(base, prefix + operation.path.format(id=quote(members.pop("id", ""), safe="")))
    if operation.sends:
        return url, peers.print_params(version, request, "HTTP+JSON")
    if operation.verb == "POST":
        return url, b"{}"
    query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in members.items()}
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query, quote_via=quote)}" if query else url, None


def error_in(
    version: ProtocolVersion, operation: Operation, answer: ClientResponse, document: Json
) -> A2AError | HttpError | None:
    """The error in an answer, HttpError if its status says more than its document; None if there is no error."""
    status, body = answer.status, document if isinstance(document, dict) else {}
    inner = body.get("error")
    problem = inner if isinstance(inner, dict) else body
    if problem is body and status < ERROR and inner is None:
        return None
    reasons = [str(detail.get("reason")) for detail in objects_in(problem, "details")]
    name = str(problem.get("error") or problem.get("type") or "").rpartition(".")[2]
    kind = next((_BY_REASON[reason] for reason in reasons if reason in _BY_REASON), None)
    kind = kind or _BY_NAME.get(name) or kind_by_code(problem)
    if kind is None and version == "0.3" and "message" in problem and not operation.sends:
        kind = _BY_STATUS.get(status)
    if kind is None and problem.get("status") == INTERNAL.grpc:
        kind = InternalError
    if kind is None or status in BY_HTTP or (status > SERVER_ERROR and kind is InternalError):
        return http_error(answer, document)
    return a2a_error(kind, problem, "details")
