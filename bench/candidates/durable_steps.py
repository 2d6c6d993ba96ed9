"""A hundred steps by AWS's durable execution SDK in its local runner; prints the seconds (clock, CPU) as JSON."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from aws_durable_execution_sdk_python.execution import durable_execution
from aws_durable_execution_sdk_python_testing.runner import DurableFunctionTestRunner

STEPS = int(sys.argv[1])
logging.disable(logging.CRITICAL)


@durable_execution
def handler(_: Any, context: Any) -> int:  # noqa: ANN401 - the SDK's own
    """Adds up the results of the steps."""
    return sum(context.step(lambda _, number=number: number, name=f"step {number}") for number in range(STEPS))


def once() -> dict[str, float]:
    """Runs the function once."""
    with DurableFunctionTestRunner(handler=handler) as runner:
        clock, cpu = time.perf_counter(), time.process_time()
        result = runner.run(input="{}", execution_timeout=60)
        used = {"clock": time.perf_counter() - clock, "cpu": time.process_time() - cpu}
        if json.loads(result.result) != sum(range(STEPS)):
            raise SystemExit("the steps have other results")
    return used


once()
sys.stdout.write(json.dumps(once()) + "\n")
