"""Cold starts: processor time of a fresh process from its first instruction to the first SendMessage answered (N1).

The process then ends by `os._exit`, because on Lambda the interpreter does not shut down. Ours runs from a build for
this machine, stores the task durably (one transaction) and enqueues a message; the plain stack stores it with one put;
the other libraries keep it in memory. All run on the same Python without site-packages, with compiled files that are
not checked against their sources, and call the same stand-in for AWS.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_serverless_tools.stack import paths
from a2a_serverless_tools.stack.build import build
from a2a_serverless_tools.stack.targets import this_machine
from measuring import ROOT, Report, cpu_ms, figure, goal, main, ratios, side_by_side
from stand_in import running

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent / "candidates"
PEERS = {
    "plain stack": ("plain", "plain", "/echo", "SendMessage"),
    "a2a-sdk 1.3.0": ("sdk-1", "sdk_1", "/echo", "SendMessage"),
    "a2a-sdk 0.3.26": ("sdk-0.3", "sdk_0_3", "/echo", "message/send"),
    "fasta2a 2.1.1": ("fasta2a", "fast_a2a", "/", "SendMessage"),
}
OURS = "a2a-serverless"


def measure(rounds: int) -> Report:
    """Measures all candidates in each round."""
    folder = unpacked("Api")
    with running() as endpoint:
        env = environment(endpoint)
        candidates = {OURS: partial(first_answer_ms, [folder], "app", "/document", "SendMessage", env)}
        for name, (environment_name, module, path, method) in PEERS.items():
            folders = [compiled(environment_name), HERE]
            candidates[name] = partial(first_answer_ms, folders, module, path, method, env)
        candidates["bare interpreter"] = partial(cpu_ms, [sys.executable, "-S", "-c", "import json"], {})
        values = side_by_side(candidates, rounds)
    return Report(
        "Cold start",
        __doc__ or "",
        [figure(name, "ms", times, ours=name == OURS) for name, times in values.items()],
        [
            goal("N1", "cold start, by the plain stack's", "<=", 0.65, ratios(values[OURS], values["plain stack"])),
            goal("N1", "cold start, by a2a-sdk 1.3.0's", "<=", 0.95, ratios(values[OURS], values["a2a-sdk 1.3.0"])),
        ],
        ["Not measured: loading the zip in Lambda, its disk, its runtime client (the same for all), SnapStart."],
    )


def environment(endpoint: str) -> dict[str, str]:
    """Returns a function's environment, with AWS at `endpoint`."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "ANONYMOUS_ACCESS": "on",
        "TABLE_NAME": "tasks",
        "PUBLIC_TABLE_NAME": "public",
        "ACCESS_TABLE_NAME": "access",
        "BLOBS_BUCKET": "blobs",
        "WORK_QUEUE_URL": f"{endpoint}/000000000000/work",
        "DELIVERY_QUEUE_URL": f"{endpoint}/000000000000/delivery",
        "SEALING_KEY_ID": "00000000-0000-4000-8000-000000000000",
        "PUBLIC_BASE_URL": "https://agents.example.com",
        "POWERTOOLS_METRICS_NAMESPACE": "bench",
        "POWERTOOLS_SERVICE_NAME": "bench",
        "PATH": os.environ["PATH"],
    }


def unpacked(function: str) -> Path:
    """Unpacks the zip of a function, built for this machine; returns the folder."""
    return unzipped(build(paths.find(), this_machine()).path, function)


def unzipped(built: Path, function: str) -> Path:
    """Unpacks the zip of a function from the folder of a build; returns the folder."""
    folder = ROOT / ".a2a/bench" / built.name / function
    if not folder.exists():
        with zipfile.ZipFile(built / f"{function}Function.zip") as archive:
            archive.extractall(folder)
    return folder


def compiled(name: str) -> Path:
    """Compiles the packages of an environment as ours are; returns their folder."""
    (packages,) = (ROOT / f".a2a/venvs/bench-{name}").glob("lib/python*/site-packages")
    mark = packages / ".compiled"
    if not mark.exists():
        command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(packages)]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        mark.touch()
    return packages


def first_answer_ms(folders: list[Path], module: str, path: str, method: str, env: Mapping[str, str]) -> float:
    """Returns the processor time of a new process until a handler's first answer (ms)."""
    found = os.pathsep.join(str(folder) for folder in folders)
    command = [sys.executable, "-S", "-B", str(HERE / "first_call.py"), module, path, method]
    return cpu_ms(command, {**env, "PYTHONPATH": found})


if __name__ == "__main__":
    main(measure, rounds=11)
