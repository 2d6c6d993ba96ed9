"""fakecloud, an emulator of AWS that checks rights and signatures, as a program that a variable names."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from botocore import handlers

from a2a_serverless.domain.loopback import LOOPBACK
from a2a_serverless_tools.stack.emulator import without_aws
from a2a_serverless_tools.stack.paths import CHECKOUT, Paths
from a2a_serverless_tools.stack.processes import claim_port, start, stop, wait_until_ready
from tests.roles.clouds import Cloud, over_tls
from tests.roles.faults import OF_FAKECLOUD
from tests.roles.recorder import ACCOUNT, REGION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VARIABLE: Final = "FAKECLOUD"
COMMAND: Final = (
    "FAKECLOUD NOT RUN: it needs `cargo install fakecloud --version 0.51.0 --locked --root FOLDER`, and then"
    " `FAKECLOUD=FOLDER/bin/fakecloud .venv/bin/pytest -n0 tests/roles/test_enforced.py tests/contract`"
)
RESTORED: Final = "-restored"


@contextmanager
def running() -> Iterator[str]:
    """The address of an empty fakecloud. Without the variable the test is skipped."""
    if not (program := os.environ.get(VARIABLE)):
        pytest.skip(COMMAND)
    with tempfile.TemporaryDirectory() as folder:
        paths = Paths(CHECKOUT, Path(folder))
        port = claim_port("fakecloud", 0)
        rights = ("--iam", "strict", "--verify-sigv4", "--account-id", ACCOUNT, "--region", REGION)
        command: list[str | Path] = [program, "--addr", f"{LOOPBACK}:{port}", "--log-level", "error", *rights]
        process = start(paths, "fakecloud", command, without_aws(os.environ), port=port)
        try:
            wait_until_ready(process, "/_fakecloud/health", seconds=60)
            yield process.url
        finally:
            stop(paths, process)


@contextmanager
def fakecloud() -> Iterator[Cloud]:
    """An account that it plays."""
    with running() as url, over_tls(), with_sources():
        yield Cloud(url, OF_FAKECLOUD)


@contextmanager
def with_sources() -> Iterator[None]:
    """Clients that are made in this block read the source of a copy from its name."""

    def add(parsed: dict[str, Any], **_: object) -> None:
        table: Mapping[str, Any] = parsed.get("Table", {})
        if table.get("TableName", "").endswith(RESTORED):
            source = {"SourceTableArn": table["TableArn"].removesuffix(RESTORED)}
            parsed["Table"] |= {"RestoreSummary": source | {"RestoreDateTime": 0, "RestoreInProgress": False}}

    hook = ("after-call.dynamodb.DescribeTable", add)
    handlers.BUILTIN_HANDLERS.append(hook)
    try:
        yield
    finally:
        handlers.BUILTIN_HANDLERS.remove(hook)
