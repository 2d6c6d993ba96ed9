"""What SAM itself asks AWS for, to deploy a stack and to delete it, is in the policies for whoever does that.

The calls are those of the real SAM, seen on their way to the emulator. What CloudFormation does for each resource is in
tests/functions/deployer.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from random import Random
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from a2a_serverless_tools.stack import processes
from a2a_serverless_tools.stack.emulator import aws_environment, without_aws
from a2a_serverless_tools.stack.targets import this_machine
from faulty_proxy import FaultyProxy, serving
from tests.functions.deployer import FILES, STACK
from tests.functions.template import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

NAME: Final = f"{STACK}-recorded"
ANONYMOUS: Final = {"sts:GetCallerIdentity"}  # needs no permission
# S3's actions for calls of an object, and for a bucket by its subresource.
READS, WRITES = "GetObject", "PutObject"
OBJECT: Final = {"DELETE": "DeleteObject", "GET": READS, "HEAD": READS, "POST": WRITES, "PUT": WRITES}
SUBRESOURCES: Final = {
    "encryption": "EncryptionConfiguration",
    "location": "BucketLocation",
    "policy": "BucketPolicy",
    "publicAccessBlock": "BucketPublicAccessBlock",
    "tagging": "BucketTagging",
    "versioning": "BucketVersioning",
}


@dataclass(frozen=True)
class Call:
    """An IAM action, and the ARN that it is done to."""

    action: str
    resource: str


@dataclass
class Recorder(FaultyProxy):
    """Forwards to the emulator, and keeps the calls. ``url`` is the recorder's own."""

    url: str = ""
    calls: list[Call] = field(default_factory=list)

    def forward(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        service = headers["Authorization"].split("/")[3]
        call = s3_call(method, path) if service == "s3" else query_call(service, body)
        if call.action not in ANONYMOUS:
            self.calls.append(call)
        status, received, content = super().forward(method, path, headers, body)
        if call.action == "cloudformation:GetTemplate":  # SAM deletes only what is in S3 itself
            content = content.replace(f"{self.url}/".encode(), b"https://s3.us-east-1.amazonaws.com/")
        return status, received, content


def s3_call(method: str, path: str) -> Call:
    parts = urlsplit(path)
    bucket, _, key = unquote(parts.path).strip("/").partition("/")
    asked = parse_qs(parts.query, keep_blank_values=True)
    if key:
        action = OBJECT[method]
    elif subresource := next((SUBRESOURCES[name] for name in asked if name in SUBRESOURCES), ""):
        action = f"{method.title()}{subresource}"
    else:
        action = {"PUT": "CreateBucket", "GET": "ListBucket", "HEAD": "ListBucket"}[method]
    return Call(f"s3:{action}", f"arn:aws:s3:::{bucket}{'/' if key else ''}{key}")


def query_call(service: str, body: bytes) -> Call:
    asked = {name: values[0] for name, values in parse_qs(body.decode()).items()}
    stack = asked.get("StackName", "")
    name = stack if stack.startswith("arn:") else f"arn:aws:{service}:us-east-1:000000000000:stack/{stack}/1"
    return Call(f"{service}:{asked['Action']}", name)


def allowed(call: Call) -> bool:
    def holds(statement: Mapping[str, Any]) -> bool:
        return call.action in statement["Action"] and fnmatchcase(call.resource, statement["Resource"])

    return any(holds(one) for file in FILES for one in json.loads(file.read_text())["Statement"])


def test_the_policies_allow_each_call_of_sam_that_deploys_or_deletes(stack: LocalStack, tmp_path: Path) -> None:
    (tmp_path / ".aws-sam").mkdir()
    (tmp_path / ".aws-sam/build").symlink_to(stack.running.build.path)
    shutil.copyfile(ROOT / "samconfig.example.toml", tmp_path / "samconfig.toml")
    parameters = {**this_machine().parameters, "ResponseStreaming": "off"}
    overrides = ["--parameter-overrides", *(f"{name}={value}" for name, value in parameters.items())]
    port = processes.claim_port("recorder", 0)
    recorder = Recorder(stack.running.emulator.port, Random(1), url=f"http://127.0.0.1:{port}")  # noqa: S311

    def sam(*arguments: str) -> None:
        environment = without_aws(os.environ) | aws_environment(recorder.url)
        done = subprocess.run(  # noqa: S603 - SAM, by path
            [stack.paths.sam, *arguments, "--stack-name", NAME],
            cwd=tmp_path,
            env=environment | {"SAM_CLI_TELEMETRY": "0", "SAM_CLI_POLL_DELAY": "0.5"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    with serving(recorder, port):
        sam("deploy", "--s3-prefix", NAME, "--no-confirm-changeset", *overrides)
        sam("deploy", "--no-confirm-changeset", "--no-fail-on-empty-changeset", *overrides)
        deployed = len(recorder.calls)
        sam("delete", "--s3-prefix", NAME, "--no-prompts", "--region", "us-east-1")
    deploying, deleting = recorder.calls[:deployed], recorder.calls[deployed:]
    assert {"s3:PutObject", "cloudformation:ExecuteChangeSet"} <= {call.action for call in deploying}
    assert {"s3:DeleteObject", "cloudformation:DeleteStack"} <= {call.action for call in deleting}
    assert {call for call in recorder.calls if not allowed(call)} == set()
