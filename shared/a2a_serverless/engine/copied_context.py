"""Awaits a step's work in a copy of the context: a later run, which reads the result, would not see what it sets there.

No asyncio task is made for it: a timeout or a cancellation of the code around the step reaches the work as before.
"""

from __future__ import annotations

from contextvars import copy_context
from inspect import iscoroutine
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator

T = TypeVar("T")


class InCopiedContext(Generic[T]):
    """Awaits ``work``. The context variables that it sets keep their values in the code that awaits this.

    ``cr_await`` is what it awaits, as of a coroutine: tools that show where code waits go on through it.
    """

    def __init__(self, work: Awaitable[T]) -> None:
        self.cr_await: Any = work if iscoroutine(work) else work.__await__()
        self._run = copy_context().run

    def __await__(self) -> Generator[Any, Any, T]:
        """The iterator of this await."""
        return self

    def __iter__(self) -> InCopiedContext[T]:
        """The iterator of this await."""
        return self

    def __next__(self) -> object:
        """Goes on with the work."""
        return self.send(None)

    def send(self, value: object) -> object:
        """See ``Generator.send``."""
        return self._run(self.cr_await.send, value)

    def throw(self, *error: Any) -> object:  # noqa: ANN401 - Generator's
        """See ``Generator.throw``: a cancellation, too, is the work's to decide on."""
        return self._run(self.cr_await.throw, *error)

    def close(self) -> None:
        """See ``Generator.close``."""
        self._run(self.cr_await.close)
