"""ListTasks: which tasks, in which order, on which page, and whose token opens what."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.adapters.kms import KmsSealer
from a2a_serverless.domain import decisions
from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.domain.model import Principal, TaskKey
from a2a_serverless.protocol.v1 import ListTasksRequest, ListTasksResponse, Part, TaskState
from a2a_serverless.services.listing import COUNTED, READ, READ_BYTES, TaskLister, list_tasks
from a2a_serverless.store.stores import TaskIndex
from a2a_serverless.testing.memory import MemorySealer, MemoryStores
from tests.contract.backends import NOW
from tests.contract.tasks import SPOILED, by, chunk, opening, seen, spoil, writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ME = Principal("tenant", "owner")
EVERYTHING = ListTasksRequest(page_size=100)
WORKING = ListTasksRequest(status=TaskState.WORKING)


class Tasks:
    """Tasks of ``ME`` in a store, and their lists."""

    def __init__(self) -> None:
        self.table = MemoryStores(lambda: NOW)
        self.lister = TaskLister(self.table, self.table, MemorySealer())

    def add(
        self, task: str, at: int = NOW, *, agent: str = "echo", context: str = "c", parts: tuple[Part, ...] = ()
    ) -> TaskKey:
        """A task whose status changed at ``at``; ``parts`` are those of its message."""
        new = opening(ME.key(task), parts=parts)
        head = new.head._replace(status_at=at, context_id=context, agent=agent)
        assert self.table.create(new._replace(head=head, event=new.event._replace(at=at))) is None
        return new.head.key

    def work(self, task: str, at: int) -> None:
        """The task works from ``at`` on."""
        assert self.table.append(decisions.start_run(seen(self.table, ME.key(task)), now=at, by=by()))

    def page(
        self, query: ListTasksRequest = EVERYTHING, principal: Principal = ME, agent: str = "echo"
    ) -> ListTasksResponse:
        return list_tasks(self.lister, principal, agent, query)

    def ids(self, query: ListTasksRequest = EVERYTHING, **whose: Any) -> list[str]:
        return [task.id for task in self.page(query, **whose).tasks]

    def pages(
        self, query: ListTasksRequest, between: Callable[[int], object] = lambda _: None
    ) -> Iterator[ListTasksResponse]:
        """Page after page until the token is empty; ``between`` is called with the number of those that were read."""
        for number in range(1, 1000):
            page = self.page(query)
            yield page
            if not page.next_page_token:
                return
            between(number)
            query = query.model_copy(update={"page_token": page.next_page_token})


def some(number: int = 7, **of: Any) -> Tasks:
    """Tasks ``0`` to ``number - 1``, each changed a millisecond after the one before."""
    tasks = Tasks()
    for one in range(number):
        tasks.add(str(one), NOW + one, **of)
    return tasks


def told(pages: Iterator[ListTasksResponse]) -> list[str]:
    return [task.id for page in pages for task in page.tasks]


# ---- Filters


@pytest.mark.requirement(11)
def test_every_filter_keeps_what_it_names_and_nothing_else() -> None:
    tasks = some(4)
    tasks.add("elsewhere", NOW + 4, context="d")
    tasks.add("other", NOW + 5, agent="other")
    tasks.work("1", NOW + 6)
    assert tasks.ids() == ["1", "elsewhere", "3", "2", "0"]
    assert tasks.ids(ListTasksRequest(context_id="d")) == ["elsewhere"]
    assert tasks.ids(WORKING) == ["1"]
    assert tasks.ids(ListTasksRequest(status=TaskState.SUBMITTED)) == ["elsewhere", "3", "2", "0"]
    assert tasks.ids(ListTasksRequest(status_timestamp_after=NOW + 3)) == ["1", "elsewhere", "3"]
    assert tasks.ids(ListTasksRequest(context_id="c", status=TaskState.SUBMITTED, status_timestamp_after=NOW + 2)) == [
        "3",
        "2",
    ]
    assert tasks.ids(ListTasksRequest(context_id="c", status=TaskState.COMPLETED)) == []
    assert tasks.ids(agent="other") == ["other"]
    assert tasks.ids(principal=Principal("tenant", "somebody")) == []


def test_a_task_that_has_moved_on_since_the_index_saw_it_is_not_told_as_what_it_is_no_more() -> None:
    tasks = some(3)
    submitted, after = tasks.table.list_page(ME, None, None, 0, 9)

    class Late(TaskIndex):
        """An index that has not heard of the last change."""

        def list_page(self, *_: Any) -> Any:
            return submitted, after

    tasks.lister = replace(tasks.lister, index=Late(tasks.table.items))
    tasks.work("1", NOW + 9)
    assert tasks.ids(ListTasksRequest(status=TaskState.SUBMITTED)) == ["2", "0"]
    assert tasks.ids() == ["1", "2", "0"]


# ---- How much is read


def test_a_page_ends_with_the_task_for_which_its_bytes_are_read_and_the_next_one_goes_on() -> None:
    tasks = Tasks()
    for one in range(7):
        tasks.add(str(one), NOW + one, parts=(Part(text="x" * (READ_BYTES // 3)),))
    pages = [[task.id for task in page.tasks] for page in tasks.pages(EVERYTHING)]
    assert pages == [["6", "5", "4"], ["3", "2", "1"], ["0"]]
    assert {page.total_size for page in tasks.pages(EVERYTHING)} == {7}
    without_messages = EVERYTHING.model_copy(update={"history_length": 0})
    assert tasks.ids(without_messages) == ["6", "5", "4", "3", "2", "1", "0"]


def test_a_task_with_more_bytes_than_a_page_reads_is_a_page_of_its_own() -> None:
    tasks = some(1)
    tasks.add("large", NOW + 8, parts=(Part(text="x" * 2 * READ_BYTES),))
    assert [[task.id for task in page.tasks] for page in tasks.pages(EVERYTHING)] == [["large"], ["0"]]


# ---- What cannot be read


@pytest.mark.parametrize("how", SPOILED)
def test_a_task_that_cannot_be_read_is_left_out_of_its_page_and_is_in_the_log(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = some(5)
    spoil(tasks.table, ME.key("2"), how)
    assert told(tasks.pages(ListTasksRequest(page_size=2))) == ["4", "3", "1", "0"]
    (record,) = [record for record in caplog.records if record.message == "task unreadable"]
    assert record.__dict__["task"] == "2"


# ---- What of a task is told


@pytest.mark.requirement(9, 23)
def test_artifacts_are_told_when_they_are_asked_for_and_messages_as_many_as_are() -> None:
    tasks = some(1)
    key = tasks.add("made", NOW + 1)
    tasks.work("made", NOW + 2)
    assert tasks.table.append_chunk(writer(key), chunk(seen(tasks.table, key).last + 1))
    (plain, *_), (whole, bare) = tasks.page().tasks, tasks.page(ListTasksRequest(include_artifacts=True)).tasks
    assert (plain.artifacts, len(whole.artifacts), bare.artifacts) == ((), 1, ())
    assert [len(tasks.page(ListTasksRequest(history_length=most)).tasks[0].history) for most in (None, 0, 1)] == [
        1,
        0,
        1,
    ]


# ---- How many there are


@pytest.mark.parametrize("number", [0, 1, COUNTED - 1, COUNTED])
def test_the_total_is_exact_up_to_a_thousand(number: int) -> None:
    assert some(number).page(ListTasksRequest(page_size=1)).total_size == number


def test_counting_stops_at_a_thousand_and_paging_does_not() -> None:
    tasks = some(COUNTED + 2)
    pages = [*tasks.pages(EVERYTHING)]
    assert {page.total_size for page in pages} == {COUNTED}
    assert told(iter(pages)) == [str(number) for number in reversed(range(COUNTED + 2))]


def test_the_total_is_of_what_matches_and_stays_as_the_first_page_has_it() -> None:
    tasks = some(7)
    tasks.add("other", agent="other")
    tasks.work("3", NOW + 50)
    query = ListTasksRequest(status=TaskState.SUBMITTED, page_size=2)
    pages = [*tasks.pages(query, lambda number: tasks.add(f"new-{number}", NOW + 100 + number))]
    assert [(page.total_size, len(page.tasks)) for page in pages] == [(6, 2)] * 3


# ---- Order and pages


@pytest.mark.requirement(13)
def test_the_newest_status_comes_first_and_of_the_same_moment_the_greater_id() -> None:
    tasks = Tasks()
    for name, at in (("b", 0), ("a", 0), ("old", -1), ("new", 1), ("c", 0)):
        tasks.add(name, NOW + at)
    assert tasks.ids() == ["new", "c", "b", "a", "old"]
    assert told(tasks.pages(ListTasksRequest(page_size=2))) == ["new", "c", "b", "a", "old"]


@pytest.mark.requirement(10, 12)
@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 8, 100])
def test_pages_of_any_size_tell_every_task_once_and_only_the_last_has_no_token(size: int) -> None:
    pages = [*some().pages(ListTasksRequest(page_size=size))]
    assert told(iter(pages)) == [str(number) for number in reversed(range(7))]
    assert [len(page.tasks) for page in pages[:-1]] == [size] * (len(pages) - 1)
    assert {page.page_size for page in pages} == {size}
    assert [bool(page.next_page_token) for page in pages] == [True] * (len(pages) - 1) + [False]


@pytest.mark.requirement(12)
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("moving", [("6",), ("3",), ("0",), ("5", "2", "1")])
def test_while_tasks_change_nothing_is_told_twice_and_nothing_is_missed_that_did_not_change(
    size: int, moving: tuple[str, ...]
) -> None:
    tasks = some()

    def change(number: int) -> None:
        if number <= len(moving):
            tasks.work(moving[number - 1], NOW + 100 + number)
        tasks.add(f"new-{number}", NOW + 200 + number)

    found = told(tasks.pages(ListTasksRequest(page_size=size), change))
    assert len(found) == len(set(found))
    assert {str(number) for number in range(7)} - {*moving} <= {*found}


def test_a_filter_that_few_tasks_pass_gives_short_pages_and_misses_none() -> None:
    tasks = some(COUNTED + READ + 5)
    rare = ("0", "3", str(READ), str(COUNTED))
    for name in rare:
        tasks.add(f"rare-{name}", NOW + int(name), context="c", agent="rare")
    found = []
    query = ListTasksRequest(page_size=2)
    while True:
        page = tasks.page(query, agent="rare")
        assert len(page.tasks) <= 2
        assert page.total_size == 1, "counted among the thousand newest tasks of all agents"
        found += [task.id for task in page.tasks]
        if not page.next_page_token:
            break
        query = query.model_copy(update={"page_token": page.next_page_token})
    assert found == [f"rare-{name}" for name in reversed(rare)]


# ---- The token


def token_of(tasks: Tasks, query: ListTasksRequest = ListTasksRequest(page_size=2), **whose: Any) -> str:  # noqa: B008 - frozen
    token = tasks.page(query, **whose).next_page_token
    assert token
    return token


@pytest.mark.parametrize(
    "other",
    [
        {"principal": Principal("tenant", "somebody")},
        {"principal": Principal("elsewhere", "owner")},
        {"agent": "other"},
        {"query": ListTasksRequest(context_id="c")},
        {"query": ListTasksRequest(status=TaskState.SUBMITTED)},
        {"query": ListTasksRequest(status_timestamp_after=NOW)},
    ],
    ids=str,
)
def test_a_token_opens_for_its_caller_its_agent_and_its_filters_only(other: dict[str, Any]) -> None:
    tasks = some()
    token = token_of(tasks)
    query = other.get("query", ListTasksRequest()).model_copy(update={"page_token": token})
    with pytest.raises(InvalidParams) as refused:
        tasks.page(**{**other, "query": query})
    assert [one.field for one in refused.value.violations] == ["pageToken"]


def test_no_two_callers_share_tokens_whatever_their_names_are_made_of() -> None:
    tasks = some(0)
    one, other = Principal("a\nb", "c"), Principal("a", "b\nc")
    for number in range(3):
        new = opening(one.key(str(number)))
        assert tasks.table.create(new) is None
    token = token_of(tasks, principal=one)
    with pytest.raises(InvalidParams):
        tasks.page(ListTasksRequest(page_token=token), principal=other)


def test_a_token_goes_on_with_another_size_of_page_or_another_view_of_the_tasks() -> None:
    tasks = some()
    query = ListTasksRequest(page_size=3, history_length=0, include_artifacts=True, page_token=token_of(tasks))
    assert tasks.ids(query) == ["4", "3", "2"]


@pytest.mark.parametrize("token", ["x", "[]", "é", "1.a.b", "MQ==", "bnVsbA==", " ", "W10=", "\x00", "=" * 9])
def test_a_text_that_is_no_page_token_is_refused_by_name(token: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        some().page(ListTasksRequest(page_token=token))
    assert [one.field for one in refused.value.violations] == ["pageToken"]


class Kms:
    """Wraps data keys by turning them around."""

    def generate_data_key(self, **_: object) -> dict[str, bytes]:
        return {"Plaintext": bytes(range(32)), "CiphertextBlob": bytes(range(32))[::-1]}

    def decrypt(self, **asked: Any) -> dict[str, bytes]:
        return {"Plaintext": asked["CiphertextBlob"][::-1]}


def test_a_deployed_token_shows_nothing_of_what_it_says_and_cannot_be_changed() -> None:
    tasks = some()
    kms: Any = Kms()
    tasks.lister = replace(tasks.lister, sealer=KmsSealer(lambda: kms, "key", lambda: NOW))
    token = token_of(tasks)
    assert not any(word in token for word in ("owner", "tenant", str(NOW)))
    assert tasks.ids(ListTasksRequest(page_token=token)) == ["4", "3", "2", "1", "0"]
    for at in (0, 10, 60, len(token) - 5):
        changed = "B" if token[at] == "A" else "A"
        with pytest.raises(InvalidParams):
            tasks.page(ListTasksRequest(page_token=token[:at] + changed + token[at + 1 :]))
