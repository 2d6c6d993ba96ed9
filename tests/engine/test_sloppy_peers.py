"""Calls to other people's agents, and mirrors of them: what a peer has said counts, in both versions and bindings."""

from __future__ import annotations

import json
from io import BytesIO
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.client import ClientResponse
from a2a_serverless.protocol.v1 import TaskState
from tests.peers.callers import Caller, texts, word
from tests.peers.forms import FORMS, STREAM, Form, Refusal, SloppyAgent
from tests.world import ME

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.world import World

everywhere = pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.version} {form.binding}")
GONE = Refusal(-32001)
both = pytest.mark.parametrize("kind", ["call", "mirror"])


def caller_of(far: SloppyAgent, kind: str, **options: Any) -> Caller:
    return Caller(far.transport, far.card(), kind, **options)


def peer(form: Form, send: list[Any], get: list[Any], **members: Any) -> SloppyAgent:
    wrapped = [form.item("task", one) if isinstance(one, dict) else one for one in send]
    return SloppyAgent(form, {"send": wrapped, "get": get, "cancel": [form.task("canceled")]}, **members)


@everywhere
@both
@pytest.mark.parametrize("look", ["gone", "empty", "working", "refused", "html"])
def test_the_answer_of_a_send_stands_whatever_a_later_look_says(form: Form, kind: str, look: str) -> None:
    looks = {
        "gone": GONE,
        "empty": form.task(),
        "working": form.task("working"),
        "refused": Refusal(status=401),
        "html": Refusal(body=b"<html>"),
    }
    done = form.task(artifacts=[form.artifact("a", "answer")])
    task = caller_of(peer(form, [done], [looks[look]]), kind).starts()
    assert (task.status.state, texts(task)) == (TaskState.COMPLETED, ["answer"])


@pytest.mark.parametrize(
    ("look", "reason", "source"),
    [
        ("empty", "1 artifacts (stream)", None),
        ("working", "completed (stream), 1 artifacts (stream)", None),
        ("gone", "The agent 'mirror/remote' does not know the task any more.", "stream"),
    ],
)
def test_a_look_that_does_not_show_what_was_said_is_logged_with_its_source(
    look: str, reason: str, source: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    form = FORMS[0]
    looks = {"gone": GONE, "empty": form.task(), "working": form.task("working")}
    far = peer(form, [], [looks[look]], streaming=True)
    far.answers["stream"] = [[form.item("task", form.task(artifacts=[form.artifact("a", "answer")]))]]
    caller_of(far, "mirror").starts()
    lines = [line.__dict__ for line in caplog.records if "called agent's task" in line.message]
    assert [(line["reason"], line.get("source")) for line in lines] == [(reason, source)]


@everywhere
@both
def test_an_end_without_content_is_looked_at_and_a_refused_look_says_why(form: Form, kind: str) -> None:
    task = caller_of(peer(form, [form.task()], [form.task(artifacts=[form.artifact("a", "answer")])]), kind).starts()
    assert texts(task) == ["answer"]
    task = caller_of(peer(form, [form.task()], [Refusal(status=403)]), kind).starts()
    assert task.status.state is TaskState.FAILED
    assert "403" in word(task)


@everywhere
@both
@pytest.mark.parametrize("look", ["gone", "empty"])
def test_a_question_of_a_send_is_asked_and_the_answer_to_its_answer_stands(form: Form, kind: str, look: str) -> None:
    done = form.task(artifacts=[form.artifact("a", "a red boat")])
    looks: list[Any] = [GONE if look == "gone" else form.task("input-required")]
    far = peer(form, [form.asks("Which colour?", "q"), done], looks)
    caller = caller_of(far, kind)
    task = caller.starts()
    assert (task.status.state, word(task)) == (TaskState.INPUT_REQUIRED, "Which colour?")
    task = caller.answers("red")
    assert (task.status.state, texts(task)) == (TaskState.COMPLETED, ["a red boat"])
    assert len(far.sent) == 2
    assert far.sent[1]["taskId"] == "t"


@everywhere
@both
@pytest.mark.parametrize("stamps", [True, False])
def test_a_question_with_a_new_id_at_each_read_is_asked_once(form: Form, kind: str, *, stamps: bool) -> None:
    numbers = count()

    def asks() -> dict[str, Any]:
        number = next(numbers)
        return form.asks("Sure?", f"m{number}", f"2026-01-01T00:00:{number % 60:02}Z" if stamps else "")

    far = peer(form, [form.task("submitted"), form.task("working")], [asks, asks, asks, form.task()])
    caller = caller_of(far, kind)
    task = caller.starts(ms=30_000)
    assert word(task) == "Sure?"
    far.answers["get"] = [asks, asks, form.task(artifacts=[form.artifact("a", "done")])]
    task = caller.answers("yes")
    assert (task.status.state, texts(task)) == (TaskState.COMPLETED, ["done"])
    assert len(far.sent) == 2


@everywhere
@both
def test_two_questions_without_id_and_timestamp_are_both_asked(form: Form, kind: str) -> None:
    far = peer(
        form, [form.asks("Colour?"), form.asks("Size?"), form.task(artifacts=[form.artifact("a", "done")])], [GONE]
    )
    caller = caller_of(far, kind)
    assert word(caller.starts()) == "Colour?"
    assert word(caller.answers("red")) == "Size?"
    assert texts(caller.answers("big")) == ["done"]


@everywhere
@both
def test_a_question_that_is_asked_anew_after_work_is_asked_again(form: Form, kind: str) -> None:
    first, again = (
        form.asks("Approve?", "q1", "2026-01-01T00:00:00Z"),
        form.asks("Approve?", "q2", "2026-01-01T00:01:00Z"),
    )
    done = form.task(artifacts=[form.artifact("a", "done")])
    far = peer(form, [first, form.task("working"), form.task("working")], [form.task("working"), again])
    caller = caller_of(far, kind)
    far.answers["get"] = [first]
    assert word(caller.starts()) == "Approve?"
    far.answers["get"] = [first, form.task("working"), again]
    task = caller.answers("yes", ms=40_000)
    assert task.status.state is TaskState.INPUT_REQUIRED
    far.answers["get"] = [again, form.task("working"), done]
    assert texts(caller.answers("yes")) == ["done"]
    assert len(far.sent) == 3


@everywhere
@both
def test_a_question_that_comes_again_unchanged_for_a_minute_after_its_answer_is_a_new_one_then(
    form: Form, kind: str
) -> None:
    numbers = count()
    asks: Callable[[], dict[str, Any]] = lambda: form.asks("Sure?", f"m{next(numbers)}")  # noqa: E731
    far = peer(form, [form.asks("Sure?", "m")], [asks])
    caller = caller_of(far, kind)
    caller.starts()
    assert caller.answers("yes", ms=45_000).status.state is TaskState.WORKING
    assert caller.waits(45_000).status.state is TaskState.INPUT_REQUIRED


@everywhere
@both
def test_a_question_that_is_withdrawn_is_not_asked_any_more(form: Form, kind: str) -> None:
    far = peer(form, [form.asks("Sure?", "m")], [form.asks("Sure?", "m")], push=True)
    caller = caller_of(far, kind)
    assert caller.starts().status.state is TaskState.INPUT_REQUIRED
    far.answers["get"] = [form.task(artifacts=[form.artifact("a", "done")])]
    assert texts(caller.answers("yes")) == ["done"]
    assert len(far.sent) == 1, "the question was no longer open"


@everywhere
@pytest.mark.parametrize("how", ["-32004", "-32601", "empty"])
def test_a_mirror_sends_once_without_a_stream_where_streams_are_refused_or_empty(form: Form, how: str) -> None:
    refusals: dict[str, Any] = {"-32004": Refusal(-32004), "-32601": Refusal(-32601), "empty": []}
    far = peer(form, [form.task(artifacts=[form.artifact("a", "answer")])], [GONE], streaming=True)
    far.answers["stream"] = [refusals[how]]
    task = caller_of(far, "mirror").starts()
    assert (task.status.state, texts(task)) == (TaskState.COMPLETED, ["answer"])
    assert [one for one in far.asked if one != "get"] == ["stream", "send"]


@everywhere
@pytest.mark.parametrize("look", [GONE, Refusal(status=401), Refusal(-32602), Refusal(body=b"<html>")])
def test_an_answer_from_the_stream_stands_against_a_sloppy_last_poll(form: Form, look: Refusal) -> None:
    ids = {"taskId": "t", "contextId": "c"}
    chunk = {**form.kind("artifact-update"), **ids, "artifact": form.artifact("a", "answer")}
    end = {**form.kind("status-update"), **ids, "status": form.task()["status"]}
    items = [
        form.item("task", form.task("working")),
        form.item("artifactUpdate", chunk),
        form.item("statusUpdate", end),
    ]
    far = peer(form, [], [look], streaming=True)
    far.answers["stream"] = [items]
    task = caller_of(far, "mirror").starts()
    assert (task.status.state, texts(task)) == (TaskState.COMPLETED, ["answer"])


@everywhere
@both
def test_a_last_look_with_files_of_odd_forms_and_an_empty_artifact_is_read(form: Form, kind: str) -> None:
    parts = [form.file("iVBO\r\nRw0K"), form.file("data:image/png;base64,iVBORw0K")]
    done = form.task(artifacts=[form.artifact("a", "answer", *parts), form.artifact("b")])
    task = caller_of(peer(form, [form.task("working")], [done]), kind).starts()
    assert task.status.state is TaskState.COMPLETED
    assert texts(task)[0] == "answer"


@everywhere
def test_the_users_own_message_is_not_shown_as_progress_of_the_agent(form: Form) -> None:
    role = "user" if form.kind("message") else "ROLE_USER"
    mine = form.task("working", status={"message": form.message("hello", role=role, messageId="m")})
    theirs = form.task("working", status={"message": form.message("Thinking")})
    done = form.task(artifacts=[form.artifact("a", "done")])
    caller = caller_of(peer(form, [mine], [mine, theirs, theirs, done]), "mirror")
    caller.starts()
    assert caller.progress() == ["Thinking"]


@everywhere
@both
def test_a_failed_look_at_a_task_that_has_not_ended_is_an_error_with_its_reason(form: Form, kind: str) -> None:
    task = caller_of(peer(form, [form.task("working")], [Refusal(status=401)]), kind).starts()
    assert task.status.state is TaskState.FAILED
    assert "401" in word(task)
    task = caller_of(peer(form, [form.task("working")], [GONE]), kind).starts()
    assert "does not know the task any more" in word(task)


@everywhere
@both
def test_a_cancel_whose_answer_cannot_be_read_is_made_once(form: Form, kind: str) -> None:
    far = peer(form, [form.task("working")], [form.task("working")])
    far.answers["cancel"] = [Refusal(body=b"<html>")]
    caller = caller_of(far, kind)
    caller.starts(ms=10_000)
    caller.world.cancel(caller.task_id, kind)
    assert caller.waits().status.state is TaskState.CANCELED
    assert far.asked.count("cancel") == 1
    assert not caller.world.table.read_head(ME.key(caller.task_id)).head.children


class KeepAlives(BytesIO):
    """The body of a stream that says nothing: a comment every 15 s. After a thousand it ends."""

    def __init__(self, world: World, first: bytes) -> None:
        super().__init__()
        self.world, self.first, self.reads = world, first, 0

    def read1(self, _: int | None = -1, /) -> bytes:
        self.reads += 1
        self.world.now += 15_000
        if self.reads > 1000:
            return b""
        return self.first if self.reads == 1 else b": still here\n\n"


@everywhere
def test_a_stream_of_nothing_but_keep_alives_ends_after_its_time(form: Form) -> None:
    done = form.task(artifacts=[form.artifact("a", "done")])
    far = peer(form, [], [form.task("working"), done], streaming=True)
    caller = caller_of(far, "mirror", stream_s=600)
    first = json.dumps(form.envelope(form.item("task", form.task("working")))).encode()
    body = KeepAlives(caller.world, b"data: %b\n\n" % first)
    far.answers["stream"] = far.answers["subscribe"] = [ClientResponse(200, STREAM, body)]
    caller.world.run_ms = 14 * 60_000
    assert texts(caller.starts()) == ["done"]
    assert body.reads <= 50
