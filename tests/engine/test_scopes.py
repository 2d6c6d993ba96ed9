"""What names an act: its scope's path, its name, and its number among its equals in this execution of the scope."""

from __future__ import annotations

from typing import Any, cast

import pytest

from a2a_serverless.domain.agent_errors import StepConflict
from a2a_serverless.domain.record_names import (
    LIMIT,
    act_path,
    call_name,
    call_of,
    fit_name,
    join_path,
    raised_name,
    wait_name,
)
from a2a_serverless.engine.loop import OUTSIDE_STEPS
from a2a_serverless.engine.scopes import RunningStep, Scope, Scopes


def step(name: str, within: RunningStep | None = None, *, is_at_work: bool = True) -> RunningStep:
    return RunningStep(name, name, within, 0, 0, 1, cast("Any", None), is_at_work)


def test_equal_acts_of_a_scope_are_numbered_from_one_and_others_apart() -> None:
    scope, again = Scope("a"), Scope("a")
    assert [scope.next("pay"), scope.next("pay"), scope.next("look"), scope.next("pay")] == [1, 2, 1, 3]
    assert again.next("pay") == 1, "this execution begins from its start"


def test_a_message_has_the_same_id_in_each_execution_and_differs_by_all_that_tells_it_apart() -> None:
    root = Scope()

    def first(scope: Scope, task: str = "task", kind: str = "ask", content: str = "Which?") -> str:
        return scope.message_id(task, kind, content)

    inner = Scope().inner("a", None)
    once = first(inner)
    assert once == first(Scope().inner("a", None)) != first(inner), "the second of two equal ones is another one"
    others = [first(Scope(), **{name: "other"}) for name in ("task", "kind", "content")]
    ids = [once, first(root), first(Scope().inner("b", None)), first(Scope().inner("a", None, 2)), *others]
    assert len({*ids}) == len(ids)
    assert {len(one) for one in ids} == {32}


def test_a_second_try_is_told_apart_also_in_what_is_inside_of_it() -> None:
    first, second = (Scope().inner("a", None, attempt).inner("a > b", None) for attempt in (1, 2))
    assert (first.path, second.path) == ("a > b", "a > b")
    assert (first.identity, second.identity) == ("a > b", "a!2 > b")


def test_a_name_is_used_once_unless_it_is_repeated() -> None:
    scope = Scope("a")
    with scope.use("pay") as path:
        assert path == "a > pay"
    with pytest.raises(StepConflict, match="'pay' was used twice"), scope.use("pay"):
        pass
    for number in (2, 3):
        with scope.use("pay", repeat=True) as path:
            assert path == f"a > pay#{number}"
    with pytest.raises(StepConflict, match="'pay#3' was used twice"), scope.use("pay#3"):
        pass
    with Scope("b").use("pay", repeat=True) as path:
        assert path == "b > pay"


def test_a_use_that_fails_leaves_the_name_free() -> None:
    scope = Scope()
    for repeat in (False, True):
        with pytest.raises(ValueError, match="away"), scope.use("pay", repeat=repeat):
            raise ValueError("away")
    with scope.use("pay") as path:
        assert path == "pay"


def test_a_name_that_is_in_use_is_used_by_nobody_else_also_not_as_a_repeat() -> None:
    scope = Scope()
    with scope.use("pay", repeat=True):
        for repeat in (False, True):
            with pytest.raises(StepConflict, match="runs twice at a time"), scope.use("pay", repeat=repeat):
                pass
        with Scope().use("pay"), scope.use("look"):
            pass


@pytest.mark.parametrize(("name", "fits"), [("", False), ("x" * LIMIT, True), ("x" * (LIMIT + 1), False)])
def test_a_name_has_a_length_that_can_be_stored(name: str, *, fits: bool) -> None:
    assert used(name) == fits


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("@x", False),
        ("x@", True),
        ("a > b", False),
        ("a>b", True),
        (" ", True),
        ("\ud800", False),
        ("\U0001f600", True),
    ],
)
def test_a_name_cannot_be_taken_for_a_path_or_for_the_engine_s_own(name: str, *, fits: bool) -> None:
    assert used(name) == fits


def used(name: str) -> bool:
    try:
        with Scope().use(name):
            return True
    except StepConflict:
        return False


def test_no_act_begins_in_a_scope_that_is_over() -> None:
    scope = Scope("a")
    scope.check_open()
    scope.is_over = True
    with pytest.raises(StepConflict, match="'a' is over"):
        scope.check_open()
    with pytest.raises(StepConflict, match="'a' is over"), scope.use("pay"):
        pass


def test_the_steps_around_a_scope_that_work_are_told_from_the_innermost() -> None:
    outer = step("outer")
    waits = step("waits", outer, is_at_work=False)
    inner = step("inner", waits)
    assert [one.name for one in Scope(step=inner).running_steps()] == ["inner", "outer"]
    assert [*Scope().running_steps()] == []


def test_the_current_scope_is_the_innermost_one_and_the_whole_task_at_last() -> None:
    scopes, others = Scopes(), Scopes()
    assert scopes.current.path == ""
    with scopes.open("a"), scopes.open("b"):
        assert scopes.current.path == "a > b"
        assert others.current.path == "", "another run has scopes of its own"
        with scopes.open(None):
            assert scopes.current.path == ""
        inner = scopes.current
    assert scopes.current.path == ""
    assert inner.is_over
    with scopes.open("a"):
        assert scopes.current.path == "a#2"


def test_a_scope_that_is_opened_in_a_step_belongs_to_it() -> None:
    scopes, running = Scopes(), step("pay")
    with scopes.enter(Scope("pay", "pay", running)), scopes.open("a"):
        assert (scopes.current.path, scopes.current.step) == ("pay > a", running)


def test_code_in_a_step_is_not_outside_of_steps_and_code_in_a_scope_of_the_agent_s_is() -> None:
    scopes = Scopes()
    assert not OUTSIDE_STEPS.get()
    with scopes.open("a"):
        assert OUTSIDE_STEPS.get()
        with scopes.enter(Scope("pay", "pay", step("pay"))):
            assert not OUTSIDE_STEPS.get()
            with scopes.open("b"):
                assert not OUTSIDE_STEPS.get()
        assert OUTSIDE_STEPS.get()
    assert not OUTSIDE_STEPS.get()


def test_a_scope_that_fails_is_over_and_its_name_is_free() -> None:
    scopes, failed = Scopes(), list[Scope]()

    def fail() -> None:
        with scopes.open("a"):
            failed.append(scopes.current)
            raise ValueError("away")

    with pytest.raises(ValueError, match="away"):
        fail()
    assert [one.is_over for one in failed] == [True]
    with scopes.open("a"):
        assert scopes.current.path == "a"


def test_a_unit_of_a_framework_is_a_scope_where_none_is_open_and_begins_anew_with_a_pass() -> None:
    scopes, unit = Scopes(), ["node:1"]
    scopes.unit = lambda: unit[0]
    first = scopes.current
    assert (first.path, first.identity, scopes.current) == ("node:1", "node:1", first)
    with scopes.open("a"):
        assert scopes.current.path == "node:1 > a"
    unit[0] = "other"
    other = scopes.current
    scopes.begin_units("node")
    assert scopes.current is other
    unit[0] = "node:1"
    assert scopes.current is not first
    scopes.begin_units()
    unit[0] = "other"
    assert scopes.current is not other
    unit[0] = ""
    assert scopes.current.path == ""


# ---- Stored names


def test_a_long_path_is_its_beginning_and_a_digest_and_two_are_never_one() -> None:
    assert join_path("", "x") == "x"
    assert join_path("a", "x" * (LIMIT - 4)) == "a > " + "x" * (LIMIT - 4)
    one, other = (join_path("a", "x" * LIMIT + end) for end in "12")
    assert one != other
    for path in (one, other):
        assert len(path) == 100 + 1 + 16 + 1 + 64
        assert path.startswith("a > " + "x" * 96 + ":")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a > b", "a>b"),
        ("@@tool", "tool"),
        ("@", "unnamed"),
        ("", "unnamed"),
        ("a\ud800", "a?"),
        ("x" * LIMIT, "x" * LIMIT),
    ],
)
def test_any_text_makes_a_name_that_a_step_may_have(text: str, name: str) -> None:
    assert fit_name(text) == name
    assert used(fit_name(text))


def test_a_long_text_makes_a_name_by_its_beginning_and_a_digest() -> None:
    one, other = (fit_name("x" * LIMIT + end) for end in "12")
    assert one != other
    assert used(one)
    assert one.startswith("x" * 100 + ":")
    assert len(one) == 100 + 1 + 64


@pytest.mark.parametrize("path", ["pay", "a > pay#2", "100 % of a/b > x/sent", "ask:1"])
def test_the_act_path_each_stored_ending_is_read_from_its_name(path: str) -> None:
    assert act_path(path) == path
    assert act_path(raised_name(path, 12)) == path
    assert act_path(wait_name(path)) == path
    assert act_path(call_name(path).done) == path
    assert call_name("x").sent != call_name("x/sent").opened


def test_each_record_of_a_call_has_a_name_of_its_own_from_which_the_call_is_read() -> None:
    name = call_name("a/b")
    records = {name.opened, name.sent, name.told, name.done, name.failed, name.answer(1), name.answer_id(1)}
    assert len(records) == 7
    assert {call_of(record) for record in records} == {name}
    assert call_of("a/b") is None
