"""Names for the steps of frameworks' loops, whose operations have names of few kinds."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless import TaskContext

T = TypeVar("T")
NAME_LIMIT: Final = 256

_FINISHED: Final[WeakKeyDictionary[TaskContext, Counter[str]]] = WeakKeyDictionary()


async def numbered(task: TaskContext, name: str, use: Callable[[str], Awaitable[T]]) -> T:
    """Calls ``use`` with the name, which gets a number if it was used before in this run: ``model``, ``model#2``.

    Only uses that end well count. A framework that tries again after an error (another model, for example) uses the
    same name again, so a later run finds the result at its first try.
    """
    finished = _FINISHED.setdefault(task, Counter())
    number = finished[name] + 1
    numbered_name = name if number == 1 else f"{name}#{number}"
    if len(numbered_name) > NAME_LIMIT:
        numbered_name = f"{numbered_name[:100]}:{sha256(numbered_name.encode()).hexdigest()}"
    result = await use(numbered_name)
    finished[name] = number
    return result
