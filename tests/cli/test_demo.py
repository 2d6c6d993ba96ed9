"""The demo's story over the world of the tests: the real edge, and a receiver whose feed is what the world posted."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from a2a_serverless.client import ClientRequest, ClientResponse, Unreachable
from a2a_serverless.domain.agent_errors import TaskRejected
from a2a_serverless_tools.cli.demo import DemoInput, run_on_stack
from a2a_serverless_tools.cli.demo_run import DemoRun
from a2a_serverless_tools.cli.options import CliContext
from a2a_serverless_tools.cli.terminal import Terminal
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import Paths
from sample_agents.orchestrator import orchestrator
from sample_agents.summary import summary
from tests.client.deployment import BASE, Deployment, rpc
from tests.sample_agents.sketches import SKETCHED
from tests.world import HOOK, Received

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.task_context import TaskContext

REST_API = "http://127.0.0.1:4566/restapis/x/live/_user_request_"
RECEIVER = "http://127.0.0.1:8010"
TEXT = "# Ships\n\nA ship sails. It has a mast and a sail.\n\nSome ships have engines."


@dataclass
class Theatre:
    """A stack that stands, without its processes."""

    folder: Path
    instead: tuple[Agent, ...] = ()
    timeout_s: float = 60
    json: bool = False
    lost: frozenset[int] = frozenset()
    bad: list[dict[str, Any]] = field(default_factory=list)
    broken: str = ""
    answer: bytes = b""

    def __post_init__(self) -> None:
        agents = {agent.id: agent for agent in (*SKETCHED, *self.instead)}
        self.deployment = Deployment(*agents.values())
        self.written = io.StringIO()
        console = Console(file=self.written, width=100, color_system=None, highlight=False)
        terminal = Terminal(out=console, err=console, json=self.json)
        self.stage = DemoRun(
            CliContext(terminal, self.transport), Paths(self.folder, self.folder), self.folder / "out", self.timeout_s
        )

    def play(self) -> dict[str, Any]:
        return run_on_stack(self.stage, REST_API, RECEIVER, DemoInput(Path("ships.md"), TEXT, None))

    @contextmanager
    def transport(self, call: ClientRequest) -> Iterator[ClientResponse]:
        if self.broken and self.broken in call.url:
            raise Unreachable(call.url, "Connection refused")
        if call.url.endswith("/expectations"):
            config = {"pushNotificationConfig": {"url": HOOK, "token": "t"}}
            yield ClientResponse(201, {}, io.BytesIO(json.dumps(config).encode()))
        elif call.url.startswith(RECEIVER):
            yield ClientResponse(200, {}, io.BytesIO(self._feed(int(call.url.rpartition("=")[2]))))
        elif call.body and self.answer:
            yield ClientResponse(200, {}, io.BytesIO(self.answer))
        else:
            assert call.url.startswith(REST_API)
            with self.deployment.transport(replace(call, url=BASE + call.url.removeprefix(REST_API))) as answer:
                yield answer

    def _feed(self, after: int) -> bytes:
        self.deployment.world.settle()
        posts = [post for post in self.deployment.world.receiver.posts if post.n not in self.lost]
        views = [*self.bad, *(_view(post) for post in posts)]
        numbered = [{"number": number, **view} for number, view in enumerate(views, 1) if number > after]
        return b"".join(b"data: %s\n\n" % json.dumps({"receivedAt": 0, **view}).encode() for view in numbered)


def _item(body: Any) -> Any:
    (item,) = body.values()
    return item


def _view(post: Received) -> dict[str, Any]:
    n, item = post.n, _item(post.body)
    state = item.get("status", {}).get("state", "").removeprefix("TASK_STATE_").lower().replace("_", "-")
    view = {"outcome": "accepted", "kid": "key-one-two", "jti": f"token-{n:04}", "eventNumber": n}
    made = [item["artifact"]] if "artifact" in item else []
    return view | {"taskId": item.get("taskId") or item["id"], "state": state or None, "artifacts": made}


def test_the_files_are_what_the_tasks_have_and_every_webhook_is_told(tmp_path: Path) -> None:
    theatre = Theatre(tmp_path)
    report = theatre.play()
    made = ("ships.outline.json", "ships.summary.md", "ships.report.json", "ships.document.md")
    assert [Path(name) for name in report["files"]] == [tmp_path / "out" / name for name in made]
    assert "A ship sails." in Path(report["files"][-1]).read_text()
    assert [one["verified"] for one in report["notifications"]] == [True] * len(report["notifications"])
    told = theatre.written.getvalue()
    assert "connection closed" in told
    assert all(f" {one['event']}  " in told for one in report["notifications"])


def test_the_refined_picture_is_another_file_and_the_first_one_stays(tmp_path: Path) -> None:
    first, red = map(Path, Theatre(tmp_path).play()["pictures"])
    assert (first.name, red.name) == ("first.sailboat_image.png", "red.sailboat_image.png")
    assert ("red" in first.read_text(), "red" in red.read_text()) == (False, True)


def test_the_timeline_tells_what_each_artifact_took(tmp_path: Path) -> None:
    report = Theatre(tmp_path).play()
    names = [phase["name"] for phase in report["phases"]]
    chain = ["first webhook", "outline.json", "summary.md", "report.json", "document.md", "the end", "GetTask"]
    assert names[: len(chain) + 2] == ["card", "send", *chain]


def test_a_chain_with_a_missing_link_is_the_agents_fault_and_says_why(tmp_path: Path) -> None:
    async def give_up(_: TaskContext) -> None:
        raise TaskRejected("I have no words.")

    with pytest.raises(StackError) as failed:
        Theatre(tmp_path, (replace(summary, work=give_up),)).play()
    assert failed.value.part == "agent"
    assert "summary.md is missing" in failed.value.why
    assert "I have no words." in failed.value.why


def test_the_demo_shows_a_refusal_with_its_reason_and_does_not_count_it(tmp_path: Path) -> None:
    refusal = {"code": "wrong-body", "reason": "not the body that was signed", "step": "body hash"}
    refused = {"outcome": "refused", "refusal": refusal, "claimed": {"kid": "k", "jti": "j"}}
    theatre = Theatre(tmp_path, bad=[refused])
    report = theatre.play()
    assert [one["verified"] for one in report["notifications"]].count(False) == 1
    assert "refused\n          wrong-body: not the body that was signed" in theatre.written.getvalue()


def test_an_end_that_only_an_unverified_webhook_tells_is_not_believed(tmp_path: Path) -> None:
    theatre = Theatre(
        tmp_path, timeout_s=0, lost=frozenset(range(100)), bad=[{"outcome": "duplicate", "state": "completed"}]
    )
    with pytest.raises(StackError, match="webhooks") as failed:
        theatre.play()
    assert "there was none" in failed.value.why


def test_an_end_that_is_not_told_in_time_is_the_webhooks_fault(tmp_path: Path) -> None:
    theatre = Theatre(tmp_path, timeout_s=0)
    with pytest.raises(StackError) as failed:
        theatre.play()
    assert (failed.value.part, failed.value.why) == (
        "webhooks",
        "no verified webhook had the task's end within 0 s; the last verified one was event 1",
    )


def test_a_task_that_fails_is_the_agents_fault(tmp_path: Path) -> None:
    async def refuse(_: TaskContext) -> None:
        raise TaskRejected("Not my job.")

    with pytest.raises(StackError) as failed:
        Theatre(tmp_path, (replace(orchestrator, work=refuse),)).play()
    assert (failed.value.part, failed.value.why) == ("agent", "the task is rejected")


def test_the_demo_fails_if_its_task_makes_no_artifact(tmp_path: Path) -> None:
    async def idle(_: TaskContext) -> None:
        pass

    with pytest.raises(StackError, match="0 artifacts"):
        Theatre(tmp_path, (replace(orchestrator, work=idle),)).play()


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
