"""Reading a JSON object field by field, and finding everything that is wrong with it, not only the first thing.

Hand-written and not pydantic, whose import with models for four operations was measured at seven times the CPU of this
whole package and the domain together, in every cold start, for no gain in a warm one. What is taken is ProtoJSON:
lowerCamelCase or the proto's snake_case, null and the empty string for "absent", integers as strings, enums by name or
number. Unknown
fields are ignored (specification 5.7).

A getter that meets a wrong value notes a violation under the field's path (``message.parts[0].raw``) and gives a value
of the right type, so that a parser reads on without looking; ``read`` raises at the end.
"""

from __future__ import annotations

import binascii
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from a2a_serverless.domain.errors import FieldViolation, InvalidAgentResponse, InvalidParams
from a2a_serverless.protocol import timestamps
from a2a_serverless.protocol.strict_json import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.protocol.limits import Limits

T = TypeVar("T")

INT32_MAX: Final = 2**31 - 1
_URL_SAFE: Final = str.maketrans("-_", "+/")
_BOOLEANS: Final = {"true": True, "false": False}


class Fields:
    """One JSON object on its way in. ``at`` is its path in the request, "" at the top."""

    __slots__ = ("_at", "_found", "_snakes", "_values", "limits")

    def __init__(self, values: JsonObject, limits: Limits, found: list[FieldViolation], at: str = "") -> None:
        self._values = values
        self._snakes = "_" in "".join(values)
        self._found = found
        self._at = at
        self.limits = limits

    @property
    def at(self) -> str:
        """The object's path in the request, "" at the top."""
        return self._at

    def wrong(self, name: str, description: str) -> None:
        """Notes a violation of the field, or of the object itself when ``name`` is empty."""
        if len(self._found) < self.limits.violations:
            self._found.append(FieldViolation(self._path(name), description))

    def value(self, name: str) -> Json:
        """The field as it came; None when absent or null."""
        value = self._values.get(name)
        return self._values.get(snake(name)) if value is None and self._snakes else value

    def has(self, name: str) -> bool:
        """Whether the field is there, null included."""
        return name in self._values or snake(name) in self._values

    def text(self, name: str, limit: int | None = None) -> str | None:
        """A string of at most ``limit`` characters."""
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, str):
            self.wrong(name, "must be a string")
            return None
        if limit is not None and len(value) > limit:
            self.wrong(name, f"must have at most {limit} characters")
        return value

    def ident(self, name: str) -> str | None:
        """An identifier: printable, bounded; the empty string is "absent", as ProtoJSON has it."""
        value = self.value(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str) or not _is_ident(value, self.limits.ident):
            self.wrong(name, f"must be a string of 1 to {self.limits.ident} bytes without control characters")
            return None
        return value

    def need(self, value: T | None, name: str) -> T | None:
        """The value that was read from the field, which must be there. What is there but wrong was noted already."""
        if value is None and self.value(name) in (None, ""):
            self.wrong(name, "is required")
        return value

    def need_ident(self, name: str) -> str:
        """An identifier that must be there."""
        return self.need(self.ident(name), name) or ""

    def need_text(self, name: str, limit: int) -> str:
        """A string that must be there and not be empty."""
        return self.need(self.text(name, limit) or None, name) or ""

    def whole(self, name: str, low: int = 0, high: int = INT32_MAX) -> int | None:
        """An integer between ``low`` and ``high``, also as a string."""
        value = self.value(name)
        if value in (None, ""):
            return None
        number = _integer(value)
        if number is None or not low <= number <= high:
            self.wrong(name, f"must be an integer from {low} to {high}")
            return None
        return number

    def flag(self, name: str) -> bool | None:
        """A boolean; a query parameter spells it as a string."""
        value = self.value(name)
        if isinstance(value, str):
            value = _BOOLEANS.get(value, value or None)
        if value is None or isinstance(value, bool):
            return value
        self.wrong(name, "must be true or false")
        return None

    def choice(self, name: str, table: Mapping[Any, T]) -> T | None:
        """One of the table's values, by name or number."""
        value = self.value(name)
        if value in (None, ""):
            return None
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value in table:
            return table[value]
        self.wrong(name, "must be one of " + ", ".join(key for key in table if isinstance(key, str)))
        return None

    def moment(self, name: str) -> int | None:
        """A timestamp, in milliseconds."""
        value = self.value(name)
        if value in (None, ""):
            return None
        try:
            return timestamps.from_text(value if isinstance(value, str) else "")
        except ValueError:
            self.wrong(name, "must be a timestamp such as 2026-05-28T09:30:00.000Z")
            return None

    def base64(self, name: str) -> str:
        """Base64 in the standard alphabet with padding, whichever alphabet it came in."""
        value = self.value(name)
        try:
            return _standard_base64(value if isinstance(value, str) else "*")
        except ValueError:
            self.wrong(name, "must be base64")
            return ""

    def struct(self, name: str) -> JsonObject | None:
        """Any JSON object."""
        value = self.value(name)
        if value is None or isinstance(value, dict):
            return value
        self.wrong(name, "must be an object")
        return None

    def metadata(self) -> JsonObject | None:
        """The object's ``metadata``, of a bounded size."""
        value = self.struct("metadata")
        if value and len(dumps(value)) > self.limits.metadata:
            self.wrong("metadata", f"must have at most {self.limits.metadata} bytes")
        return value

    def strings(self, name: str) -> tuple[str, ...]:
        """A list of short strings."""
        values = self._list(name, self.limits.items)
        if not values:
            return ()
        for index, value in enumerate(values):
            if not isinstance(value, str) or not _is_ident(value, self.limits.name):
                self.wrong(f"{name}[{index}]", f"must be a string of 1 to {self.limits.name} bytes")
        return tuple(value for value in values if isinstance(value, str))

    def child(self, name: str) -> Fields | None:
        """An object inside this one."""
        value = self.struct(name)
        return None if value is None else Fields(value, self.limits, self._found, self._path(name))

    def children(self, name: str, limit: int) -> list[Fields]:
        """The objects of a list inside this one; anything else in it is wrong."""
        inside: list[Fields] = []
        for index, value in enumerate(self._list(name, limit)):
            if isinstance(value, dict):
                inside.append(Fields(value, self.limits, self._found, f"{self._path(name)}[{index}]"))
            else:
                self.wrong(f"{name}[{index}]", "must be an object")
        return inside

    def _list(self, name: str, limit: int) -> list[Json]:
        value = self.value(name)
        if value is None:
            return []
        if isinstance(value, list) and len(value) <= limit:
            return value
        self.wrong(name, f"must be a list of at most {limit}")
        return []

    def _path(self, name: str) -> str:
        return f"{self._at}.{name}" if self._at and name else self._at or name


def read(value: Json, limits: Limits, parse: Callable[[Fields], T]) -> T:
    """What ``parse`` makes of the object. Raises InvalidParams with every violation that it found."""
    if not isinstance(value, dict):
        raise InvalidParams("The parameters must be an object.")
    found: list[FieldViolation] = []
    result = parse(Fields(value, limits, found))
    if found:
        raise InvalidParams(violations=tuple(found))
    return result


def read_peer(value: Json, limits: Limits, parse: Callable[[Fields], T]) -> T:
    """What ``parse`` makes of another agent's answer. Raises InvalidAgentResponse: its fault, not our caller's."""
    try:
        return read(value, limits, parse)
    except InvalidParams as error:
        raise InvalidAgentResponse(f"The other agent's answer is invalid: {error}") from error


def _is_ident(value: str, limit: int) -> bool:
    return 0 < len(value) <= limit and value.isprintable() and (value.isascii() or len(value.encode()) <= limit)


def _integer(value: Json) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if len(value) <= 11 and re.fullmatch(r"-?[0-9]+", value) else None  # noqa: PLR2004 - int32
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _standard_base64(value: str) -> str:
    bare = value.translate(_URL_SAFE).rstrip("=")
    padded = bare + "=" * (-len(bare) % 4)
    binascii.a2b_base64(padded, strict_mode=True)
    return padded


@cache
def snake(name: str) -> str:
    """``messageId`` as the proto spells it: ``message_id``."""
    return re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), name)
