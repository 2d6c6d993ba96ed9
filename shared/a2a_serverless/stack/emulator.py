"""The AWS emulator (ministack) and how to talk to it.

What it does not do, found by trying (1.5.33): HTTP APIs; method `ANY`; streaming integrations; wrapper scripts
(`AWS_LAMBDA_EXEC_WRAPPER`); a `MaximumConcurrency` that comes from a template parameter (a string then, at which the
queue poller stops); state after `kill -9`. A schedule's event comes in EventBridge's envelope. Functions run with the
Python of the emulator's environment and see its packages behind their own: that a zip is complete, others must prove.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from a2a_serverless.stack import guarded_emulator
from a2a_serverless.stack.errors import StackError
from a2a_serverless.stack.paths import Paths
from a2a_serverless.stack.processes import LOOPBACK, Process, claim_port, start, started, wait_until_ready

REGION = "us-east-1"
ACCOUNT = "000000000000"


def start_emulator(paths: Paths, *, port: int = 4566) -> Process:
    """Start the emulator, empty and closed to web pages, on 127.0.0.1; return when it answers. `port` 0 picks one."""
    port = claim_port("emulator", port)
    scratch = paths.state / "emulator"
    scratch.mkdir(parents=True, exist_ok=True)
    env = without_aws(os.environ) | {
        "BIND_HOST": LOOPBACK,
        "MINISTACK_HOST": LOOPBACK,
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "TMPDIR": str(scratch),
        "NO_PROXY": LOOPBACK,
        "no_proxy": LOOPBACK,
    }
    python, program = paths.emulator.with_name("python"), Path(guarded_emulator.__file__)
    process = start(paths, "emulator", [python, "-P", program], env, port=port)
    wait_until_ready(process, "/_ministack/health", seconds=30)
    return process


def running_emulator(paths: Paths) -> Process:
    """The emulator of the stack that is up. Raises `StackError` when none is."""
    for process in started(paths):
        if process.name == "emulator":
            return process
    raise StackError("emulator", "does not run", remedy="a2a-serverless up")


def aws_environment(endpoint: str, *, account: str = "test") -> dict[str, str]:
    """What an AWS SDK needs to talk to the emulator, and what keeps it from ever talking to anybody else."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": account,
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": LOOPBACK,
        "no_proxy": LOOPBACK,
    }


def without_aws(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without anything that names a real AWS account."""
    return {name: value for name, value in environment.items() if not name.startswith("AWS_")}
