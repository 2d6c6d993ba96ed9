"""ProtoJSON as pydantic types: how the objects of every version are read, bounded, refused and printed.

Lenient on input, like readers generated from the proto: lowerCamelCase or snake_case names, null and the empty string
for "absent", enums by name or number, integers and booleans as strings, base64 in both alphabets, timestamps with any
offset. Unknown members are ignored (specification 5.7). Exact on output: camelCase, enum names, and no member that is
at its default. Times are whole milliseconds since the epoch inside, ISO 8601 in UTC on the wire (5.6.1).

A model is validated with ``Limits``, which bound its contents. Without them only the form is checked. A refusal names
every mistake of a request, from pydantic's errors.
"""

from __future__ import annotations

import binascii
import json
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, TypeVar, cast
from urllib.parse import unquote_to_bytes

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError, to_json

from a2a_serverless.domain.errors import FieldViolation, InvalidAgentResponse, InvalidParams
from a2a_serverless.protocol.strict_json import ANSWER_LIMITS, LIMITS, Limits, check_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic_core import ErrorDetails

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - printing appends the Z itself
_HTTP_DATE: Final = "%a, %d %b %Y %H:%M:%S GMT"
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)


def timestamp_text(at: int) -> str:
    """``2026-05-28T09:30:00.000Z``."""
    return (_EPOCH + timedelta(milliseconds=at)).isoformat(timespec="milliseconds") + "Z"


def read_timestamp(text: str) -> int:
    """Milliseconds, cut off below; without a zone it is UTC (0.3 examples lack it). Raises ValueError."""
    match = _MOMENT.fullmatch(text)
    if not match:
        raise ValueError("not a timestamp")
    date, clock, fraction, zone = match.groups()
    moment = datetime.fromisoformat(f"{date}T{clock}{'+00:00' if zone in {None, 'Z', 'z'} else zone}")
    try:
        whole = (moment.astimezone(UTC).replace(tzinfo=None) - _EPOCH) // timedelta(seconds=1)
    except OverflowError:
        raise ValueError("not a timestamp") from None
    return whole * 1000 + int((fraction or "").ljust(3, "0")[:3])


def read_http_date(text: str) -> int:
    """Milliseconds of a date in an HTTP header (RFC 9110, 5.6.7), in its preferred form. Raises ValueError."""
    return (datetime.strptime(text, _HTTP_DATE) - _EPOCH) // timedelta(milliseconds=1)  # noqa: DTZ007 - as _EPOCH


T = TypeVar("T")

INT32_MAX: Final = 2**31 - 1
_SLICE: Final = 256
_REPLACEMENT: Final = "\ufffd".encode()
_INTEGER: Final = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_URL_SAFE: Final = str.maketrans("-_", "+/")
_BOOLEANS: Final = {"true": True, "false": False, "": None}


class ProtoModel(BaseModel):
    """A message of the proto. Instances do not change."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="ignore",
        frozen=True,
        defer_build=True,
        hide_input_in_errors=True,
        ser_json_inf_nan="constants",
    )

    def json_bytes(self) -> bytes:
        """The message as compact JSON, without the members that are at their defaults."""
        return self.__pydantic_serializer__.to_json(self, by_alias=True, exclude_defaults=True)


def as_json(model: ProtoModel) -> dict[str, Any]:
    """The message as JSON values, as ``json_bytes`` prints them."""
    return model.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def printed(model: ProtoModel) -> bytes:
    """``json_bytes``. Raises ValueError for what readers of JSON in UTF-8 refuse.

    That is a lone surrogate, another object, and BadJson for NaN and for an integer that is too long. Everything that
    is stored has passed this check, so that a reader need not repeat it.
    """
    content = model.json_bytes()
    check_numbers(content)
    if _REPLACEMENT in content:  # pydantic prints it for a lone surrogate in a name
        json.dumps(model.model_dump(by_alias=True, exclude_defaults=True), ensure_ascii=False).encode()
    return content


def violation(description: str) -> PydanticCustomError:
    """The error that a validator raises. The description tells the valid values, and never repeats the sent one."""
    return PydanticCustomError("violation", "{description}", {"description": description})


def is_ident(value: str, limit: int) -> bool:
    """Whether the text is printable and has 1 to ``limit`` bytes."""
    return 0 < len(value) <= limit and value.isprintable() and (value.isascii() or len(value.encode()) <= limit)


def whole(low: int = 0, high: int = INT32_MAX) -> PlainValidator:
    """An integer from ``low`` to ``high``, also as a string; None when it is absent."""

    def read(value: object) -> int | None:
        if value is None or value == "":
            return None
        number = _integer(value)
        if number is None or not low <= number <= high:
            raise violation(f"must be an integer from {low} to {high}")
        return number

    return PlainValidator(read)


def choice(table: Mapping[str, T], by_number: Sequence[T] = ()) -> PlainValidator:
    """One of the table's values, by its name or its number (from 1); a value of the table stays as it is."""

    def read(value: object) -> T:
        if value is None or value == "":
            raise violation("is required")
        if type(value) is int and 0 < value <= len(by_number):
            return by_number[value - 1]
        member = table.get(value) if type(value) is str else value
        if member is None or not isinstance(member, str):
            raise violation("must be one of " + ", ".join(table))
        return cast("T", member)

    return PlainValidator(read)


def proto_enum(table: Mapping[str, T]) -> tuple[PlainValidator, PlainSerializer, WithJsonSchema]:
    """An enum of the proto without "unspecified", its zero: read by name or number (from 1), printed by name."""
    names = {member: name for name, member in table.items()}
    schema = WithJsonSchema({"type": "string", "enum": [*table]})
    return choice(table, [*names]), PlainSerializer(names.__getitem__, return_type=str), schema


def always(value: str) -> PlainValidator:
    """A member with the same value whatever the peer sends: the ``kind`` of an object whose kind is known."""
    return PlainValidator(lambda _: value, json_schema_input_type=Literal[value])


def _refuses_empties(info: ValidationInfo) -> bool:
    return info.context is not None and not info.context.empties


def text(limit: str, *, required: bool = False, empty: str | None = None) -> PlainValidator:
    """A string with at most as many characters as the limit of that name; an empty string becomes ``empty``."""

    def read(value: object, info: ValidationInfo) -> str | None:
        if value is None or value == "":
            if required and (value is None or _refuses_empties(info)):
                raise violation("is required")
            return None if value is None else empty
        if not isinstance(value, str):
            raise violation("must be a string")
        if info.context and len(value) > (most := getattr(info.context, limit)):
            raise violation(f"must have at most {most} characters")
        return value

    return PlainValidator(read)


def items(limit: str, *, if_empty: str = "") -> WrapValidator:
    """A list with at most as many items as the limit of that name; null is the empty list.

    ``if_empty`` is the text of the error with which an empty list from a peer is refused; "" accepts an empty list.

    A long list is read in slices, and refused at the first slice with a wrong item: a peer may send millions of wrong
    items, and pydantic stores an error for each.
    """

    def read(value: object, read_all: Callable[[object], tuple[T, ...]], info: ValidationInfo) -> tuple[T, ...]:
        if if_empty and _refuses_empties(info) and (value is None or value == []):
            raise violation(if_empty)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or (info.context and len(value) > getattr(info.context, limit)):
            raise violation(f"must be a list of at most {getattr(info.context or LIMITS, limit)}")
        return read_all(value) if len(value) <= _SLICE else _in_slices(value, read_all)

    return WrapValidator(read)


def _in_slices(values: Sequence[object], read_all: Callable[[object], tuple[T, ...]]) -> tuple[T, ...]:
    results: list[T] = []
    for at in range(0, len(values), _SLICE):
        try:
            results.extend(read_all(values[at : at + _SLICE]))
        except ValidationError:
            raise violation(f"has a wrong item among the {_SLICE} from number {at + 1}") from None
    return tuple(results)


def _ident(empty: str | None = None, *, required: bool = False) -> PlainValidator:
    """A string that may be part of a key; ``empty`` if it is absent or empty."""

    def read(value: object, info: ValidationInfo) -> str | None:
        if value is None or value == "":
            if required and (value is None or _refuses_empties(info)):
                raise violation("is required")
            return empty
        if isinstance(value, str) and (info.context is None or is_ident(value, info.context.ident)):
            return value
        most = (info.context or LIMITS).ident
        raise violation(f"must be a string of 1 to {most} bytes without control characters")

    return PlainValidator(read)


def _name(value: object, info: ValidationInfo) -> str:
    if isinstance(value, str) and (info.context is None or is_ident(value, info.context.name)):
        return value
    raise violation(f"must be a string of 1 to {(info.context or LIMITS).name} bytes")


def _integer(value: object) -> int | None:
    if isinstance(value, str):
        return int(value) if _INTEGER.fullmatch(value) else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _flag(absent: bool | None) -> PlainValidator:  # noqa: FBT001 - the value of a flag
    def read(value: object) -> bool | None:
        if isinstance(value, str):
            value = _BOOLEANS.get(value, value)
        if value is None or isinstance(value, bool):
            return absent if value is None else value
        raise violation("must be true or false")

    return PlainValidator(read)


def _moment(value: object, info: ValidationInfo) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, int) and info.context is None:
        return value
    try:
        return read_timestamp(value if isinstance(value, str) else "")
    except ValueError:
        raise violation("must be a timestamp such as 2026-05-28T09:30:00.000Z") from None


def _base64(value: object, info: ValidationInfo) -> str | None:
    """Base64 in the standard alphabet with padding, from either alphabet."""
    if value is None or (isinstance(value, str) and info.context is None):
        return value
    if isinstance(value, str):
        with suppress(ValueError):
            return _standard_base64(value)
    raise violation("must be base64")


def _standard_base64(value: str) -> str:
    bare = value.translate(_URL_SAFE).rstrip("=")
    standard = bare + "=" * (-len(bare) % 4)
    binascii.a2b_base64(standard, strict_mode=True)
    return standard


def is_data_uri(url: str) -> bool:
    """Whether the URL is a ``data:`` URI, which has its content in itself (RFC 2397)."""
    return url[:5].lower() == "data:"


def read_data_uri(uri: str) -> tuple[str, str]:
    """The media type of a ``data:`` URI, and its content in base64. Raises ValueError."""
    about, comma, content = uri[5:].partition(",")
    media_type, _, last = about.rpartition(";")
    octets = unquote_to_bytes(content)
    if ";" in about and last.strip().lower() == "base64":
        in_base64 = _standard_base64(b"".join(octets.split()).decode("ascii"))
    else:
        media_type, in_base64 = about, binascii.b2a_base64(octets, newline=False).decode()
    media_type = f"text/plain{media_type}" if media_type.strip().partition(";")[0] == "" else media_type
    if not comma or len(media_type) > LIMITS.ident:
        raise ValueError("no media type and content")
    return media_type.strip(), in_base64


def _url(value: object, info: ValidationInfo) -> str | None:
    """A URL. A ``data:`` URI has content, which the body's limit bounds, as it does for ``raw``."""
    if not isinstance(value, str) or not is_data_uri(value):
        return cast("str | None", _READ_URL(value, info))
    try:
        read_data_uri(value)
    except ValueError:
        raise violation("must be a data: URI of RFC 2397: data:text/plain,hello or data:image/png;base64,...") from None
    return value


def _metadata(value: object, info: ValidationInfo) -> dict[str, Any] | None:
    if value is not None and not isinstance(value, dict):
        raise violation("must be an object")
    if value and info.context and len(to_json(value)) > info.context.metadata:
        raise violation(f"must have at most {info.context.metadata} bytes")
    return value


OR_EMPTY: Final = BeforeValidator(lambda value: {} if value is None else value)  # null is the empty object


def _string(**bounds: int) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", **bounds})


_READ_URL: Final[Any] = text("url", empty="").func
_INTEGER_SCHEMA: Final = {"type": "integer", "minimum": 0}
_BOOLEAN: Final = WithJsonSchema({"type": "boolean"})
_OBJECT: Final = WithJsonSchema({"type": "object"})

Ident: TypeAlias = Annotated[str, _ident("", required=True), _string(minLength=1, maxLength=LIMITS.ident)]
OptionalIdent: TypeAlias = Annotated[str | None, _ident(), _string(maxLength=LIMITS.ident)]
EmptyIdent: TypeAlias = Annotated[str, _ident(""), _string(maxLength=LIMITS.ident)]
Name: TypeAlias = Annotated[str, PlainValidator(_name), _string(minLength=1, maxLength=LIMITS.name)]
Names: TypeAlias = Annotated[tuple[Name, ...], items("items")]
ShortText: TypeAlias = Annotated[str | None, text("name"), _string(maxLength=LIMITS.name)]
RequiredText: TypeAlias = Annotated[
    str, text("name", required=True, empty=""), _string(minLength=1, maxLength=LIMITS.name)
]
MediaType: TypeAlias = Annotated[str | None, text("ident"), _string(maxLength=LIMITS.ident)]
LongText: TypeAlias = Annotated[str | None, text("body"), _string()]
Url: TypeAlias = Annotated[str | None, PlainValidator(_url), _string()]
RequiredUrl: TypeAlias = Annotated[
    str, text("url", required=True, empty=""), _string(minLength=1, maxLength=LIMITS.url)
]
Secret: TypeAlias = Annotated[str | None, text("secret"), _string(maxLength=LIMITS.secret)]
Base64: TypeAlias = Annotated[str | None, PlainValidator(_base64), WithJsonSchema({"type": "string", "format": "byte"})]
Metadata: TypeAlias = Annotated[dict[str, Any] | None, PlainValidator(_metadata), _OBJECT]
Count: TypeAlias = Annotated[int | None, whole(), WithJsonSchema(_INTEGER_SCHEMA)]
Flag: TypeAlias = Annotated[bool, _flag(absent=False), _BOOLEAN]
OptionalFlag: TypeAlias = Annotated[bool | None, _flag(absent=None), _BOOLEAN]
_DATE_TIME: Final = WithJsonSchema({"type": "string", "format": "date-time"})
Timestamp: TypeAlias = Annotated[
    int | None,
    PlainValidator(_moment),
    PlainSerializer(lambda at: None if at is None else timestamp_text(at), when_used="json"),
    _DATE_TIME,
]
KnownTimestamp: TypeAlias = Annotated[
    int,
    PlainValidator(lambda value, info: _moment(value, info) or 0),
    PlainSerializer(timestamp_text, when_used="json"),
    _DATE_TIME,
]


M = TypeVar("M", bound=BaseModel)

_DESCRIPTIONS: Final = {
    "missing": "is required",
    "string_type": "must be a string",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "tuple_type": "must be a list",
    "extra_forbidden": "is not known",
}
_NEEDS_PARTS: Final = frozenset({"parts", "content"})


def read_model(model: type[M], value: object, limits: Limits = LIMITS) -> M:
    """Reads a JSON value as the model. Raises InvalidParams with every violation."""
    if not isinstance(value, dict):
        raise InvalidParams("The parameters must be an object.")
    try:
        return model.model_validate(value, context=limits)
    except ValidationError as error:
        raise InvalidParams(violations=violations(error, limits)) from None


def read_peer(model: type[M], value: object) -> M:
    """Reads an answer of this project's own servers as the model. Raises InvalidAgentResponse."""
    try:
        return read_model(model, value, ANSWER_LIMITS)
    except InvalidParams as error:
        raise InvalidAgentResponse(f"The other agent's answer is invalid: {error}") from error


def violations(error: ValidationError, limits: Limits) -> tuple[FieldViolation, ...]:
    """The violations, each with its path as the client wrote it, as many as the limits allow."""
    errors = error.errors(include_url=False)[: limits.violations]
    return tuple(
        FieldViolation(path_of(details["loc"]) + _below_path(details), describe(details)) for details in errors
    )


def path_of(loc: tuple[int | str, ...]) -> str:
    """``message.parts[0].raw``. The tag of a union (``@text``) is no part of a path."""
    path = ""
    for name in _names_in(loc):
        path += f"[{name}]" if isinstance(name, int) else f".{name}" if path else name
    return path


def _names_in(loc: tuple[int | str, ...]) -> list[int | str]:
    return [name for name in loc if isinstance(name, int) or not name.startswith("@")] or [""]


def describe(details: ErrorDetails) -> str:
    """The text of a violation: which values would be valid."""
    kind, value, name = details["type"], details["input"], _names_in(details["loc"])[-1]
    if kind == "missing" and name in _NEEDS_PARTS:
        return "must hold at least one part"
    if kind == "missing" or (value is None and kind != "violation" and isinstance(name, str)):
        return "is required"
    if kind == "enum":
        if value == "":
            return "is required"
        return "must be one of " + str(details["ctx"]["expected"]).replace("'", "").replace(" or ", ", ")
    return _DESCRIPTIONS.get(kind, details["msg"])


def _below_path(details: Any) -> str:  # noqa: ANN401 - ErrorDetails
    if details["type"] == "item_kind":
        return "kind"
    return ".kind" if details["type"] == "part_kind" else ""
