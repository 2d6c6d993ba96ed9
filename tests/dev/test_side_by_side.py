"""The verdict of the durability kit in bench/side_by_side: what it calls right, and that it knows no system."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

HERE = Path(__file__).parents[2] / "bench/side_by_side"
if TYPE_CHECKING or sys.path.insert(1, str(HERE)) is None:
    import effects
    import plays
    import systems
    import verdict

EXPECTED = verdict.Expected("a b", ["a", "b"], ["c"])


def had(name: str, asked: float, done: float | None = None, answered: float | None = None) -> effects.Effect:
    return effects.Effect(name, 1, "", asked, done, answered)


def judge(*happened: effects.Effect, kill: float = 10, answer: str | None = "a b", **more: Any) -> verdict.Verdict:
    return verdict.judge(happened, [verdict.Fault(kill, kill)], EXPECTED, answer, **more)


def test_the_verdict_and_the_effects_name_no_system() -> None:
    names = {name for one in systems.read().values() if not one.ours for name in (one.name, *one.packages)}
    for file in ("verdict.py", "effects.py", "plays.py"):
        assert names & {*re.findall(r"[\w-]+", (HERE / file).read_text().casefold())} == set(), file


def test_an_effect_answered_three_seconds_before_the_kill_may_not_happen_again() -> None:
    assert judge(had("a", 1, 1, 7), had("a", 12, 12, 12), had("b", 13, 13, 13)).result == "wrong"


@pytest.mark.parametrize(("answered", "kind"), [(None, "under way"), (9.0, "recent")])
def test_an_effect_that_was_perhaps_not_stored_may_happen_again(answered: float | None, kind: str) -> None:
    judged = judge(had("a", 8, 8, answered), had("a", 12, 12, 12), had("b", 13, 13, 13))
    assert (judged.result, judged.repeated) == ("right", {kind: 1})


def test_an_effect_may_not_repeat_before_the_kill() -> None:
    assert judge(had("a", 1, 1, 1), had("a", 2, 2, 2), had("b", 3, 3, 3)).result == "wrong"


def test_an_answer_counts_only_with_all_effects_and_no_other() -> None:
    assert judge(had("a", 1, 1, 1)).missing == ["b"]
    assert judge(had("a", 1, 1, 1), had("b", 2, 2, 2), had("d", 3, 3, 3)).unknown == ["d"]
    assert judge(had("a", 1, 1, 1), had("b", 2, 2, 2), had("c", 3, 3, 3)).result == "right"
    assert judge(had("a", 1, 1, 1), had("b", 2, 2, 2), answer="b a").result == "wrong"


def test_a_play_without_an_answer_is_lost_unless_its_documents_say_that_it_waits() -> None:
    assert judge(had("a", 1, 1, 1), answer=None).result == "lost"
    assert judge(had("a", 1, 1, 1), answer=None, waits=True).result == "waits"


def test_every_play_has_a_number_of_its_own_and_every_system_a_line_of_its_documents() -> None:
    assert [one.number for one in plays.PLAYS] == list(range(1, len(plays.PLAYS) + 1))
    assert all(one.documents for one in systems.read().values())
    assert {fault for one in systems.read().values() for fault in (*one.cannot, *one.waiting)} <= {
        one.fault.__name__ for one in plays.PLAYS
    }
