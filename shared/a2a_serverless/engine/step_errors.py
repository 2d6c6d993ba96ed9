"""The errors of steps as JSON values: a later run raises an error that is equal to the one that the step raised."""

from __future__ import annotations

import builtins
import json
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json

SIZE_LIMIT: Final = 16 * 1024
OWN_PACKAGE: Final = "a2a_serverless"


class StoredError(NamedTuple):
    """The error of a step's try. ``arguments`` is None if no equal error can be made.

    The next try begins at ``retry_at`` (ms), 0 for no other try. The first one began at ``began_at`` (ms).
    """

    module: str
    name: str
    arguments: list[Json] | None
    retry_at: int = 0
    began_at: int = 0


def dump_error(error: Exception, packages: frozenset[str]) -> StoredError | None:
    """The error's type and arguments; None if an equal error cannot be made from these.

    Types are builtins, this library's, and those of ``packages`` (the top-level packages of the project's agents).
    """
    kind = type(error)
    try:
        text = json.dumps([kind.__module__, kind.__qualname__, list(error.args)], allow_nan=False)
        record = StoredError(*json.loads(text))
        again = load_error(record, packages) if len(text) <= SIZE_LIMIT else None
        is_same = type(again) is kind and again.args == error.args and vars(again) == vars(error)
    except Exception:  # noqa: BLE001 - any exception of the error's own code
        return None
    return record if is_same else None


def load_error(record: StoredError, packages: frozenset[str]) -> Exception | None:
    """An error that is equal to the stored one; None if it cannot be made, or its type does not exist any more."""
    module, name, arguments, *_ = record
    if arguments is None or module.partition(".")[0] not in {builtins.__name__, OWN_PACKAGE, *packages}:
        return None
    kind: Any = sys.modules.get(module)
    for part in name.split("."):
        kind = getattr(kind, part, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return None
    try:
        return kind(*arguments)
    except Exception:  # noqa: BLE001 - any exception of the type's own code
        return None
