"""The results of steps as JSON values, by the types that pydantic knows, or that a function's annotation names."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from functools import partial
from inspect import isroutine
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.model import Json

T = TypeVar("T")
PLAIN: Final = (None, "None", bool, "bool", bytes, "bytes", float, "float", int, "int", str, "str")
"""Annotations that need no codec: nothing of them has to be resolved for each step."""
_CONFIG: Final = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")


class TypeCodec(Generic[T]):
    """Stores values of a type that pydantic knows: bytes, dates, dataclasses, models, unions and lists of them.

    Bytes are stored as base64, except in models, whose own configuration counts.
    """

    def __init__(self, kind: type[T] | Any) -> None:  # noqa: ANN401 - a union is no type
        self._adapter = _adapter(kind)

    def dump(self, value: T) -> Json:
        """The JSON value; raises ValueError for a value of another type."""
        return cast("Json", json.loads(self._adapter.dump_json(value, warnings="error")))

    def load(self, stored: Json) -> T:
        """The value; raises ValueError if it does not have the type any more."""
        value: T = self._adapter.validate_json(json.dumps(stored))
        return value


def _adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - any type
    try:
        return TypeAdapter(kind, config=_CONFIG)
    except PydanticUserError:  # a model has its own configuration
        return TypeAdapter(kind)


class ResultCodec(TypeCodec[T]):
    """Stores results of the type that a function's annotation names."""


def codec_for(work: Callable[..., object]) -> ResultCodec[Any] | None:
    """The codec for the result of ``work``, if ``work`` is a model or a dataclass, or its annotation names one."""
    inner: Any = work
    while inner:
        work, inner = inner, inner.func if isinstance(inner, partial) else getattr(inner, "__wrapped__", None)
    kind = work if isinstance(work, type) else _return_type(work)
    try:
        return ResultCodec(kind) if _has_fields(kind) else None
    except PydanticUserError:  # a field of a type that pydantic does not know
        return None


def _return_type(work: Any) -> Any:  # noqa: ANN401 - any callable, any type
    function = work if isroutine(work) else type(work).__call__
    if getattr(function, "__annotations__", {}).get("return") in PLAIN:
        return None
    try:
        return get_type_hints(function).get("return")
    except (AttributeError, NameError, TypeError):  # no annotation, or a name for the type checker only
        return None


def _has_fields(kind: Any) -> bool:  # noqa: ANN401 - any type
    if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, BaseModel)):
        return True
    return any(_has_fields(argument) for argument in get_args(kind))
