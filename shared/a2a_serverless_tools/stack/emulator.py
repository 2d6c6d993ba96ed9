"""The AWS emulator (ministack) and how to talk to it.

What version 1.5.33 does not do, found by tests: HTTP APIs; method `ANY`; streaming integrations; wrapper scripts
(`AWS_LAMBDA_EXEC_WRAPPER`); a `MaximumConcurrency` from a template parameter (it is a string then, which stops the
queue poller); state after `kill -9`; time zones and keywords of schedules (`scheduler.py` does);
alarms on several metrics (`guarded_emulator.py`). The event of a
schedule without an input comes in EventBridge's envelope. Functions run with the Python of the emulator's environment
and can import its packages too, so a run here does not prove that a zip is complete.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from a2a_serverless.domain.loopback import LOOPBACK
from a2a_serverless_tools.stack import guarded_emulator
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import Paths
from a2a_serverless_tools.stack.processes import Process, claim_port, start, started, wait_until_ready

REGION = "us-east-1"
_NO_PROXY = {"NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK}


def start_emulator(paths: Paths, *, port: int = 4566) -> Process:
    """Start an empty emulator on 127.0.0.1, closed to web pages; return when it answers. `port` 0 picks a free one."""
    port = claim_port("emulator", port)
    scratch = paths.state / "emulator"
    scratch.mkdir(parents=True, exist_ok=True)
    env = without_aws(os.environ) | {
        "BIND_HOST": LOOPBACK,
        "MINISTACK_HOST": LOOPBACK,
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "TMPDIR": str(scratch),
        **_NO_PROXY,
    }
    python, program = paths.emulator.with_name("python"), Path(guarded_emulator.__file__)
    process = start(paths, "emulator", [python, "-P", program], env, port=port)
    wait_until_ready(process, "/_ministack/health", seconds=120)
    return process


def find_emulator(paths: Paths) -> Process | None:
    """Return the emulator of the running stack; None when none runs."""
    return next((process for process in started(paths) if process.name == "emulator"), None)


def running_emulator(paths: Paths) -> Process:
    """Return the emulator of the running stack. Raises `StackError` when none runs."""
    if emulator := find_emulator(paths):
        return emulator
    raise StackError("emulator", "is not running", remedy="a2a-serverless up")


def aws_environment(endpoint: str, *, account: str = "test") -> dict[str, str]:
    """Return the variables with which an AWS SDK talks to the emulator, and to nothing else."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": account,
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        **_NO_PROXY,
    }


def without_aws(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without its `AWS_` variables, which may name a real account."""
    return {name: value for name, value in environment.items() if not name.startswith("AWS_")}
