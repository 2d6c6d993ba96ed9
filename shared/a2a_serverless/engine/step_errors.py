"""The errors of steps as JSON values: a later run raises an error that is equal to the one that the step raised."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, cast

from a2a_serverless.domain.step_results import StoredError
from a2a_serverless.protocol.strict_json import dump_storable

SIZE_LIMIT: Final = 16 * 1024
OWN_PACKAGE: Final = "a2a_serverless"


def dump_error(error: Exception, packages: frozenset[str]) -> StoredError | None:
    """The error's type, arguments and attributes; None if an equal error cannot be made from these.

    Types are the standard library's, this library's, and those of ``packages`` (the top-level packages of the project's
    agents). Its cause is not stored: the agent gets the error without it, in the first run, too.
    """
    kind = type(error)
    try:
        # Its own arguments for a copy, because ``args`` lacks some: the file name of an OSError is not in it.
        # tests/engine/test_first_run.py: test_a_file_that_is_missing_keeps_its_name
        _, arguments, *_ = cast("Any", error.__reduce__())
        made = vars(kind(*arguments))
        attributes = {name: value for name, value in vars(error).items() if made.get(name, made) != value}
        text = dump_storable([kind.__module__, kind.__qualname__, arguments, attributes or None])
        record = StoredError(*json.loads(text))
        later = load_error(record, packages) if len(text) <= SIZE_LIMIT else None
        is_same = type(later) is kind and _parts(later) == _parts(error)
    except Exception:  # noqa: BLE001 - any exception of the error's own code
        return None
    return record if is_same else None


def _parts(error: Exception) -> tuple[object, ...]:
    return (error.args, vars(error), str(error), error.__reduce__()[1])


def load_error(record: StoredError, packages: frozenset[str]) -> Exception | None:
    """An error that is equal to the stored one; None if it cannot be made, or its type does not exist any more."""
    module, name, arguments, attributes, *_ = record
    package = module.partition(".")[0]
    is_standard = package in sys.stdlib_module_names
    if arguments is None or not (is_standard or package in {OWN_PACKAGE, *packages}):
        return None
    # A later run may be another process, whose code has not imported the module yet: the agent gets the same type.
    # tests/engine/test_errors.py: test_an_error_of_the_standard_library_is_read_where_its_module_is_not_imported
    if is_standard:
        with suppress(ImportError):
            import_module(module)
    kind: Any = sys.modules.get(module)
    for part in name.split("."):
        kind = getattr(kind, part, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return None
    try:
        error: Exception = kind(*arguments)
        vars(error).update(attributes or {})
    except Exception:  # noqa: BLE001 - any exception of the type's own code
        return None
    return error
