"""Warm requests: processor time of one SendMessage (returnImmediately) and one GetTask, without the database (N4).

Each from API Gateway's event to its answer, as Lambda calls it. Ours is the built api function over AWS clients that
answer at once. The others run under Mangum, with in-memory stores and an echo agent in the process of the request, so
their figures include the agent. fasta2a starts and stops its worker with every call there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from cold_start import HERE, OURS, PEERS, compiled, environment, unpacked
from measuring import Report, figure, goal, main, ratios

TIMES = 300
VERSIONS = {"a2a-sdk 0.3.26": "0.3"}


def measure(rounds: int) -> Report:
    """Measures all candidates in each round."""
    ours = [OURS, str(unpacked("Api")), "ours_in_memory", "/document"]
    theirs = [[name, str(compiled(peer[0])), *peer[1:3]] for name, peer in PEERS.items() if peer[0] != "plain"]
    values: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for name, packages, module, path in [ours, *theirs]:
            for kind, value in _calls(packages, module, path, VERSIONS.get(name, "1.0")).items():
                values.setdefault(kind, {}).setdefault(name, []).append(value)
    send, get = values["send"], values["get"]
    peer = "a2a-sdk 1.3.0"
    return Report(
        "Warm requests",
        __doc__ or "",
        [
            figure(f"{kind}: {name}", "us", times, ours=name == OURS)
            for kind, of in values.items()
            for name, times in of.items()
        ],
        [
            goal("N4", f"warm SendMessage, by {peer}'s", "<=", 0.2, ratios(send[OURS], send[peer])),
            goal("N4", f"warm GetTask, by {peer}'s", "<=", 0.9, ratios(get[OURS], get[peer])),
        ],
        ["A call to DynamoDB comes on top of ours: about 800 us by boto3 when the project began."],
    )


def _calls(packages: str, module: str, path: str, version: str) -> dict[str, float]:
    env = {**environment("http://127.0.0.1:9"), "PYTHONPATH": os.pathsep.join([packages, str(HERE)])}
    command = [sys.executable, "-S", "-B", str(HERE / "many_calls.py"), module, path, version, str(TIMES)]
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main(measure, rounds=7)
