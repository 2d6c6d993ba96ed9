"""The Node receiver reaches the verdict of every vector. It is skipped, and said so, without Node."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from vectors.make import PATH

VECTORS: dict[str, Any] = json.loads(PATH.read_text())
NODE = shutil.which("node")


@pytest.mark.enable_socket
@pytest.mark.skipif(NODE is None, reason="NODE RECEIVER NOT TESTED: no node")
def test_the_node_receiver_reaches_the_verdict_of_every_vector() -> None:
    folder = PATH.parents[1] / "examples/node"
    assert NODE
    ran = subprocess.run([NODE, "--test"], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode == 0, "\n".join(line for line in ran.stdout.splitlines() if "not ok" in line)
    assert f"# pass {len(VECTORS['cases']) + 7}" in ran.stdout
