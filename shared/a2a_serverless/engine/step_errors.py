"""The errors of steps as JSON values: each run raises the copy that is made of what is stored, the first run, too.

A copy has the type of the error, so that ``except`` gets the same in each run, also a type of a library. It has the
error's text, its notes, and those of its attributes that are JSON values. It has no cause and no context.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from pydantic import TypeAdapter

from a2a_serverless.domain.agent_errors import StepFailed, TaskFailed, TaskRejected
from a2a_serverless.domain.step_results import StoredError
from a2a_serverless.protocol.strict_json import dump_storable
from a2a_serverless.protocol.v1 import Message, Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.model import Json, JsonObject

SIZE_LIMIT: Final = 16 * 1024
CONTENT: Final = "@content"
"""The only member of an attribute that is what a client reads: a message, or parts."""
Content: TypeAlias = Message | list[Part]


def dump_error(error: Exception) -> StoredError:
    """The error as it is stored. Its ``arguments`` are None if no copy with its type and text can be made."""
    for record in _forms(error):
        with suppress(Exception):  # any exception of the error's own code
            text = dump_storable([*record])
            stored = StoredError(*json.loads(text))
            copy = load_error(stored)
            if len(text) <= SIZE_LIMIT and type(copy) is type(error) and _text_of(copy) == _text_of(error):
                return stored
    return StoredError(type(error).__module__, type(error).__qualname__, None)


def _text_of(error: Exception) -> str | None:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - any exception of the error's own code
        return None


def _forms(error: Exception) -> Iterator[StoredError]:
    """What may be stored of an error, the best first: its own arguments for a copy, or those that each error has."""
    kind, attributes = type(error), _attributes_of(error)
    form = StoredError(kind.__module__, kind.__qualname__, None, attributes or None)
    if isinstance(error, ExceptionGroup):
        errors: list[Json] = [[*dump_error(one)] for one in error.exceptions]
        yield form._replace(arguments=[error.message], errors=errors)
        return
    with suppress(Exception):  # any exception of the error's own code
        # ``args`` lacks some: the file name of an OSError is not in it.
        # tests/engine/test_first_run.py: test_a_file_that_is_missing_keeps_its_name
        _, arguments, *_ = cast("Any", error.__reduce__())
        made = vars(kind(*arguments))
        own = {name: value for name, value in attributes.items() if name not in made or made[name] != value}
        yield form._replace(arguments=[*arguments], attributes=own or None)
    yield form._replace(arguments=[*error.args], is_made=False)


def _attributes_of(error: Exception) -> JsonObject:
    """The attributes that are JSON values, and the content of an error that a client reads."""
    attributes: JsonObject = {}
    for name, value in vars(error).items():
        with suppress(Exception):  # no JSON value
            if json.loads(text := dump_storable(value)) == value:
                attributes[name] = json.loads(text)
    if isinstance(error, TaskFailed | TaskRejected) and "content" not in attributes:
        content: Any = error.content
        content = content if isinstance(content, Message) else [content] if isinstance(content, Part) else [*content]
        attributes["content"] = {CONTENT: _content_adapter().dump_python(content, mode="json")}
    return attributes


@cache
def _content_adapter() -> TypeAdapter[Content]:
    return TypeAdapter(Content)


def load_error(record: StoredError) -> Exception | None:
    """The copy of an error; None if it cannot be made, or its type does not exist any more."""
    kind = _find_type(record.module, record.name)
    if record.arguments is None or kind is None:
        return None
    try:
        if record.errors:
            errors = [StoredError(*cast("Any", one)) for one in record.errors]
            error: Exception = kind(*record.arguments, [load_error(one) or failure_of(one) for one in errors])
        elif record.is_made:
            error = kind(*record.arguments)
        else:
            error = kind.__new__(kind, *record.arguments)
        for name, value in (record.attributes or {}).items():
            is_content = isinstance(value, dict) and [*value] == [CONTENT]
            vars(error)[name] = _content_adapter().validate_python(value[CONTENT]) if is_content else value  # type: ignore[index,call-overload]
    except Exception:  # noqa: BLE001 - any exception of the type's own code
        return None
    return error


def failure_of(record: StoredError, step: str = "A step") -> StepFailed:
    """The error in place of one of which no copy can be made."""
    return StepFailed(
        f"{step} raised {record.name}, which a later run cannot raise again. Catch it in the step, and raise an error"
        " of your project."
    )


def _find_type(module: str, name: str) -> Any:  # noqa: ANN401 - a type of errors
    # A later run may be another process, whose code has not imported the module yet: the agent gets the same type.
    # tests/engine/test_errors.py: test_an_error_is_read_where_its_module_is_not_imported
    with suppress(Exception):  # any exception of the module's own code
        import_module(module)
    kind: Any = sys.modules.get(module)
    for part in name.split("."):
        kind = getattr(kind, part, None)
    return kind if isinstance(kind, type) and issubclass(kind, Exception) else None
