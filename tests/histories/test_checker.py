"""The checker accepts histories that have an order, and refuses each that breaks a promise. Written by hand."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from tests.histories.check import PROMISES, check
from tests.histories.history import History, Item, LogEvent, Operation, Post, TaskView, texts_of
from tests.histories.linearizability import Specification, Step, linearize
from tests.histories.specification import HAS_ENDED, NOT_CANCELABLE, NOT_FOUND, views_of

LOG = [
    LogEvent(1, "submitted", message="m1"),
    LogEvent(2, "working"),
    LogEvent(3, artifact="out", text="1 "),
    LogEvent(4, "input_required", "Go on?"),
    LogEvent(5, "working", message="m2"),
    LogEvent(6, artifact="out", text="2 ", append=True),
    LogEvent(7, "completed", "done"),
]
VIEWS = views_of(LOG)
LAST = 1000


def sent(invoked: int, completed: int | None, n: int, message: str = "m1", **fields: Any) -> Operation:
    """A send that saw the task after event ``n``."""
    view = VIEWS[n] if n else None
    task = "t" if completed else ""
    return Operation("send", invoked, task, message, chunks=2, completed=completed, view=view, **fields)


def got(invoked: int, completed: int, n: int) -> Operation:
    return Operation("get", invoked, "t", completed=completed, view=VIEWS[n])


def refused(kind: str, invoked: int, completed: int, code: int, message: str = "") -> Operation:
    return Operation(kind, invoked, "t", message, completed=completed, refused=code)


def hooked(kind: str, invoked: int, completed: int | None, *webhook: str, **seen: Any) -> Operation:
    return Operation(kind, invoked, "t", webhook=(*webhook, "", "")[:2], completed=completed, **seen)  # type: ignore[arg-type]


def posted(at: int, n: int, url: str = "u", content: Any = None, left: int = 0, *, accepted: bool = True) -> Post:
    shown = content or (VIEWS[n] if n == 1 else LOG[n - 1].shown)
    return Post("t", "a", url, f"{url}{n}", Item(at, n, shown), left or at + 1, accepted)


def streamed(invoked: int, *numbers: int, after: int | None = None, **fields: Any) -> Operation:
    """A subscription whose items came one after the other; the first one is the task, unless it resumes."""
    views = numbers if after is None else ()
    items = [
        Item(invoked + at, n, VIEWS[n] if at == 1 and views else LOG[n - 1].shown) for at, n in enumerate(numbers, 1)
    ]
    return Operation("subscribe", invoked, "t", after=after, completed=invoked + 10, items=items, **fields)


def broken(*operations: Operation, posts: tuple[Post, ...] = (), log: list[LogEvent] | None = None) -> set[str]:
    """The promises that a history breaks. Unless it says otherwise both messages were sent, and all is listed."""
    messages = {one.message for one in operations}
    whole = [*operations]
    whole += [sent(1, 2, 1)] if "m1" not in messages else []
    whole += [sent(20, 30, 5, "m2")] if "m2" not in messages else []
    listed = Operation("list", LAST, completed=LAST + 1, tasks={"t": views_of(log or LOG)[-1]})
    whole += [] if any(one.kind == "list" for one in operations) else [listed]
    history = History(whole, list(posts), {"t": log or LOG})
    assert len(list(texts_of(history))) > len(whole)
    return {one.promise for one in check(history)}


def test_operations_that_do_not_overlap_have_an_order() -> None:
    assert broken(got(3, 4, 1), got(15, 16, 4), got(31, 32, 5), got(40, 41, 7)) == set()


def test_operations_that_overlap_have_an_order_if_any_order_is_right() -> None:
    assert broken(sent(20, 60, 7, "m2"), got(30, 31, 6), got(21, 50, 4)) == set()


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param([got(10, 11, 4), got(12, 13, 2)], id="a later get sees less"),
        pytest.param([sent(20, 30, 5, "m2"), got(31, 32, 4)], id="a get does not see an answer that was accepted"),
        pytest.param([got(10, 11, 5), sent(20, 30, 5, "m2")], id="a get sees an answer before it was sent"),
        pytest.param([streamed(5, 1, 2, 3), got(16, 17, 2)], id="a get does not see what a stream has shown"),
        pytest.param([refused("cancel", 10, 11, NOT_CANCELABLE), got(12, 13, 4)], id="refused while it was working"),
        pytest.param([Operation("cancel", 31, "t", completed=32, view=VIEWS[5])], id="a cancel without an effect"),
        pytest.param([refused("get", 40, 41, NOT_FOUND)], id="a task that was there is not found"),
        pytest.param([sent(40, 41, 0, "m2", refused=HAS_ENDED)], id="a message is refused, and is in the log"),
        pytest.param(
            [sent(1, 2, 1), sent(3, 4, 5, "m2"), sent(20, 30, 1, "m1")],
            id="a repeated send is answered with the task of before",
        ),
        pytest.param(
            [got(31, 32, 6), Operation("list", 40, completed=41, tasks={"t": VIEWS[5]})],
            id="a list shows a task of before",
        ),
    ],
)
def test_the_checker_finds_operations_without_an_order(operations: list[Operation]) -> None:
    assert "operations" in broken(*operations)


def test_a_notification_that_came_before_a_stale_get_proves_its_event() -> None:
    assert broken(got(12, 13, 2), posts=(posted(8, 1), posted(10, 4, left=11))) == {"operations"}


def test_an_operation_with_an_unknown_outcome_may_have_taken_effect_or_not() -> None:
    canceled = [*LOG[:3], LogEvent(4, "canceled")]
    lost = Operation("cancel", 5, "t")
    first = Operation("send", 1, "t", "m1", chunks=2, completed=2, view=VIEWS[1])
    history = History([first, lost], logs={"t": canceled})
    assert check(history) == []
    history = History([first, lost, Operation("get", 6, "t", completed=7, view=VIEWS[3])], logs={"t": LOG[:4]})
    assert check(history) == []
    history = History([first], logs={"t": canceled})
    assert {one.promise for one in check(history)} == {"operations"}


@pytest.mark.parametrize(
    ("log", "promise"),
    [
        ([*LOG[:5], LogEvent(7, artifact="out", text="2 ", append=True), LogEvent(8, "completed", "done")], "log"),
        ([*LOG, LogEvent(8, "failed")], "log"),
        ([*LOG, LogEvent(8, artifact="out", text="3 ", append=True)], "log"),
        ([*LOG[:4], LogEvent(5, artifact="out", text="2 ", append=True)], "log"),
        ([*LOG[:5], LogEvent(6, artifact="out", text="1 ", append=True), LOG[6]], "chunks"),
        ([*LOG[:5], LogEvent(6, "completed", "done")], "chunks"),
        ([*LOG[:5], LogEvent(6, "working", message="m2"), *LOG[6:]], "messages"),
        ([*LOG[:5], LogEvent(6, "working", message="m3"), *LOG[6:]], "messages"),
        (LOG[:6], "end"),
    ],
)
def test_a_wrong_log_is_found(log: list[LogEvent], promise: str) -> None:
    assert promise in broken(log=log)


def test_an_accepted_message_that_is_in_no_log_and_one_that_is_in_two_are_found() -> None:
    assert "messages" in broken(sent(40, 41, 0, "m9"))
    other = [LogEvent(1, "submitted", message="m1"), LogEvent(2, "failed")]
    history = History([sent(1, 2, 1), sent(20, 30, 5, "m2")], logs={"t": LOG, "u": other})
    assert "messages" in {one.promise for one in check(history)}


@pytest.mark.parametrize(
    "stream",
    [
        streamed(40, 1, 2, 4),
        streamed(40, 1, 2, 2),
        streamed(40, 3, 4, after=1),
        Operation("subscribe", 40, "t", after=7, completed=42, items=[Item(41, 8, LOG[6])]),
        Operation("subscribe", 40, "t", completed=42, items=[Item(41, 2, VIEWS[3])]),
        Operation("subscribe", 40, "t", after=1, completed=42, items=[Item(41, 2, LOG[2].shown)]),
    ],
)
def test_a_stream_with_a_gap_or_with_another_event_is_found(stream: Operation) -> None:
    assert broken(streamed(3, 1, 2, 3), streamed(60, 2, 3, after=1)) == set()
    assert "streams" in broken(stream)


ALL = tuple(posted(40 + 2 * n, n) for n in range(1, 8))
KEPT = hooked("webhooks", 200, 201, webhooks={"a": "u"})


def test_a_webhook_that_gets_everything_in_order_is_right() -> None:
    assert broken(hooked("register", 3, 4, "a", "u"), KEPT, posts=ALL) == set()
    may_miss = tuple(post for post in ALL if post.item.n not in {2, 5})
    again = (*may_miss[:2], posted(47, 3), *may_miss[2:])
    assert broken(hooked("register", 3, 4, "a", "u"), KEPT, posts=again) == set()


@pytest.mark.parametrize(
    "posts",
    [
        pytest.param(ALL[:-1], id="the last event is missing"),
        pytest.param((*ALL[:2], *ALL[3:]), id="a chunk is missing"),
        pytest.param((*ALL[:3], posted(60, 2), *ALL[3:]), id="an older event comes later"),
        pytest.param((*ALL[:3], posted(46, 4, left=60), *ALL[4:]), id="two at a time"),
        pytest.param((*ALL[:6], posted(54, 7, accepted=False)), id="the last one was not accepted"),
        pytest.param((posted(42, 1, content=VIEWS[2]), *ALL[1:]), id="the first one shows another task"),
        pytest.param(ALL[1:], id="the first one is no task"),
    ],
)
def test_a_webhook_with_a_gap_or_out_of_order_is_found(posts: tuple[Post, ...]) -> None:
    assert broken(hooked("register", 3, 4, "a", "u"), KEPT, posts=posts) == {"webhooks"}


@pytest.mark.parametrize("end", [hooked("delete", 50, 52, "a"), hooked("register", 50, 52, "a", "v")])
def test_a_notification_after_the_end_of_its_webhook_is_found(end: Operation) -> None:
    first = hooked("register", 3, 4, "a", "u")
    assert broken(first, end, posts=ALL[:4]) == set()
    assert broken(first, end, posts=ALL[:6]) == {"deletion"}


@pytest.mark.parametrize(
    ("operations", "is_right"),
    [
        ([hooked("delete", 5, 6, "a"), hooked("webhook", 7, 8, "a", webhooks={}, refused=NOT_FOUND)], True),
        ([hooked("delete", 5, 9, "a"), hooked("webhook", 7, 8, "a", webhooks={"a": "u"})], True),
        ([hooked("delete", 5, 6, "a"), hooked("webhook", 7, 8, "a", webhooks={"a": "u"})], False),
        ([hooked("delete", 5, None, "a"), hooked("webhook", 7, 8, "a", webhooks={"a": "u"})], True),
        ([hooked("register", 5, 6, "a", "v"), hooked("webhooks", 7, 8, webhooks={"a": "u"})], False),
        ([hooked("register", 5, 9, "a", "v"), hooked("webhooks", 7, 8, webhooks={"a": "v"})], True),
        ([hooked("webhooks", 7, 8, webhooks={})], False),
        ([hooked("webhooks", 7, 8, webhooks={"a": "u", "b": "x"})], False),
    ],
)
def test_registrations_of_a_webhook_need_an_order(operations: list[Operation], *, is_right: bool) -> None:
    assert ("registry" not in broken(hooked("register", 3, 4, "a", "u"), *operations)) is is_right


def test_a_deletion_that_takes_effect_twice_is_found() -> None:
    """It deletes what there was, and then what another client has registered meanwhile."""
    twice = [
        hooked("delete", 5, 20, "a"),
        hooked("webhook", 6, 7, "a", webhooks={}, refused=NOT_FOUND),
        hooked("register", 8, 9, "a", "v"),
        hooked("webhook", 10, 11, "a", webhooks={}, refused=NOT_FOUND),
    ]
    assert broken(hooked("register", 3, 4, "a", "u"), *twice) == {"registry"}


def test_a_list_that_misses_a_task_at_the_end_is_found() -> None:
    assert broken(Operation("list", LAST, completed=LAST + 1, tasks={})) == {"end"}


def test_the_checker_finds_histories_that_never_settle_and_errors_without_a_fault() -> None:
    history = History(settled=False, errors=["ValueError: no"])
    assert [one.promise for one in check(history)] == ["end", "errors"]


def test_every_promise_has_a_name() -> None:
    assert len(PROMISES) == 10


def increment(count: int) -> int:
    return count + 1


def test_a_search_that_is_too_long_says_so() -> None:
    steps = [Step("increment", 0, inf, increment) for _ in range(30)]
    impossible: Step[int] = Step("read", 0, inf, lambda count: count if count < 0 else None, is_read=True)
    assert linearize([*steps, impossible], Specification(0), limit=1000).problem == "undecided"


def test_the_checker_tries_each_set_of_operations_once() -> None:
    steps = [Step("increment", 0, 10, increment) for _ in range(8)]
    impossible: Step[int] = Step("read", 0, 10, lambda count: count if count < 0 else None, is_read=True)
    verdict = linearize([*steps, impossible], Specification(0))
    assert (verdict.problem, verdict.tried) == ("in state 8 there is no place for: read", 256)


def test_an_optional_step_takes_no_effect_after_its_time() -> None:
    late: Step[int] = Step("read 1", 20, 30, lambda count: count if count == 1 else None, is_read=True)
    early: Step[int] = Step("read 0", 12, 13, lambda count: count if count == 0 else None, is_read=True)
    optional = Step("increment", 0, 10, increment, optional=True)
    assert linearize([optional, late], Specification(0)).problem == ""
    assert linearize([optional, early], Specification(0)).problem == ""
    assert "read 1" in linearize([optional, early, late], Specification(0)).problem
    assert VIEWS[7] == TaskView("completed", "done", ("m1", "Go on?", "m2"), (("out", "1 2 "),))
