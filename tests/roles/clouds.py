"""Accounts of AWS that programs play. moto checks no right; an emulator checks each call.

Roles, rights and sessions are made by calls of IAM and STS, so any emulator that has these can be a cloud.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from boto3.session import Session
from botocore import handlers
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws

from a2a_serverless_tools.stack.emulator import start_emulator
from a2a_serverless_tools.stack.paths import CHECKOUT, Paths
from a2a_serverless_tools.stack.processes import stop
from tests.adapters.clouds import session
from tests.functions.transformed import PATHS, python_of
from tests.roles.faults import OF_EMULATOR, Fault, Statements
from tests.roles.recorder import ACCOUNT, REGION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SERVICES: Final = {
    "dynamodb": "DYNAMODB",
    "s3": "S3",
    "scheduler": "SCHEDULER",
    "sqs": "SQS",
    "kms": "KMS",
    "secretsmanager": "SECRETS_MANAGER",
    "logs": "CLOUDWATCH_LOGS",
}
TLS: Final = {"X-Forwarded-Proto": "https"}
"""What a proxy that ends TLS adds to a request. Emulators without TLS take it for TLS."""
FORBIDDEN: Final = 403
TRUST: Final = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "sts:AssumeRole"}
    ],
}
_numbers = count()


@dataclass(frozen=True)
class Cloud:
    """An empty account, at an address; moto has none. It differs from AWS by its faults."""

    endpoint: str = ""
    faults: tuple[Fault, ...] = ()

    def variables(self) -> dict[str, str]:
        """The environment of whoever may do everything in it."""
        found = {
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }
        for name, variable in SERVICES.items():
            found[f"AWS_ENDPOINT_URL_{variable}"] = self.endpoint or f"https://{name}.{REGION}.amazonaws.com"
        return found

    def client(self, service: str) -> Any:
        """A client of whoever may do everything in it."""
        clients: Any = session()
        return clients.client(service, endpoint_url=self.endpoint)

    def take_role(self, name: str, statements: Statements) -> Mapping[str, str]:
        """The environment of a session of a new role that has these rights; an empty one if no right is checked.

        What the faults do not let it evaluate is amended first.
        """
        if not self.endpoint:
            return {}
        role = self.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]
        rights = json.dumps({"Version": "2012-10-17", "Statement": self.amended(statements)})
        self.client("iam").put_role_policy(RoleName=name, PolicyName="rights", PolicyDocument=rights)
        taken = self.client("sts").assume_role(RoleArn=role["Arn"], RoleSessionName=name)["Credentials"]
        return {
            "AWS_ACCESS_KEY_ID": taken["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": taken["SecretAccessKey"],
            "AWS_SESSION_TOKEN": taken["SessionToken"],
        }

    def amended(self, statements: Statements) -> Statements:
        """The statements in a form that the cloud can evaluate."""
        for fault in self.faults:
            statements = fault.amend(statements)
        return statements

    def refuses(self, statements: Statements, service: str, operation: str, **params: Any) -> bool:
        """Whether the cloud refuses a call of a new role with these rights, as they are."""
        taken = replace(self, faults=()).take_role(f"role-{next(_numbers)}", statements)
        try:
            getattr(self.session_client(service, taken), operation)(**params)
        except ClientError as error:
            return denies(error)
        return False

    def session_client(self, service: str, taken: Mapping[str, str]) -> Any:
        """A client of a session of a role. It tries a call once."""
        clients: Any = Session(
            taken["AWS_ACCESS_KEY_ID"], taken["AWS_SECRET_ACCESS_KEY"], taken["AWS_SESSION_TOKEN"], region_name=REGION
        )
        once = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
        return clients.client(service, endpoint_url=self.endpoint, config=once)


def denies(error: ClientError) -> bool:
    """Whether the error is a refusal. An answer to HEAD has no body, so its code is the status."""
    return error.response["Error"]["Code"] in {"AccessDenied", "AccessDeniedException", str(FORBIDDEN)}


@contextmanager
def moto() -> Iterator[Cloud]:
    """moto, in this process."""
    with mock_aws():
        yield Cloud()


@contextmanager
def emulator() -> Iterator[Cloud]:
    """The emulator that the laptop's stack runs in, which checks each call if a variable says so."""
    python_of(PATHS.emulator)
    with tempfile.TemporaryDirectory() as folder, over_tls():
        paths = Paths(CHECKOUT, Path(folder))
        with patch.dict(os.environ, {"AUTH": "true", "MINISTACK_ACCOUNT_ID": ACCOUNT}):
            process = start_emulator(paths, port=0)
        try:
            yield Cloud(process.url, OF_EMULATOR)
        finally:
            stop(paths, process)


@contextmanager
def over_tls() -> Iterator[None]:
    """Clients that are made in this block say that they use TLS."""

    def add(params: dict[str, Any], **_: object) -> None:
        params["headers"].update(TLS)

    hook = ("before-call", add)
    handlers.BUILTIN_HANDLERS.append(hook)
    try:
        yield
    finally:
        handlers.BUILTIN_HANDLERS.remove(hook)
