"""What a task is, said again and independently of the library: a log, a table of states, and a registry of webhooks.

The state of a task is the number of its last event. What the agent does, and what the deployment decides, happens by
itself; the client's events need an operation that caused them.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final

from tests.histories.history import LogEvent, Operation, Post, TaskView
from tests.histories.linearizability import Specification, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

TERMINAL: Final = frozenset({"completed", "failed", "canceled", "rejected"})
WAITING: Final = frozenset({"input_required", "auth_required"})
NEXT: Final[dict[str, frozenset[str]]] = {
    "": frozenset({"submitted"}),
    "submitted": frozenset({"submitted", "working", "failed", "canceled", "rejected"}),
    "working": TERMINAL | WAITING | {"working"},
    "input_required": frozenset({"working", "failed", "canceled"}),
    "auth_required": frozenset({"working", "failed", "canceled"}),
} | dict.fromkeys(TERMINAL, frozenset())

NOT_FOUND: Final = -32001
NOT_CANCELABLE: Final = -32002
HAS_ENDED: Final = -32004
STREAMS: Final = frozenset({"subscribe", "stream"})
SENDS: Final = frozenset({"send", "stream"})


def views_of(log: Sequence[LogEvent]) -> list[TaskView]:
    """The task after each number of events; the first one, of none, has no state."""
    views = [TaskView("")]
    for event in log:
        before = views[-1]
        if event.state:
            said = (before.said,) if before.said else ()
            message = (event.message,) if event.message else ()
            views.append(
                replace(before, state=event.state, said=event.said, history=(*before.history, *said, *message))
            )
        else:
            texts = dict(before.artifacts)
            texts[event.artifact] = texts.get(event.artifact, "") + event.text if event.append else event.text
            views.append(replace(before, artifacts=tuple(texts.items())))
    return views


class TaskSpecification:
    """The steps of one task's operations, and what its log allows."""

    def __init__(self, task: str, log: Sequence[LogEvent]) -> None:
        self.task, self.log, self.views = task, log, views_of(log)
        self.messages = [frozenset(event.message for event in log[:n] if event.message) for n in range(len(log) + 1)]
        self.specification = Specification(0, self._go_on, lambda n: n == len(log))

    def steps(self, operations: Iterable[Operation], posts: Iterable[Post]) -> list[Step[int]]:
        """The steps of the operations on this task, and of what webhooks have shown of it."""
        steps: list[Step[int]] = []
        for operation in operations:
            mine = list(self._steps_of(operation))
            steps += [replace(step, after=None if step.after is None else step.after + len(steps)) for step in mine]
        for post in posts:
            steps.append(self._seen(f"the notification of event {post.item.n}", 0, post.item.at, post.item.n))
        return steps

    def _steps_of(self, operation: Operation) -> Iterator[Step[int]]:
        if operation.kind in SENDS | {"cancel"}:
            yield from self._writes(operation)
        elif operation.completed is not None:
            yield from self._reads(operation)
        for item in operation.items:
            if isinstance(item.content, LogEvent):
                text = f"event {item.n} in {operation.kind} at {operation.invoked}"
                yield self._seen(text, operation.invoked, item.at, item.n)
            else:
                yield self._view(operation, item.content, operation.invoked, item.at)

    def _writes(self, operation: Operation) -> Iterator[Step[int]]:
        text = f"{operation.kind} {operation.message} at {operation.invoked}"
        begin, end = operation.invoked, operation.completed or inf
        if operation.refused:
            yield self._refusal(operation)
            return
        is_known = operation.completed is not None or bool(operation.items)
        end = min([end, *(item.at for item in operation.items)])
        yield Step(text, begin, end, lambda n: self._write(operation, n), optional=not is_known)
        if operation.view is not None:
            yield replace(self._view(operation, operation.view, begin, end), after=0)

    def _write(self, operation: Operation, n: int) -> int | None:
        """The state after a send or a cancel. A message that the log has already changes nothing."""
        if operation.kind in SENDS and operation.message in self.messages[n]:
            return n
        if n == len(self.log):
            return None
        event = self.log[n]
        fits = event.message == operation.message if operation.kind in SENDS else event.state == "canceled"
        return n + 1 if fits else None

    def _refusal(self, operation: Operation) -> Step[int]:
        text = f"{operation.kind} {operation.message} at {operation.invoked}, refused by {operation.refused}"
        begin, end = operation.invoked, operation.completed or inf
        return Step(text, begin, end, lambda n: n if self._may_refuse(operation, n) else None, is_read=True)

    def _may_refuse(self, operation: Operation, n: int) -> bool:
        """Whether the refusal is right in state ``n``."""
        has_ended = self.views[n].state in TERMINAL
        match operation.kind, operation.refused:
            case _, code if code == NOT_FOUND:
                return n == 0
            case "cancel", code if code == NOT_CANCELABLE:
                return has_ended
            case "send" | "stream", code if code == HAS_ENDED:
                return has_ended and operation.message not in self.messages[n]
            case "subscribe", code if code == HAS_ENDED:
                return has_ended
        return False

    def _reads(self, operation: Operation) -> Iterator[Step[int]]:
        begin, end = operation.invoked, operation.completed or inf
        if operation.refused and operation.kind in {"get", "subscribe"}:
            yield self._refusal(operation)
        view = (operation.tasks or {}).get(self.task) or operation.view
        if view is not None:
            yield self._view(operation, view, begin, end)

    def _view(self, operation: Operation, view: TaskView, begin: float, end: float) -> Step[int]:
        text = f"{operation.kind} at {operation.invoked} that saw {view}"
        return Step(text, begin, end, lambda n: n if self.views[n] == view else None, is_read=True)

    def _seen(self, text: str, begin: float, end: float, number: int) -> Step[int]:
        """A step that proves that the log had an event."""
        return Step(text, begin, end, lambda n: n if n >= number else None, is_read=True)

    def _go_on(self, n: int) -> int | None:
        """The state after an event of the agent or of the deployment."""
        event = self.log[n] if n < len(self.log) else None
        return n + 1 if event and not event.message and event.state != "canceled" else None


REGISTRY: Final = Specification("")


def registry_steps(config: str, operations: Sequence[Operation]) -> Iterator[Step[str]]:
    """The steps of one webhook of one task, whose state is its URL, or empty.

    A send may register a webhook: only the first one of its message does, so each of several may or may not.
    """
    sends = [one.message for one in operations if one.kind in SENDS and one.webhook[0] == config]
    for operation in operations:
        text = f"{operation.kind} {config} at {operation.invoked}"
        begin, end, is_ok = operation.invoked, operation.completed or inf, not operation.refused
        is_open = operation.completed is None
        is_mine = operation.webhook[0] == config
        if operation.kind in SENDS and is_mine:
            is_open = is_open or not is_ok or sends.count(operation.message) > 1
            yield Step(text, begin, end, lambda _, url=operation.webhook[1]: url, optional=is_open)  # type: ignore[misc]
        elif operation.kind == "register" and is_mine and is_ok:
            yield Step(text, begin, end, lambda _, url=operation.webhook[1]: url, optional=is_open)  # type: ignore[misc]
        elif operation.kind == "delete" and is_mine and is_ok:
            yield Step(text, begin, end, lambda _: "", optional=is_open)
        elif not is_open and operation.webhooks is not None and (is_mine or operation.kind == "webhooks"):
            seen = operation.webhooks.get(config, "")
            text = f"{text} that saw {seen!r}"
            yield Step(text, begin, end, lambda url, seen=seen: url if url == seen else None, is_read=True)  # type: ignore[misc]
