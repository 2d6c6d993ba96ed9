"""The reader of answers that the adapters of all frameworks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import agent
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.answers import Approval, UnreadableAnswer, ask_approval, read_approval

if TYPE_CHECKING:
    from a2a_serverless import TaskContext

ALL: Any = ("approve", "edit", "reject", "respond")


@pytest.mark.parametrize(
    ("answer", "approval"),
    [
        ("yes", Approval("approve")),
        (" OK. ", Approval("approve")),
        ("Yes, please!", Approval("approve")),
        ("accept", Approval("approve")),
        (True, Approval("approve")),
        ({"approved": True, "message": None}, Approval("approve")),
        ({"confirmed": True}, Approval("approve")),
        ({"type": "accept", "args": None}, Approval("approve")),
        ("no", Approval("reject")),
        ("No: it is too dear.", Approval("reject", "it is too dear.")),
        ("reject it is\ntoo dear", Approval("reject", "it is\ntoo dear")),
        (False, Approval("reject")),
        ({"approved": False, "reason": "dear"}, Approval("reject", "dear")),
        ({"type": "ignore"}, Approval("reject")),
        ({"type": "reject", "message": "dear"}, Approval("reject", "dear")),
        ('edit {"a": 1}', Approval("edit", "", {"a": 1})),
        ({"approved": True, "override_args": {}}, Approval("edit", "", {})),
        ({"type": "edit", "args": {"a": 1}}, Approval("edit", "", {"a": 1})),
        ({"type": "edit", "args": {"action": "buy", "args": {"a": 1}}}, Approval("edit", "", {"a": 1}, "buy")),
        ({"type": "edit", "edited_action": {"name": "buy", "args": {}}}, Approval("edit", "", {}, "buy")),
        ("respond: sold out", Approval("respond", "sold out")),
        ({"type": "response", "args": "sold out"}, Approval("respond", "sold out")),
    ],
)
def test_an_answer_of_the_client_is_read_as_a_decision(answer: Any, approval: Approval) -> None:
    assert read_approval(answer, ALL) == approval


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "?",
        "perhaps",
        "yesterday",
        "yes, but only one",
        "edit",
        "edit a: 1",
        "edit [1]",
        "respond",
        None,
        1,
        [True],
        {},
        {"approved": "true"},
        {"type": "perhaps"},
        {"approved": True, "message": "but only one"},
        {"approved": True, "only": 1},
        {"approved": False, "override_args": {"a": 1}},
        {"approved": False, "message": "a", "reason": "b"},
        {"type": "edit"},
        {"type": "edit", "args": {"a": 1}, "override_args": {"a": 2}},
        {"type": "respond"},
    ],
)
def test_an_answer_that_is_unclear_is_no_decision(answer: Any) -> None:
    with pytest.raises(UnreadableAnswer):
        read_approval(answer, ALL)


def test_a_decision_must_be_allowed() -> None:
    with pytest.raises(
        UnreadableAnswer, match=r"^The decision 'edit' is not possible here\. Answer yes, or no and why\.$"
    ):
        read_approval({"approved": True, "override_args": {}})


def test_any_text_is_the_result_where_nothing_else_is_possible() -> None:
    allowed: Any = ("respond",)
    assert read_approval("no idea", allowed) == Approval("respond", "no idea")


@agent(id="shop", name="Shop", description="Sells.", skills=[])
async def shop(task: TaskContext) -> str:
    approval = await ask_approval(task, "May I sell it?", {"price": 3})
    return f"{approval.decision}: {approval.message}"


def test_a_question_is_asked_again_until_its_answer_can_be_read() -> None:
    harness = AgentTestHarness(shop)
    asked = harness.send("go")
    question = asked.task.status.message
    assert question
    assert (asked.said, question.data()) == ("May I sell it? Answer yes, or no and why.", {"price": 3})
    assert question.metadata == {"kind": "approval"}
    again = harness.send("perhaps", task_id=asked.task.id)
    assert again.said.endswith(asked.said)
    assert again.task.status.message
    assert again.task.status.message.metadata == {"kind": "approval"}
    assert again.said.startswith(
        "I cannot read the answer: It does not begin with a yes or a no. After 3 more, an answer"
    )
    assert harness.send("no, wait", task_id=asked.task.id).said == "reject: wait"


def test_the_fourth_answer_that_cannot_be_read_is_a_rejection() -> None:
    harness = AgentTestHarness(shop)
    reply = harness.send("go")
    for _ in range(4):
        assert reply.state == "input-required"
        reply = harness.send("perhaps", task_id=reply.task.id)
    assert reply.said == "reject: The client has not given an answer that can be read."
