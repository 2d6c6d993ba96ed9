"""The results of steps as JSON values, by the types that pydantic knows, or that a function's annotation names.

What is stored is written and read by the same rule: by the names of fields, never by their aliases.
"""

from __future__ import annotations

import json
import types
from collections.abc import AsyncIterable, Awaitable, Coroutine, Iterable
from dataclasses import is_dataclass
from enum import Enum
from functools import lru_cache, partial
from inspect import isabstract, isroutine
from types import SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, PydanticUserError, SecretBytes, SecretStr, TypeAdapter

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.model import Json

T = TypeVar("T")
PLAIN: Final = (None, "None", bool, "bool", float, "float", int, "int", str, "str")
"""Annotations that need no codec: nothing of them has to be resolved for each step."""
JSON_TYPES: Final = (bool, int, float, str, list, dict)
_CONFIG: Final = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="strings")
_UNREADABLE: Final = {
    "callable": "is a function",
    "generator": "is an iterator, which can be read once: make it a list",
    "is-instance": "has a type that pydantic does not know",
    "is-subclass": "is a class",
}


class TypeCodec(Generic[T]):
    """Stores values of a type that pydantic knows: bytes, dates, dataclasses, models, unions and lists of them.

    They are written and read by the names of fields, not by aliases. Bytes are stored as base64, and NaN and infinities
    as texts, except in models, whose own configuration counts. ``refusal`` says why no value of the type can be stored
    whole; it is empty for any other type.
    """

    def __init__(self, kind: type[T] | Any) -> None:  # noqa: ANN401 - a union is no type
        self._adapter, self.refusal = _adapter(kind)

    def dump(self, value: T) -> Json:
        """The JSON value; raises ValueError for a value of another type."""
        text = self._adapter.dump_json(value, by_alias=False, round_trip=True, warnings="error")
        return cast("Json", json.loads(text))

    def load(self, stored: Json) -> T:
        """The value; raises ValueError if it does not have the type any more."""
        value: T = self._adapter.validate_json(json.dumps(stored), by_alias=False, by_name=True)
        return value


class ResultCodec(TypeCodec[T]):
    """Stores results of the type that a function's annotation names."""


def _adapter(kind: Any) -> tuple[TypeAdapter[Any], str]:  # noqa: ANN401 - any type
    """The adapter of a type, and why no value of it can be stored whole."""
    try:
        return _cached_adapter(kind, str(kind))
    except TypeError:  # not hashable
        return _make_adapter(kind)


def _make_adapter(kind: Any) -> tuple[TypeAdapter[Any], str]:  # noqa: ANN401 - any type
    try:
        adapter = TypeAdapter[Any](kind, config=_CONFIG)
    except PydanticUserError:  # a model has its own configuration
        adapter = TypeAdapter[Any](kind)
    return adapter, _refusal(adapter.core_schema, "")


@lru_cache(maxsize=512)
def _cached_adapter(kind: Any, text: str) -> tuple[TypeAdapter[Any], str]:  # noqa: ANN401 - any type
    del text  # `A | B` equals `B | A`, but of a value that fits both, pydantic reads the first
    return _make_adapter(kind)


def _refusal(schema: Any, path: str) -> str:  # noqa: ANN401 - a part of a core schema
    """The first part of a schema whose values are not stored whole or cannot be read back; "" if there is none.

    Types with a function of their author that writes them count as readable.
    """
    if isinstance(schema, list):
        return next(filter(None, (_refusal(one, path) for one in schema)), "")
    kind = schema.get("type")
    if kind in _UNREADABLE and "serialization" not in schema:
        return f"{path or 'it'} {_UNREADABLE[kind]}"
    function = (schema.get("function") or {}).get("function") if kind == "function-after" else None
    if isinstance(function, type) and issubclass(function, SecretStr | SecretBytes):
        return f"{path or 'it'} is a secret, and results are stored"
    if kind in {"model", "dataclass", "typed-dict"} and (cls := schema.get("cls")):
        path = cls.__name__
    fields = schema.get("fields") if kind in {"model-fields", "dataclass-args", "typed-dict"} else None
    for name, one in _named(fields or ()):
        if one.get("serialization_exclude"):
            return f"{path}.{name} is left out when it is written (exclude=True)"
        if refusal := _refusal(one["schema"], f"{path}.{name}"):
            return refusal
    return _refusal([one for name in _INNER for one in _schemas_in(schema.get(name))], path)


_INNER: Final = (
    *("schema", "items_schema", "keys_schema", "values_schema", "extras_schema", "json_schema", "lax_schema"),
    *("definitions", "choices", "steps"),
)


def _schemas_in(value: Any) -> list[Any]:  # noqa: ANN401 - of a core schema
    """The schemas in a member of a schema: itself, or those in a list, in pairs with labels, or by tags."""
    if isinstance(value, dict):
        return [value] if "type" in value else [*value.values()]
    return [one[0] if isinstance(one, tuple) else one for one in value or ()]


def _named(fields: Any) -> list[tuple[str, Any]]:  # noqa: ANN401 - of a core schema
    return [*fields.items()] if isinstance(fields, dict) else [(one["name"], one) for one in fields]


def codec_for(work: Callable[..., object]) -> ResultCodec[Any] | str | None:
    """The codec for the result of ``work``, if its annotation names a type that needs one, or ``work`` is that type.

    A text if pydantic does not know the type: it says why no result can be stored.
    """
    inner: Any = work
    while inner:
        work, inner = inner, inner.func if isinstance(inner, partial) else getattr(inner, "__wrapped__", None)
    if isinstance(work, type):
        return codec_of(work)
    function: Any = work if isroutine(work) else type(work).__call__
    function = getattr(function, "__func__", function)
    if getattr(function, "__annotations__", {}).get("return") in PLAIN:
        return None
    try:
        return _codecs[function]
    except KeyError:
        codec = _codecs[function] = codec_of(_return_type(function))
        return codec
    except TypeError:  # no weak reference to it
        return codec_of(_return_type(function))


_codecs: Final = WeakKeyDictionary[Any, "ResultCodec[Any] | str | None"]()


def codec_of(kind: Any) -> ResultCodec[Any] | str | None:  # noqa: ANN401 - any type
    """The codec for values of a type, as ``codec_for``."""
    if not _needs_codec(kind):
        return None
    try:
        return ResultCodec(kind)
    except PydanticUserError as unknown:
        return str(unknown).partition("\n")[0].rstrip(".")


def _return_type(function: Any) -> Any:  # noqa: ANN401 - any callable, any type
    """What ``function`` returns, or what the awaitable that it returns gives."""
    try:
        own = {"return": function.__annotations__["return"]}
        namespace: Any = SimpleNamespace(__annotations__=own, __globals__=getattr(function, "__globals__", {}))
        kind = get_type_hints(namespace, include_extras=True)["return"]
    except (AttributeError, KeyError, NameError, TypeError):  # no annotation, or a name for the type checker only
        return None
    return get_args(kind)[-1] if get_origin(kind) in {Awaitable, Coroutine} and get_args(kind) else kind


def _needs_codec(kind: Any) -> bool:  # noqa: ANN401 - any type
    """Whether values of this type are no JSON values, or would be read back as values of another type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return not all(isinstance(one, JSON_TYPES) or one is None for one in arguments)
    if origin is Annotated:
        return _needs_codec(arguments[0])
    if origin in {Union, types.UnionType} or (isinstance(origin, type) and _is_json(origin)):
        return any(map(_needs_codec, arguments))
    if isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__total__"):  # a TypedDict
        return any(map(_needs_codec, get_type_hints(kind).values()))
    kind = origin or kind
    return isinstance(kind, type) and kind not in {types.NoneType, object, Any} and not _is_json(kind)


def _is_json(kind: type) -> bool:
    """Whether this is a type of JSON values, or one that says nothing of how its values are stored."""
    if issubclass(kind, BaseModel | Enum) or is_dataclass(kind):
        return False
    abstract = issubclass(kind, Iterable | AsyncIterable) and kind.__module__ == "collections.abc"
    return abstract or isabstract(kind) or issubclass(kind, JSON_TYPES) or getattr(kind, "_is_protocol", False)
