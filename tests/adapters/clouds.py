"""AWS in this process (moto), one client at a time, with made-up credentials."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from botocore.session import Session
from moto import mock_aws

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def session() -> Session:
    """A botocore session that knows no real account."""
    made = Session()
    made.set_credentials("test", "test")
    made.set_config_variable("region", "us-east-1")
    return made


@contextmanager
def cloud(service: str) -> Iterator[Any]:
    """A client of an empty account."""
    with mock_aws(), closing(session().create_client(service)) as client:
        yield client


def error(code: str, **response: Any) -> ClientError:
    """What botocore raises when AWS answers with that code."""
    content: Mapping[str, Any] = {"Error": {"Code": code, "Message": ""}, **response}
    return ClientError(content, "Call")  # type: ignore[arg-type]
