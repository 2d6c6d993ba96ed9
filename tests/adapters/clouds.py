"""AWS in this process (moto), one client at a time, with made-up credentials."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from boto3.session import Session
from botocore.exceptions import ClientError
from moto import mock_aws

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def session() -> Session:
    """A session that knows no real account."""
    return Session("test", "test", region_name="us-east-1")


@contextmanager
def cloud(service: Any) -> Iterator[Any]:
    """A client of an empty account."""
    with mock_aws(), closing(session().client(service)) as client:
        yield client


def error(code: str, **response: Any) -> ClientError:
    """What botocore raises when AWS answers with that code."""
    content: Mapping[str, Any] = {"Error": {"Code": code, "Message": ""}, **response}
    return ClientError(content, "Call")  # type: ignore[arg-type]
