"""Awaits a step's work in a copy of the context: a later run, which reads the result, would not see what it sets there.

No asyncio task is made for it: a timeout or a cancellation of the code around the step reaches the work as before.
"""

from __future__ import annotations

import types
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator

T = TypeVar("T")


@types.coroutine
def await_in_copy(work: Awaitable[T]) -> Generator[Any, Any, T]:
    """The result of ``work``. Context variables that it sets keep their values in the code around it."""
    run, inner = copy_context().run, work.__await__()
    try:
        future = run(next, inner)
        while True:
            try:
                value = yield future
            except GeneratorExit:
                run(inner.close)
                raise
            except BaseException as error:  # noqa: BLE001 - a cancellation, too: the work decides on it
                future = run(inner.throw, error)
            else:
                future = run(inner.send, value)
    except StopIteration as end:
        result: T = end.value
        return result
