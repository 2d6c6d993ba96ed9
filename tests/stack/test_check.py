"""``check`` against the deployed template, as its owner types it after a deploy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]


def checked(stack: LocalStack, *arguments: str, **variables: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and the lines by their names. ``variables`` are those of the environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(  # noqa: S603 - our own program
        [Path(sys.executable).with_name("a2a-serverless"), "check", *arguments, "--json"],
        env=environment | {"A2A_STATE": str(stack.paths.state)} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = json.loads(done.stdout)["checks"]
    return done.returncode, {line["name"]: line for line in lines}


def test_a_good_deployment_passes_and_what_an_emulator_cannot_show_is_skipped_with_a_reason(stack: LocalStack) -> None:
    arguments = ("--receiver", stack.running.receiver.url, "--local", "--rotate")
    port, elsewhere = str(stack.running.api.port), "http://127.0.0.1:1"  # what A2A_URL keeps for other commands
    code, lines = checked(stack, *arguments, A2A_API_PORT=port, A2A_URL=elsewhere)
    assert code == 0, lines
    # Nobody signs in here, so everybody is one caller; and a key is public for an hour before it signs.
    skipped = {name for name, line in lines.items() if line["verdict"] != "PASS"}
    assert skipped == {"sign-in", "isolation", "rotation"}, lines
    assert all(lines[name]["verdict"] == "SKIP" and lines[name]["remedy"] for name in skipped)


def test_a_deployment_whose_cards_point_elsewhere_fails_in_the_line_of_the_card(stack: LocalStack) -> None:
    code, lines = checked(stack, stack.deployment.rest_url)
    assert code == 1
    assert {name for name, line in lines.items() if line["verdict"] == "FAIL"} == {"card"}
    assert stack.running.api.url in lines["card"]["text"]
