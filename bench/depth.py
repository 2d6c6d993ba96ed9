"""Depth: how much of a library's own code one warm SendMessage (returnImmediately) runs, beside other libraries (N16).

A profile function counts distinct functions, files and classes in the built api function, over AWS clients that answer
at once. The other libraries run under Mangum with in-memory stores and are counted the same way; they run their agent
in the process of the request. `--names` prints the functions of ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from cold_start import HERE, OURS, PEERS, compiled, environment, unpacked
from measuring import Report, figure, goal, main

LIMITS = {"functions": 80, "files": 22, "classes": 15}
PACKAGES = {"a2a-sdk 1.3.0": "a2a", "a2a-sdk 0.3.26": "a2a", "fasta2a 2.1.1": "fasta2a"}


def measure(_: int) -> Report:
    """Counts each candidate once: the counts do not vary."""
    counts = {OURS: _counts(str(unpacked("Api")), "ours_in_memory", "/document", "1.0", "a2a_serverless")}
    for name, package in PACKAGES.items():
        environment_name, module, path, method = PEERS[name]
        version = "0.3" if method == "message/send" else "1.0"
        counts[name] = _counts(str(compiled(environment_name)), module, path, version, package)
    return Report(
        "Depth",
        __doc__ or "",
        [
            figure(f"{kind}: {name}", "", [of[kind]], ours=name == OURS)
            for kind in LIMITS
            for name, of in counts.items()
        ],
        [goal("N16", f"{kind} that a send runs", "<=", limit, [counts[OURS][kind]]) for kind, limit in LIMITS.items()],
    )


def _counts(packages: str, module: str, path: str, version: str, package: str) -> dict[str, Any]:
    env = {**environment("http://127.0.0.1:9"), "PYTHONPATH": os.pathsep.join([packages, str(HERE)])}
    command = [sys.executable, "-S", "-B", str(HERE / "depth_of_call.py"), module, path, version, package]
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    if "--names" in sys.argv:
        names = _counts(str(unpacked("Api")), "ours_in_memory", "/document", "1.0", "a2a_serverless")["names"]
        sys.stdout.write("\n".join(names) + "\n")
    else:
        main(measure, rounds=1)
