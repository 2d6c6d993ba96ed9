"""The receivers for other places reach the same verdicts. The Node ones are skipped, and said so, without Node."""

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from examples import lambda_function
from vectors.make import PATH

VECTORS: dict[str, Any] = json.loads(PATH.read_text())
KEYS = lambda_function.parse_keys(json.dumps(VECTORS["keys"]).encode())
NODE = shutil.which("node")


def verdict(case: dict[str, Any]) -> tuple[str | None, str | None]:
    try:
        proven = lambda_function.verify(
            [(name, value) for name, value in case["headers"]],
            base64.b64decode(case["body"]),
            KEYS,
            case["now"],
            issuer=VECTORS["issuer"],
            audience=VECTORS["audience"],
            expectations=case["expectations"],
        )
    except lambda_function.Refused as refusal:
        return refusal.code, None
    return None, proven.get("challenge")


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_the_function_reaches_the_verdict_of_the_vector(case: dict[str, Any]) -> None:
    assert verdict(case) == (case["code"], case["challenge"])


@pytest.mark.enable_socket
@pytest.mark.skipif(NODE is None, reason="NODE RECEIVER NOT TESTED: no node")
def test_the_node_receiver_reaches_the_verdict_of_every_vector() -> None:
    folder = Path(lambda_function.__file__).parent / "node"
    assert NODE
    ran = subprocess.run([NODE, "--test"], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode == 0, "\n".join(line for line in ran.stdout.splitlines() if "not ok" in line)
    assert f"# pass {len(VECTORS['cases']) + 6}" in ran.stdout
