"""Errors of steps as JSON values, so that a later run raises the same error as the step."""

from __future__ import annotations

import builtins
import json
import sys
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json

SIZE_LIMIT: Final = 16 * 1024
OWN_PACKAGE: Final = "a2a_serverless"


def dump_error(error: Exception, packages: frozenset[str]) -> Json:
    """The error's type and arguments; None if an equal error cannot be made from these.

    Types are builtins, this library's, and those of ``packages`` (the top-level packages of the project's agents).
    """
    kind = type(error)
    try:
        text = json.dumps([kind.__module__, kind.__qualname__, list(error.args)], allow_nan=False)
        dumped = json.loads(text)
        again = load_error(dumped, packages) if len(text) <= SIZE_LIMIT else None
        is_same = type(again) is kind and again.args == error.args and vars(again) == vars(error)
    except Exception:  # noqa: BLE001 - any exception of the error's own code
        return None
    return cast("Json", dumped) if is_same else None


def load_error(dumped: Any, packages: frozenset[str]) -> Exception | None:  # noqa: ANN401 - a JSON value
    """The error in the result of ``dump_error``; None if its type does not exist any more."""
    module, name, arguments = dumped
    if module.partition(".")[0] not in {builtins.__name__, OWN_PACKAGE, *packages}:
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
