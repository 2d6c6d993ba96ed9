from __future__ import annotations

from hashlib import sha256

import pytest

from a2a_serverless.domain.model import TaskKey
from a2a_serverless.store.payloads import PayloadCorrupted, PayloadStore
from a2a_serverless.testing.memory import MemoryBlobStore

KEY = TaskKey("tenant", "own/er", "task")
TEXT = "é" * 60
NAME = f"tenant/own%2Fer/task/{sha256(TEXT.encode()).hexdigest()}"


def test_a_small_text_stays_in_its_item() -> None:
    blobs = MemoryBlobStore()
    payloads = PayloadStore(blobs, limit=120)
    assert payloads.store(KEY, TEXT) == {"body": {"S": TEXT}}
    assert payloads.fetch({"body": {"S": TEXT}}) == TEXT
    assert blobs.content == {}


def test_a_text_over_the_limit_in_bytes_becomes_a_blob_named_by_task_and_digest() -> None:
    blobs = MemoryBlobStore()
    payloads = PayloadStore(blobs, limit=119)
    item = payloads.store(KEY, TEXT)
    assert item == {"blob": {"S": NAME}, "size": {"N": "120"}}
    assert blobs.content == {NAME: TEXT.encode()}
    assert payloads.fetch(item) == TEXT


@pytest.mark.parametrize("content", [TEXT.encode()[:-2], b"x" * 120, b""])
def test_a_blob_that_is_not_what_was_stored_is_refused(content: bytes) -> None:
    blobs = MemoryBlobStore()
    payloads = PayloadStore(blobs, limit=1)
    item = payloads.store(KEY, TEXT)
    blobs.content[NAME] = content
    with pytest.raises(PayloadCorrupted, match="is not what was stored"):
        payloads.fetch(item)


def test_a_blob_that_is_gone_is_refused() -> None:
    blobs = MemoryBlobStore()
    payloads = PayloadStore(blobs, limit=1)
    item = payloads.store(KEY, TEXT)
    blobs.content.clear()
    with pytest.raises(PayloadCorrupted, match="is gone"):
        payloads.fetch(item)


class Unlisted(MemoryBlobStore):
    """A bucket that its caller may not list: only who knows what he asks for is told that it is missing."""

    def get(self, name: str, size: int | None = None) -> bytes:
        if name not in self.content and size is None:
            raise PermissionError
        return super().get(name, size)


def test_a_blob_that_is_gone_is_noticed_without_the_right_to_list_the_bucket() -> None:
    blobs = Unlisted()
    payloads = PayloadStore(blobs, limit=1)
    item = payloads.store(KEY, TEXT)
    blobs.delete(NAME)
    with pytest.raises(PayloadCorrupted, match="gone"):
        payloads.fetch(item)
