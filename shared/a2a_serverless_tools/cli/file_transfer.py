"""Sends files to agents and downloads theirs. Small files go inline; big files are uploaded first."""

from __future__ import annotations

import base64
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from a2a_serverless.client.client import JSON, Client
from a2a_serverless.client.errors import HttpError
from a2a_serverless.domain.contents import LARGEST
from a2a_serverless.domain.errors import A2AError, InvalidAgentResponse
from a2a_serverless.http_client.transport import ClientRequest, Transport
from a2a_serverless.protocol.protojson import read_peer
from a2a_serverless.protocol.strict_json import loads
from a2a_serverless.protocol.v1 import Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.model import Json

INLINE_PART_BYTES: Final = 4 * 1024 * 1024
BLOCK: Final = 1024 * 1024
SECONDS: Final = 120.0


def file_part(
    client: Client, transport: Transport, content: bytes, filename: str, media_type: str | None = None
) -> Part:
    """Makes a message part of a file: inline up to 4 MiB, else uploaded first (to agents of this project only).

    The upload goes by ``transport``, without the client's credentials: the link has its own, and may be of any origin.
    Raises Unreachable, HttpError, or InvalidAgentResponse.
    """
    if len(content) <= INLINE_PART_BYTES:
        return Part(raw=base64.b64encode(content).decode(), media_type=media_type, filename=filename)
    return Part(url=_upload(client, transport, content), media_type=media_type, filename=filename)


def download(url: str, transport: Transport) -> Iterator[bytes]:
    """Downloads a part's URL in blocks, at most 100 MiB, without credentials. Raises as ``file_part``."""
    with transport(ClientRequest(url, seconds=SECONDS, waits=True)) as answer:
        if answer.status != HTTPStatus.OK:
            raise HttpError(answer.status, "The file does not exist, or its link has expired: get the task again.")
        size = 0
        while block := answer.body.read(BLOCK):
            size += len(block)
            if size > LARGEST:
                raise InvalidAgentResponse(f"The file is larger than {LARGEST} bytes.")
            yield block


def _upload(client: Client, transport: Transport, content: bytes) -> str:
    from a2a_serverless.protocol.additions import UploadRequest, UploadResponse

    upload = UploadRequest(sha256=sha256(content).hexdigest(), size=len(content)).json_bytes()
    where = f"{client.url}/uploads" + (f"?tenant={client.tenant}" if client.tenant else "")
    answer = read_peer(
        UploadResponse, _fetch_json(client, ClientRequest(where, {"Content-Type": JSON, **client.headers}, upload))
    )
    target = answer.upload
    with transport(ClientRequest(target.url, target.headers, content, SECONDS, put=True, waits=True)) as upload_answer:
        if upload_answer.status != HTTPStatus.OK:
            raise HttpError(upload_answer.status, "The upload was refused.")
    return answer.part.url


def _fetch_json(client: Client, call: ClientRequest) -> Json:
    with client.transport(call) as answer:
        body = answer.body.read(BLOCK)
        if answer.status != HTTPStatus.OK:
            raise HttpError(answer.status, "The agent accepts no uploads: send a file of at most 4 MiB.")
    try:
        return loads(body)
    except A2AError as error:
        raise InvalidAgentResponse(f"The agent's answer cannot be read: {error}") from error
