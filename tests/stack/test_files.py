"""Twenty megabytes go in and come out again, by way of the bucket, the deployed api and the deployed worker."""

import hashlib
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

import pytest

from a2a_serverless.client import text_message
from a2a_serverless.client.discovery import discover
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest, Task, TaskState
from a2a_serverless_tools.cli.file_transfer import download, file_part
from tests.observed import observed
from tests.stack.local import LocalStack, eventually

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

SIZE = 20 * 1024 * 1024


def test_a_file_of_twenty_megabytes_goes_in_and_comes_out_as_an_artifact(stack: LocalStack) -> None:
    content = bytes(range(256)) * (SIZE // 256)
    transport = observed(stack.options.api_url)
    client = discover(f"{stack.options.api_url}/conformance-files", transport).client
    part = file_part(client, transport, content, "big.bin", "application/octet-stream")
    sent = client.send(
        SendMessageRequest(
            message=(text_message("")).model_copy(update={"parts": (part,)}),
            configuration=SendMessageConfiguration(return_immediately=True),
        )
    )
    assert isinstance(sent, Task)
    eventually(lambda: client.get(sent.id).status.state in TERMINAL)
    task = client.get(sent.id)
    assert task.status.state is TaskState.COMPLETED
    (artifact,) = task.artifacts
    (given,) = artifact.parts
    assert (artifact.name, given.kind) == ("big.bin", "url")
    got = b"".join(download(str(given.value), transport))
    assert len(got) == SIZE
    assert hashlib.sha256(got).digest() == hashlib.sha256(content).digest()
    opened, read = (browser_asks(str(given.value), mode) for mode in ("navigate", "cors"))
    assert (opened.status, opened.headers["content-disposition"].partition(";")[0]) == (200, "attachment")
    assert read.status == 403


def browser_asks(url: str, mode: str) -> HTTPResponse:
    """What a browser gets for a link of the console's page at another port, and what a script of the page gets."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=60)
    dest = "document" if mode == "navigate" else "empty"
    sent = {"sec-fetch-site": "same-site", "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    connection.request("GET", f"{parts.path}?{parts.query}", headers=sent)
    answer = connection.getresponse()
    connection.close()
    return answer
