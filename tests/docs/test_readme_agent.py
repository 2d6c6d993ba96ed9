"""The README's first agent does what it says there, with a stand-in for the model: it is paid once, asks and sleeps."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_tools.cli.inbox import InboxClient
from tests.dev.terminal import DEADLINE_S, Project, running
from tests.docs.documents import ROOT, blocks
from tests.observed import observed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

SOURCE = blocks("python", ROOT / "README.md")[0].text
NEWS = "Bees have moved in."
HOUR_MS = 3_600_000


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the model was asked. It is a server that answers as Amazon Bedrock does."""
    asked: list[str] = []

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(request["messages"][0]["content"][0]["text"])
            message = {"role": "assistant", "content": [{"text": NEWS}]}
            body = json.dumps({"output": {"message": message}, "stopReason": "end_turn"}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", f"http://127.0.0.1:{server.server_port}")
    yield asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_agent_of_the_readme_asks_sleeps_and_calls_the_model_once(prompts: list[str]) -> None:
    readme = ModuleType("readme")
    exec(compile(SOURCE, "README.md", "exec"), readme.__dict__)  # noqa: S102 - our own README
    harness = AgentTestHarness(readme.press)
    asked = harness.send("We have bees.", until_question=True)
    assert (asked.state, asked.said, asked.text("news.md")) == (TaskState.INPUT_REQUIRED, "Publish it?", NEWS)
    began = harness.now
    assert harness.send("yes", task_id=asked.task.id).said == "Published."
    assert harness.now - began >= 8 * HOUR_MS
    assert prompts == ["Write news: We have bees."]


def test_killing_the_agent_of_the_readme_leaves_webhooks_signed_and_one_call_of_the_model(
    prompts: list[str], tmp_path: Path
) -> None:
    project = Project(tmp_path / "news")
    (project.root / "workshop").mkdir(parents=True)
    (project.root / "workshop/press.py").write_text(SOURCE)
    project.list("press")
    with running(project) as dev:
        webhook = InboxClient(dev.inbox, observed(dev.url)).expect()
        task = dev.task("press", "We have bees.", task_push_notification_config=webhook)
        entries = []
        for entry in InboxClient(dev.inbox, observed(dev.url)).entries():
            entries.append(entry)
            if entry is None or entry.state == "input-required":
                break
        assert [entry.outcome for entry in entries if entry and entry.event] == ["accepted"] * (len(entries) - 1)
        dev.process.kill()
        dev.process.wait(DEADLINE_S)
    with running(project) as again:
        again.send("press", "no", task_id=task.id)
        assert again.wait_for("task", task=task.id, state="completed")["text"] == "Not published."
    assert prompts == ["Write news: We have bees."]
