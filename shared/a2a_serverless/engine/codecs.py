"""Codecs for the results of steps (``domain.agent.Codec``)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from pydantic import ConfigDict, PydanticUserError, TypeAdapter

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json

T = TypeVar("T")
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
        """The value; raises ValueError when it does not have the type any more."""
        value: T = self._adapter.validate_json(json.dumps(stored))
        return value


def _adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - any type
    try:
        return TypeAdapter(kind, config=_CONFIG)
    except PydanticUserError:  # a model has its own configuration
        return TypeAdapter(kind)
