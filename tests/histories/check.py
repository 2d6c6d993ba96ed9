"""The checker: what is wrong with a history. Each promise of the log and of its readers is a check of its own."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tests.histories.clients import ANY
from tests.histories.history import History, Item, LogEvent, Operation, Post, TaskView
from tests.histories.linearizability import linearize
from tests.histories.specification import (
    NEXT,
    REGISTRY,
    SENDS,
    TERMINAL,
    WAITING,
    TaskSpecification,
    registry_steps,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise of one task; ``promise`` is one of ``PROMISES``."""

    promise: str
    task: str
    text: str


PROMISES: Final = {
    "operations": "the operations on a task have an order, which respects real time and the task's states",
    "registry": "so have those on each of its webhooks",
    "log": "numbers are contiguous, states follow the table, and nothing is behind the terminal event",
    "messages": "each accepted message is in the log once, and makes one task",
    "chunks": "each chunk is in the log once, in order, and a completed task has all",
    "streams": "a stream has every event after its first item, once, in order",
    "webhooks": "a webhook gets every event from its registration on, in order, one at a time",
    "deletion": "nothing is sent to a webhook after its deletion or replacement has returned",
    "errors": "no process fails but by a fault",
    "end": "at the end every task has ended or waits for its client, and the list has it",
}


def check(history: History) -> list[Violation]:
    """Everything that is wrong with the history. A search that was too long for its limit is a violation, too."""
    owners = {event.message: task for task, log in history.logs.items() for event in log if event.message}
    found = [*_check_messages(history)]
    for task, log in history.logs.items():
        mine = [one for one in history.operations if one.task == task or owners.get(one.message) == task]
        posts = [post for post in history.posts if post.task == task]
        lists = [one for one in history.operations if task in (one.tasks or {})]
        made = next((one.chunks for one in mine if log and one.message == log[0].message), 0)
        broken = [
            *_check_log(log),
            *(_check_chunks(log, made) if made != ANY else ()),
            *_check_order(task, log, [*mine, *lists], posts),
            *_check_registry(mine),
            *_check_streams(log, mine),
            *_check_webhooks(log, mine, posts),
            *_check_deletions(mine, posts),
        ]
        found += [Violation(promise, task, text) for promise, text in broken]
    errors = (Violation("errors", "", error) for error in history.errors)
    return [*found, *_check_end(history), *errors]


def _check_messages(history: History) -> Iterator[Violation]:
    count = Counter(event.message for log in history.logs.values() for event in log if event.message)
    places = {event.message: task for task, log in history.logs.items() for event in log if event.message}
    sent = {one.message for one in history.operations if one.kind in SENDS}
    yield from (
        Violation("messages", places[one], f"{one} is there {count[one]} times") for one in count if count[one] > 1
    )
    yield from (Violation("messages", places[one], f"nobody has sent {one}") for one in count if one not in sent)
    for one in history.operations:
        if one.kind in SENDS and one.completed and not one.refused and one.message not in count:
            yield Violation("messages", one.task, f"{one.message} was accepted and is in no log")
        if one.task and one.completed and not one.refused and one.task not in history.logs:
            yield Violation("messages", one.task, f"{one.kind} at {one.invoked} is of a task without a log")
        if one.kind in SENDS and one.task and one.message in places and one.task != places[one.message]:
            yield Violation("messages", one.task, f"{one.message} has made {places[one.message]}")


def _check_log(log: Sequence[LogEvent]) -> Iterator[tuple[str, str]]:
    numbers, state = [event.n for event in log], ""
    if numbers != list(range(1, len(log) + 1)):
        yield "log", f"the numbers are {numbers}"
    for event in log:
        if event.state and event.state not in NEXT[state]:
            yield "log", f"event {event.n}: {event.state} may not follow {state or 'nothing'}"
        if not event.state and state != "working":
            yield "log", f"event {event.n}: a chunk may not follow {state or 'nothing'}"
        state = event.state or state


def _check_chunks(log: Sequence[LogEvent], made: int) -> Iterator[tuple[str, str]]:
    texts = "".join(event.text for event in log if not event.state).split()
    if texts != [str(number) for number in range(1, len(texts) + 1)]:
        yield "chunks", f"the chunks are {texts}"
    if len(texts) > made or (log and log[-1].state == "completed" and len(texts) < made):
        yield "chunks", f"there are {len(texts)} chunks of {made}"


def _check_order(
    task: str, log: Sequence[LogEvent], operations: Sequence[Operation], posts: Sequence[Post]
) -> Iterator[tuple[str, str]]:
    specified = TaskSpecification(task, log)
    verdict = linearize(specified.steps(operations, posts), specified.specification)
    if verdict.problem:
        yield "operations", verdict.problem


def _check_registry(operations: Sequence[Operation]) -> Iterator[tuple[str, str]]:
    listed = (one for operation in operations for one in operation.webhooks or ())
    for config in sorted({one.webhook[0] for one in operations} | {*listed} - {""}):
        if config and (problem := linearize([*registry_steps(config, operations)], REGISTRY).problem):
            yield "registry", f"{config}: {problem}"


def _check_streams(log: Sequence[LogEvent], operations: Sequence[Operation]) -> Iterator[tuple[str, str]]:
    for one in operations:
        numbers = [item.n for item in one.items]
        first = [one.after] if one.after is not None else []
        if any(later != before + 1 for before, later in pairwise([*first, *numbers])):
            yield "streams", f"{one.kind} at {one.invoked} after {one.after} has {numbers}"
        yield from (("streams", f"at {one.invoked}: {text}") for item in one.items for text in _check_item(log, item))


def _check_item(log: Sequence[LogEvent], item: Item) -> Iterator[str]:
    """Whether an event that was shown is that of the log. A task is checked for its number."""
    if not 1 <= item.n <= len(log):
        yield f"the log has no event {item.n}"
    elif isinstance(item.content, LogEvent) and item.content != log[item.n - 1].shown:
        yield f"{item.content} is not {log[item.n - 1]}"
    elif isinstance(item.content, TaskView) and item.content != TaskSpecification("", log).views[item.n]:
        yield f"{item.content} is not the task after event {item.n}"


def _check_webhooks(
    log: Sequence[LogEvent], operations: Sequence[Operation], posts: Sequence[Post]
) -> Iterator[tuple[str, str]]:
    """Per URL, which belongs to one registration. What is tried again has the number of the try before."""
    by_url: defaultdict[str, list[Post]] = defaultdict(list)
    for post in sorted(posts, key=lambda post: post.item.at):
        by_url[post.url].append(post)
    for url, tried in by_url.items():
        numbers = [post.item.n for post in tried]
        if numbers != sorted(numbers):
            yield "webhooks", f"{url} got {numbers}"
        if any(later.item.at < before.left for before, later in pairwise(tried)):
            yield "webhooks", f"{url} got two notifications at a time"
        if not isinstance(tried[0].item.content, TaskView):
            yield "webhooks", f"{url} first got {tried[0].item.content}"
        yield from (("webhooks", f"{url}: {text}") for post in tried for text in _check_item(log, post.item))
    kept = next(
        (one.webhooks for one in reversed(operations) if one.kind == "webhooks" and one.webhooks is not None), None
    )
    for config, url in (kept or {}).items():
        accepted = [post for post in by_url[url] if post.accepted]
        told = {n for post in accepted for n in _numbers(post)}
        skippable = {event.n for event in log if event.state == "working" and not event.said} - {len(log)}
        missing = {event.n for event in log} - told - skippable
        if missing:
            yield "webhooks", f"{config} {url} did not get {sorted(missing)}"


def _numbers(post: Post) -> range:
    """The events that a notification tells: a task tells all until its number."""
    first = 1 if isinstance(post.item.content, TaskView) else post.item.n
    return range(first, post.item.n + 1)


def _check_deletions(operations: Sequence[Operation], posts: Sequence[Post]) -> Iterator[tuple[str, str]]:
    """An operation ends a webhook if it was invoked after the last registration of its URL had returned."""
    registered: defaultdict[tuple[str, str], float] = defaultdict(float)
    for one in operations:
        if one.webhook[1]:
            returned = float("inf") if one.completed is None else one.completed
            registered[one.webhook] = max(registered[one.webhook], returned)
    for (config, url), since in registered.items():
        ends = (one.completed for one in operations if _ends(one, config, url) and one.invoked > since)
        end = min((at for at in ends if at is not None), default=None)
        for post in posts:
            if end is not None and post.url == url and post.left > end:
                yield "deletion", f"{url} got event {post.item.n} until {post.left}, after its end at {end}"


def _ends(operation: Operation, config: str, url: str) -> bool:
    same = operation.webhook[0] == config and operation.completed is not None and not operation.refused
    return same and (operation.kind == "delete" or (operation.kind == "register" and operation.webhook[1] != url))


def _check_end(history: History) -> Iterator[Violation]:
    """The last list has every task, and each has come to rest."""
    if not history.settled:
        yield Violation("end", "", "there was always something left to do")
    last = max((one for one in history.operations if one.tasks is not None), key=lambda one: one.invoked, default=None)
    for task, log in history.logs.items():
        state = TaskSpecification(task, log).views[-1].state
        if state not in TERMINAL | WAITING:
            yield Violation("end", task, f"is {state}")
        if last is not None and task not in (last.tasks or {}):
            yield Violation("end", task, "is not in the list")
    for one in history.operations:
        if one.kind == "list" and one.refused:
            yield Violation("end", "", f"the list at {one.invoked} was refused")
