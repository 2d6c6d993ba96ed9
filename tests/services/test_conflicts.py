"""Repeating a refused write."""

from __future__ import annotations

import pytest

from a2a_serverless.domain.errors import Overloaded, TaskNotFound
from a2a_serverless.services.task_changes import TRIES, Conflict, check_written, retry_on_conflict


def test_a_refused_write_is_tried_again_from_the_beginning() -> None:
    answers = iter([False, False, True])

    def attempt() -> str:
        check_written(next(answers))
        return "written"

    assert retry_on_conflict(attempt) == "written"
    assert list(answers) == []


def test_an_attempt_is_given_up_after_a_number_of_conflicts() -> None:
    tried = []

    def attempt() -> str:
        tried.append(1)
        raise Conflict

    with pytest.raises(Overloaded):
        retry_on_conflict(attempt)
    assert retry_on_conflict(attempt, lambda: "given up") == "given up"
    assert len(tried) == 2 * TRIES


def test_an_error_that_is_no_conflict_is_raised_without_a_retry() -> None:
    answers = iter([TaskNotFound(), None])

    def attempt() -> None:
        if error := next(answers):
            raise error

    with pytest.raises(TaskNotFound):
        retry_on_conflict(attempt)
    assert list(answers) == [None]
