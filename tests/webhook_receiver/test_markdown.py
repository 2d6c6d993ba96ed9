"""The pages show any text without a freeze: no line takes more work than its length, and no page has too many nodes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.browser import NODE

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "webhook_receiver/a2a_webhook_receiver"
SCRIPT = ROOT / "tests/webhook_receiver/node/markdown.mjs"
DEADLINE_S = 120
"""Far above what 120 texts take whose work is linear. A line with quadratic work alone takes minutes."""
NODES = 30_000


@pytest.mark.skipif(NODE is None, reason="MARKDOWN TEST NOT RUN: no node")
def test_each_generated_line_is_rendered_in_work_that_is_linear() -> None:
    assert NODE
    command = [NODE, str(SCRIPT), (PAGES / "markdown.js").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)  # noqa: S603
    result = json.loads(done.stdout)
    assert result["rendered"] == 120
    assert result["most"] <= NODES
