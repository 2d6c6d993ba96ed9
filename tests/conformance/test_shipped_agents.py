"""Each shipped agent, driven by the official SDKs on the stack of `make up`, with webhooks to the real receiver."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from typing import Any

import pytest

from tests.conformance.official import HERE, ROOT
from tests.stack.local import LocalStack, eventually

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

ENDED = {"completed", "TASK_STATE_COMPLETED"}
TIMEOUT_S = 120


def drove(stack: LocalStack, environment: str, script: str, requests: int) -> dict[str, Any]:
    """What an SDK saw that sent requests to the agents of the stack, each with the receiver as its webhook."""
    python = ROOT / f".a2a/venvs/{environment}/bin/python"
    tokens = ",".join(_token(stack) for _ in range(requests))
    command = [str(python), str(HERE / script), stack.options.api_url, stack.options.webhook_url, tokens]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)  # noqa: S603
    assert ran.returncode == 0, ran.stderr
    seen: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return seen


def _token(stack: LocalStack) -> str:
    """By which the receiver knows one task that is to come."""
    url = f"{stack.running.receiver.url}/expectations"
    request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return str(json.load(answer)["pushNotificationConfig"]["token"])


def entries(stack: LocalStack, task: str) -> list[dict[str, Any]]:
    """What the receiver let in for a task, in order, once the task's end has come."""

    def read() -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{stack.running.receiver.url}/api/notifications") as answer:
            found = [entry for entry in json.load(answer)["entries"] if entry.get("taskId") == task]
        return found if any(entry.get("state") in ENDED for entry in found) else []

    return list(eventually(read))


def test_each_shipped_agent_serves_the_official_sdk_and_its_webhook_hears_the_end(stack: LocalStack) -> None:
    seen = drove(stack, "sdk-1", "sdk_1_agents.py", 6)
    assert "hive" in seen.pop("summary")["message"]
    assert {name: one["state"] for name, one in seen.items()} == dict.fromkeys(
        ("outline", "document", "orchestrator", "image", "travel"), "TASK_STATE_COMPLETED"
    )
    assert {"outline.json", "document.md", "summary.md", "report.json"} == {*seen["orchestrator"]["artifacts"]}
    assert "image/png" in seen["image"]["media types"]
    assert all(one["artifacts"] for one in seen.values())
    for one in seen.values():
        assert {entry["outcome"] for entry in entries(stack, one["task"])} == {"accepted"}


def test_agents_that_an_sdk_of_0_3_registers_a_webhook_with_report_to_the_receiver(stack: LocalStack) -> None:
    seen = drove(stack, "sdk-0.3", "sdk_0_3_agents.py", 2)
    assert {one["state"] for one in seen.values()} == {"completed"}
    for one in seen.values():
        assert {entry["outcome"] for entry in entries(stack, one["task"])} == {"accepted"}
