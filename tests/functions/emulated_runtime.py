"""Lambda's Runtime Interface Emulator, which SAM carries along, around a function's zip: what `sam local invoke` does
inside a container, without one. The function sees its own zip and AWS's runtime client, and no package of the project.
"""

import json
import os
import platform
import sys
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from a2a_serverless_tools.stack import processes, sam
from a2a_serverless_tools.stack.emulator import aws_environment
from tests.stack.local import LocalStack

CLIENT = ("awslambdaric", "simplejson", "snapshot_restore_py")
INVOKE = "/2015-03-31/functions/function/invocations"


class Function:
    """A function that runs in the emulated runtime."""

    def __init__(self, url: str) -> None:
        self.url = url

    def invoke(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """What the function answers; an error of its own is an answer with `errorType`."""
        return dict(json.loads(self.invoke_raw(event)))

    def invoke_raw(self, event: Mapping[str, Any]) -> bytes:
        """The bytes that the function posted as its answer."""
        with urllib.request.urlopen(self.url + INVOKE, data=json.dumps(event).encode()) as answer:
            body: bytes = answer.read()
            return body


@contextmanager
def running(
    stack: LocalStack, name: str, scratch: Path, wrapper: str | None = None, more: Mapping[str, str] | None = None
) -> Iterator[Function]:
    """A function from its built zip, with the environment that the deployed template gives it, and what is in ``more``.

    ``wrapper`` is a script of the zip that starts the runtime, as ``AWS_LAMBDA_EXEC_WRAPPER`` does.
    """
    code, client = scratch / "task", scratch / "client"
    with zipfile.ZipFile(stack.running.build.path / f"{name.title()}Function.zip") as archive:
        archive.extractall(code)
    _link_runtime_client(client)
    port, runtime_port = processes.claim_port(name, 0), processes.claim_port(name, 0)
    addresses = ["--runtime-interface-emulator-address", f"127.0.0.1:{port}"]
    addresses += ["--runtime-api-address", f"127.0.0.1:{runtime_port}"]
    start: list[str | Path] = ["/bin/sh", code / wrapper] if wrapper else []
    # -S: no site-packages, and so nothing but the zip and the client.
    command: list[str | Path] = [
        _emulator(stack),
        *addresses,
        *start,
        sys.executable,
        "-S",
        "-m",
        "awslambdaric",
        "app.handler",
    ]
    env = {
        **sam.function_environment(stack.deployment, name),
        **aws_environment(stack.deployment.endpoint),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{code}{os.pathsep}{client}",
        "LAMBDA_TASK_ROOT": str(code),
        "AWS_LAMBDA_FUNCTION_TIMEOUT": "30",
        **(more or {}),
    }
    process = processes.start(stack.paths, f"function-{name}", command, env, port=port)
    try:
        processes.wait_until_ready(process, "/", seconds=60)
        yield Function(process.url)
    finally:
        processes.stop(stack.paths, process)


def _emulator(stack: LocalStack) -> Path:
    machine = {"x86_64": "x86_64", "aarch64": "arm64"}.get(platform.machine())
    found = list(stack.paths.sam.parents[1].glob(f"lib/*/site-packages/samcli/local/rapid/aws-lambda-rie-{machine}"))
    if sys.platform != "linux" or not found:
        pytest.skip(f"SAM has no Runtime Interface Emulator for {sys.platform} on {platform.machine()}")
    return found[0]


def _link_runtime_client(folder: Path) -> None:
    folder.mkdir()
    for package in CLIENT:
        files = metadata.files(package) or []
        site = Path(str(files[0].locate())).parents[len(files[0].parts) - 1]
        for top in {file.parts[0] for file in files if not file.parts[0].endswith(".dist-info")}:
            (folder / top).symlink_to(site / top)
