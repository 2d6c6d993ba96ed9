"""The demo's story over the world of the tests: the real edge, and a receiver whose feed is what the world posted."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from a2a_serverless.adapters.builtin.text import BuiltinText
from a2a_serverless.agents.document import document
from a2a_serverless.cli.demo import Source, tell
from a2a_serverless.cli.options import World
from a2a_serverless.cli.stage import Stage
from a2a_serverless.cli.terminal import Terminal
from a2a_serverless.client import HttpAnswer, HttpCall, Unreachable
from a2a_serverless.domain.agent import Agent, AgentTask, Reject
from a2a_serverless.stack.errors import StackError
from a2a_serverless.stack.places import Places
from tests.client.deployment import BASE, Deployment, rpc
from tests.world import HOOK

REST_API = "http://127.0.0.1:4566/restapis/x/live/_user_request_"
RECEIVER = "http://127.0.0.1:8010"
TEXT = "# Ships\n\nA ship sails. It has a mast and a sail.\n\nSome ships have engines."


@dataclass
class Theatre:
    """A stack that stands, without its processes."""

    folder: Path
    agent: Agent = document
    patience_s: float = 60
    json: bool = False
    lost: frozenset[int] = frozenset()
    bad: list[dict[str, Any]] = field(default_factory=list)
    broken: str = ""
    answer: bytes = b""

    def __post_init__(self) -> None:
        self.deployment = Deployment(replace(self.agent, id="document"), text_model=BuiltinText())
        self.written = io.StringIO()
        console = Console(file=self.written, width=100, color_system=None, highlight=False)
        terminal = Terminal(out=console, err=console, json=self.json)
        self.stage = Stage(
            World(terminal, self.transport), Places(self.folder, self.folder), self.folder / "out", self.patience_s
        )

    def play(self) -> dict[str, Any]:
        return tell(self.stage, REST_API, RECEIVER, Source(Path("ships.md"), TEXT, None))

    @contextmanager
    def transport(self, call: HttpCall) -> Iterator[HttpAnswer]:
        if self.broken and self.broken in call.url:
            raise Unreachable(call.url, "Connection refused")
        if call.url.endswith("/expectations"):
            config = {"pushNotificationConfig": {"url": HOOK, "token": "t"}}
            yield HttpAnswer(201, {}, io.BytesIO(json.dumps(config).encode()))
        elif call.url.startswith(RECEIVER):
            yield HttpAnswer(200, {}, io.BytesIO(self._feed()))
        elif call.body and self.answer:
            yield HttpAnswer(200, {}, io.BytesIO(self.answer))
        else:
            assert call.url.startswith(REST_API)
            with self.deployment.transport(replace(call, url=BASE + call.url.removeprefix(REST_API))) as answer:
                yield answer

    def _feed(self) -> bytes:
        self.deployment.world.settle()
        posts = [post for post in self.deployment.world.receiver.posts if post.n not in self.lost]
        views = [*self.bad, *(_view(post.n, post.body) for post in posts)]
        return b"".join(b"data: %s\n\n" % json.dumps({"number": 1, "receivedAt": 0, **view}).encode() for view in views)


def _view(n: int, body: Any) -> dict[str, Any]:
    (item,) = body.values()
    state = item.get("status", {}).get("state", "").removeprefix("TASK_STATE_").lower().replace("_", "-")
    view = {"outcome": "accepted", "kid": "key-one-two", "jti": f"token-{n:04}", "eventNumber": n}
    return view | {"taskId": item.get("taskId") or item["id"], "state": state or None}


def test_the_document_is_what_the_task_has_and_every_webhook_is_told(tmp_path: Path) -> None:
    theatre = Theatre(tmp_path)
    report = theatre.play()
    (name,) = report["files"]
    assert Path(name) == tmp_path / "out" / "ships.document.md"
    assert "A ship sails." in Path(name).read_text()
    assert [one["verified"] for one in report["notifications"]] == [True] * len(report["notifications"])
    told = theatre.written.getvalue()
    assert "connection closed" in told
    assert all(f" {one['event']}  " in told for one in report["notifications"])


def test_what_was_refused_is_shown_with_the_reason_and_does_not_count(tmp_path: Path) -> None:
    refusal = {"code": "wrong-body", "reason": "not the body that was signed", "step": "body hash"}
    refused = {"outcome": "refused", "refusal": refusal, "claimed": {"kid": "k", "jti": "j"}}
    theatre = Theatre(tmp_path, bad=[refused])
    report = theatre.play()
    assert [one["verified"] for one in report["notifications"]].count(False) == 1
    assert "refused\n          wrong-body: not the body that was signed" in theatre.written.getvalue()


def test_an_end_that_only_an_unverified_webhook_tells_is_not_believed(tmp_path: Path) -> None:
    theatre = Theatre(
        tmp_path, patience_s=0, lost=frozenset(range(100)), bad=[{"outcome": "duplicate", "state": "completed"}]
    )
    with pytest.raises(StackError, match="webhooks") as failed:
        theatre.play()
    assert "there was not one" in failed.value.why


def test_an_end_that_is_not_told_in_time_is_the_webhooks_fault(tmp_path: Path) -> None:
    theatre = Theatre(tmp_path, patience_s=0)
    with pytest.raises(StackError) as failed:
        theatre.play()
    assert (failed.value.part, failed.value.why) == (
        "webhooks",
        "no verified webhook told the task's end within 0 s; the last verified one told event 1",
    )


def test_a_task_that_fails_is_the_agents_fault(tmp_path: Path) -> None:
    async def refuse(_: AgentTask) -> None:
        raise Reject("Not my job.")

    with pytest.raises(StackError) as failed:
        Theatre(tmp_path, replace(document, work=refuse)).play()
    assert (failed.value.part, failed.value.why) == ("agent", "the task is rejected")


def test_a_task_that_made_nothing_is_told(tmp_path: Path) -> None:
    async def idle(_: AgentTask) -> None:
        pass

    with pytest.raises(StackError, match="0 artifacts"):
        Theatre(tmp_path, replace(document, work=idle)).play()


@pytest.mark.parametrize(
    ("broken", "part"), [("agent-card", "card"), ("expectations", "receiver"), ("events", "receiver")]
)
def test_a_part_that_does_not_answer_is_named(tmp_path: Path, broken: str, part: str) -> None:
    with pytest.raises(StackError, match="Connection refused") as failed:
        Theatre(tmp_path, broken=broken).play()
    assert failed.value.part == part


def test_an_agent_that_makes_no_task_is_no_use(tmp_path: Path) -> None:
    _, _, answer = rpc({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}})
    with pytest.raises(StackError, match="made no task"):
        Theatre(tmp_path, answer=answer).play()
