"""Blobs in an S3 bucket. The bucket's lifecycle rule deletes them after the last task that may point to them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from urllib.parse import quote

from botocore.exceptions import ClientError

from a2a_serverless.domain.contents import UploadSlot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_s3 import S3Client


class S3BlobStore:
    """``ports.BlobStore``. ``client`` is called on first use."""

    def __init__(self, client: Callable[[], S3Client], bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, name: str, content: bytes) -> None:
        self._client().put_object(Bucket=self._bucket, Key=name, Body=content)

    def get(self, name: str, size: int | None = None) -> bytes:
        try:
            answer = self._client().get_object(Bucket=self._bucket, Key=name)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            # Without permission to list the bucket, S3 answers a missing key with 403; clients may name any key.
            if code == "NoSuchKey" or (code == "AccessDenied" and size is not None):
                raise KeyError(name) from None
            raise
        with answer["Body"] as body:
            if size is not None and answer["ContentLength"] != size:
                raise KeyError(name)
            return body.read()

    def size(self, name: str) -> int | None:
        try:
            return self._client().head_object(Bucket=self._bucket, Key=name)["ContentLength"]
        except ClientError as error:
            # An answer to HEAD has no body, so its code is the status. 403 as in ``get``.
            if error.response["Error"]["Code"] in {"404", "403", "NoSuchKey", "AccessDenied"}:
                return None
            raise

    def list_names(self, prefix: str) -> Iterator[str]:
        pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        yield from (entry["Key"] for page in pages for entry in page.get("Contents", []))

    def delete(self, name: str) -> None:
        self._client().delete_object(Bucket=self._bucket, Key=name)

    def presign_get(self, name: str, seconds: int, filename: str | None = None) -> str:
        disposition = (
            f"attachment; filename*=UTF-8''{quote(filename, safe='', errors='replace')}" if filename else "attachment"
        )
        params = {"Bucket": self._bucket, "Key": name, "ResponseContentDisposition": disposition}
        return self._client().generate_presigned_url("get_object", Params=params, ExpiresIn=seconds)

    def presign_put(self, name: str, sha256: str, size: int, seconds: int) -> UploadSlot:
        headers = {
            "content-length": str(size),
            "x-amz-checksum-sha256": base64.b64encode(bytes.fromhex(sha256)).decode(),
        }
        params = {
            "Bucket": self._bucket,
            "Key": name,
            "ContentLength": size,
            "ChecksumSHA256": headers["x-amz-checksum-sha256"],
        }
        return UploadSlot(
            self._client().generate_presigned_url("put_object", Params=params, ExpiresIn=seconds), headers
        )
