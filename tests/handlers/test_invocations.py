"""What the platform, whose log keeps it, is told of an invocation that fails."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_serverless.adapters.invocations import Event, InvocationFailed, hide_texts
from tests.contexts import Context

WORD = "c4n4ry"


class Ours(Exception):
    """Its text is of our making."""


def fails(error: Exception) -> Any:
    def handler(_: Event, __: object) -> dict[str, Any]:
        raise error

    return hide_texts(handler, (Ours,))


def test_the_answer_of_an_invocation_passes_without_change() -> None:
    assert hide_texts(lambda event, _: {"got": event["x"]})({"x": 1}, Context()) == {"got": 1}


def test_rule_10_an_error_says_its_kind_and_its_text_is_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(InvocationFailed) as raised:
        fails(ValueError(WORD))({}, Context())
    assert str(raised.value) == "ValueError; see the log"
    assert (raised.value.__cause__, raised.value.__suppress_context__) == (None, True)
    (line,) = caplog.records
    assert (line.getMessage(), line.__dict__["error"]) == ("invocation failed", "ValueError")
    assert line.__dict__["raised_at"][-1].endswith(" handler")
    assert WORD not in caplog.text + str(line.__dict__)


def test_an_error_of_ours_keeps_its_text() -> None:
    with pytest.raises(Ours, match="there are two"):
        fails(Ours("there are two"))({}, Context())
