"""The JSON forms of values: the one rule for arguments and results of steps, contents of messages, and stored values.

A value is what pydantic can write as JSON: JSON values, models, dataclasses, dates, UUIDs, decimals, enums, paths,
sets, bytes and collections of them. Iterators are no values: reading them would use them up. A set becomes a sorted
list: its own order is another one in each process.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, PydanticUserError, RootModel, SecretBytes, SecretStr, TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.domain.model import Json

SEQUENCES = (list, tuple, deque)
SETS = (set, frozenset)
ARRAYS = (*SEQUENCES, *SETS)
HOLDERS = (list, dict)
NO_VALUE = "is neither a JSON value nor a model, a dataclass or another value that pydantic can write as JSON"


def json_form(what: str, value: object) -> Json:
    """A copy of a value as its readers get it: as pydantic writes it, by the names of fields.

    Raises TypeError for what is no value. What JSON in UTF-8 cannot hold stays: it is refused where it is printed.
    """
    try:
        if isinstance(value, Iterator):
            raise TypeError(f"{what} is a {type(value).__name__}, which can be read only once: make it a list.")
        return _sort_sets(value, to_jsonable_python(value, by_alias=False, bytes_mode="base64"))
    except PydanticSerializationError as error:
        raise TypeError(f"{what} is no JSON value. {str(error).partition(chr(10))[0]}.") from None
    except (RecursionError, ValueError):  # a lone surrogate, too many digits or levels
        try:
            return cast("Json", deepcopy(value))
        except RecursionError:
            raise ValueError(f"{what} has too many levels.") from None


def raw_form(value: object) -> Json:
    """The whole value, so that no part that was paid for is lost. Raises TypeError for what is no value, and secrets.

    It has all fields by their names, also those that their type leaves out. NaN and infinities are texts.
    """
    if isinstance(value, SecretStr | SecretBytes):
        raise TypeError("a secret is not stored")
    if isinstance(value, RootModel | Enum):
        return raw_form(value.root if isinstance(value, RootModel) else value.value)
    if (members := members_of(value)) is not None:
        return {name: raw_form(inner) for name, inner in members.items()}
    if isinstance(value, dict):
        return {_text_key(raw_form(key)): raw_form(inner) for key, inner in value.items()}
    if isinstance(value, float) and not isfinite(value):
        return {"nan": "NaN", "inf": "Infinity"}.get(str(value), "-Infinity")
    if not isinstance(value, ARRAYS):
        return json_leaf(value)
    items = [raw_form(inner) for inner in value]
    return sorted(items, key=_order) if isinstance(value, SETS) else items


def is_of_fields(value: object) -> bool:
    """Whether this is a model or a dataclass."""
    return isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type))


def members_of(value: object) -> dict[str, Any] | None:
    """The fields of a model, its extra members included, or of a dataclass; None for any other value."""
    if isinstance(value, BaseModel):
        own = value.__dict__
        return {**(value.model_extra or {}), **{name: own[name] for name in type(value).model_fields if name in own}}
    if is_of_fields(value):
        return {
            field.name: getattr(value, field.name) for field in fields(cast("Any", value)) if hasattr(value, field.name)
        }
    return None


def json_leaf(value: object) -> Json:
    """The JSON form of a value without members. Raises TypeError."""
    try:
        if not isinstance(value, Iterator):
            return _jsonable(value)
    except (PydanticUserError, ValueError, TypeError, RecursionError):
        pass
    raise TypeError(f"a {type(value).__name__} {NO_VALUE}")


def _jsonable(value: object) -> Json:
    try:
        return _sort_sets(value, to_jsonable_python(value, bytes_mode="base64"))
    except PydanticSerializationError:  # it is written only by its type: a pure path, a pattern
        return cast("Json", TypeAdapter[Any](type(value)).dump_python(value, mode="json"))


def _sort_sets(value: object, form: Json) -> Json:
    """Sorts, in the JSON form of a value, the lists that sets have become. Returns the form."""
    inner: Iterable[tuple[object, Json]] = ()
    if isinstance(form, dict) and isinstance(value, dict):
        inner = zip(value.values(), form.values(), strict=False)
    elif isinstance(form, list) and isinstance(value, ARRAYS):
        inner = zip(value, form, strict=False)
    elif isinstance(value, (RootModel, Enum)):
        return _sort_sets(value.root if isinstance(value, RootModel) else value.value, form)
    elif isinstance(form, dict) and is_of_fields(value):
        inner = ((getattr(value, name, None), member) for name, member in form.items())
    for member, member_form in inner:
        if isinstance(member_form, HOLDERS):  # a call for each leaf would take most of the time
            _sort_sets(member, member_form)
    if isinstance(form, list) and isinstance(value, SETS):
        form.sort(key=_order)
    return form


def _order(item: Json) -> tuple[bool, float, str]:
    """The place of an item of a set: numbers come first."""
    text = json.dumps(item, sort_keys=True)
    return (False, item, text) if isinstance(item, int | float) else (True, 0, text)


def _text_key(key: Json) -> str:
    """The name of a member, from the JSON form of a key."""
    return key if isinstance(key, str) else json.dumps(key)
