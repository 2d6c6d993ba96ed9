"""Big content in an S3 bucket. The bucket's lifecycle deletes it after the last task that may point to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_s3 import S3Client


class S3Blobs:
    """``ports.Blobs``. ``client`` is asked for when there is something big."""

    def __init__(self, client: Callable[[], S3Client], bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, name: str, content: bytes) -> None:
        self._client().put_object(Bucket=self._bucket, Key=name, Body=content)

    def get(self, name: str) -> bytes:
        try:
            answer = self._client().get_object(Bucket=self._bucket, Key=name)
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                raise KeyError(name) from None
            raise
        with answer["Body"] as body:
            return body.read()

    def names(self, prefix: str) -> Iterator[str]:
        pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        yield from (found["Key"] for page in pages for found in page.get("Contents", []))

    def delete(self, name: str) -> None:
        self._client().delete_object(Bucket=self._bucket, Key=name)
