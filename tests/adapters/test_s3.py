from __future__ import annotations

import base64
from contextlib import closing
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

import pytest
from botocore.exceptions import ClientError

from a2a_serverless.adapters.aws import Aws
from a2a_serverless.adapters.s3 import S3BlobStore
from tests.adapters.clouds import cloud, error, session

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "tenant/own%2Fer/task/0a1b"


@pytest.fixture
def blobs() -> Iterator[S3BlobStore]:
    with cloud("s3") as client:
        client.create_bucket(Bucket="blobs")
        yield S3BlobStore(lambda: client, "blobs")


@pytest.mark.parametrize("content", [b"", b"\0\xff", "长".encode() * 100_000])
def test_content_comes_back_as_it_was_however_often_it_was_put(blobs: S3BlobStore, content: bytes) -> None:
    blobs.put(NAME, content)
    blobs.put(NAME, content)
    assert blobs.get(NAME) == content


def test_getting_a_blob_that_does_not_exist_raises_key_error(blobs: S3BlobStore) -> None:
    with pytest.raises(KeyError, match="tenant"):
        blobs.get(NAME)


def test_another_error_of_s3_is_raised_without_change() -> None:
    with cloud("s3") as client, pytest.raises(ClientError, match="NoSuchBucket"):
        S3BlobStore(lambda: client, "nowhere").get(NAME)


def test_names_are_those_that_begin_so_and_what_is_deleted_is_gone(blobs: S3BlobStore) -> None:
    names = ["t/alice/1/a", "t/alice/1/b", "t/alice/2/a", "t/alice2/1/a"]
    for name in names:
        blobs.put(name, b"x")
    assert list(blobs.list_names("t/alice/")) == names[:3]
    blobs.delete(names[0])
    blobs.delete(names[0])
    assert list(blobs.list_names("t/alice/1/")) == ["t/alice/1/b"]


def test_the_size_of_a_content_is_known_and_what_is_not_there_has_none(blobs: S3BlobStore) -> None:
    blobs.put(NAME, b"seven..")
    assert (blobs.size(NAME), blobs.size(NAME + "x")) == (7, None)


def test_getting_a_blob_of_another_size_raises_key_error(blobs: S3BlobStore) -> None:
    blobs.put(NAME, b"seven..")
    assert blobs.get(NAME, 7) == b"seven.."
    with pytest.raises(KeyError):
        blobs.get(NAME, 8)


@pytest.fixture
def signing() -> Iterator[S3BlobStore]:
    with closing(Aws(session()).s3) as client:
        yield S3BlobStore(lambda: client, "blobs")


def test_a_link_is_for_one_object_and_one_purpose_and_runs_out(signing: S3BlobStore) -> None:
    place, _, query = signing.presign_get(NAME, 60, "über bord.png").partition("?")
    said = dict(parse_qsl(query))
    assert place.endswith(f"/{quote(NAME)}")
    assert (said["X-Amz-Expires"], said["X-Amz-Algorithm"]) == ("60", "AWS4-HMAC-SHA256")
    assert said["response-content-disposition"] == "attachment; filename*=UTF-8''%C3%BCber%20bord.png"


def test_a_slot_takes_one_content_only(signing: S3BlobStore) -> None:
    digest = sha256(b"content")
    slot = signing.presign_put(NAME, digest.hexdigest(), 7, 60)
    said = dict(parse_qsl(slot.url.partition("?")[2]))
    assert slot.headers == {
        "content-length": "7",
        "x-amz-checksum-sha256": base64.b64encode(digest.digest()).decode(),
    }
    assert set(slot.headers) <= set(said["X-Amz-SignedHeaders"].split(";"))


def test_a_name_of_a_clients_is_not_there_also_where_the_bucket_may_not_be_listed() -> None:
    def denied() -> Any:
        raise error("AccessDenied")

    with pytest.raises(KeyError):
        S3BlobStore(denied, "blobs").get(NAME, 7)
    with pytest.raises(ClientError):
        S3BlobStore(denied, "blobs").get(NAME)
