from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from a2a_serverless.adapters.s3 import S3Blobs
from tests.adapters.clouds import cloud

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "tenant/own%2Fer/task/0a1b"


@pytest.fixture
def blobs() -> Iterator[S3Blobs]:
    with cloud("s3") as client:
        client.create_bucket(Bucket="blobs")
        yield S3Blobs(lambda: client, "blobs")


@pytest.mark.parametrize("content", [b"", b"\0\xff", "长".encode() * 100_000])
def test_content_comes_back_as_it_was_however_often_it_was_put(blobs: S3Blobs, content: bytes) -> None:
    blobs.put(NAME, content)
    blobs.put(NAME, content)
    assert blobs.get(NAME) == content


def test_what_is_not_there_is_a_key_error(blobs: S3Blobs) -> None:
    with pytest.raises(KeyError, match="tenant"):
        blobs.get(NAME)


def test_any_other_failure_goes_through() -> None:
    with cloud("s3") as client, pytest.raises(ClientError, match="NoSuchBucket"):
        S3Blobs(lambda: client, "nowhere").get(NAME)


def test_names_are_those_that_begin_so_and_what_is_deleted_is_gone(blobs: S3Blobs) -> None:
    names = ["t/alice/1/a", "t/alice/1/b", "t/alice/2/a", "t/alice2/1/a"]
    for name in names:
        blobs.put(name, b"x")
    assert list(blobs.names("t/alice/")) == names[:3]
    blobs.delete(names[0])
    blobs.delete(names[0])
    assert list(blobs.names("t/alice/1/")) == ["t/alice/1/b"]
