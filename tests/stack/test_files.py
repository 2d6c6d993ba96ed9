"""Twenty megabytes go in and come out again, over the deployed bucket."""

import hashlib
from dataclasses import replace

import pytest

from a2a_serverless.client import over_urllib, text_message
from a2a_serverless.client.discovery import discover
from a2a_serverless.client.files import download, file_part
from a2a_serverless.domain.model import SendRequest, Task
from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.stack]

SIZE = 20 * 1024 * 1024


def test_a_file_of_twenty_megabytes_goes_in_and_comes_out(stack: LocalStack) -> None:
    content = bytes(range(256)) * (SIZE // 256)
    client = discover(f"{stack.options.api_url}/outline", over_urllib).client
    part = file_part(client, content, "big.bin")
    message = text_message("Sailing. Boats. Wind.")
    sent = client.send(SendRequest(replace(message, parts=(*message.parts, part)), return_immediately=True))
    assert isinstance(sent, Task)
    (shown,) = (part for part in client.get(sent.task_id).history[0].parts if part.kind == "url")
    got = b"".join(download(str(shown.value), over_urllib))
    assert (shown.filename, len(got)) == ("big.bin", SIZE)
    assert "X-Amz-Expires=3600&" in str(shown.value)
    assert "X-Amz-Signature=" in str(shown.value)
    assert hashlib.sha256(got).digest() == hashlib.sha256(content).digest()
