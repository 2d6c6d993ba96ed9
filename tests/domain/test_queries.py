from dataclasses import replace

import pytest

from a2a_serverless.domain.model import Artifact, Message, Part, Role, Task, TaskState, TaskStatus
from a2a_serverless.domain.queries import limit_task

TEXT = (Part("text", "x"),)
HISTORY = tuple(Message(name, Role.USER, TEXT) for name in "abc")
TASK = Task("t", "c", TaskStatus(TaskState.WORKING, 0), 3, (Artifact("a", TEXT),), HISTORY)


@pytest.mark.requirement(23)
@pytest.mark.parametrize(
    ("history_length", "left"),
    [(None, HISTORY), (0, ()), (1, HISTORY[2:]), (2, HISTORY[1:]), (3, HISTORY), (9, HISTORY)],
)
def test_history_is_cut_to_the_most_recent_messages(history_length: int | None, left: tuple[Message, ...]) -> None:
    assert limit_task(TASK, history_length) == replace(TASK, history=left)


@pytest.mark.requirement(9)
def test_artifacts_are_left_out_when_nobody_asked() -> None:
    assert limit_task(TASK, None, artifacts=False) == replace(TASK, artifacts=())
