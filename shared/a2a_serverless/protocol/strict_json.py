"""Strict JSON and its limits: I-JSON (RFC 7493) of bounded size and depth comes in, compact UTF-8 goes out.

``Limits`` has every bound of the codecs, so that the bounds can be documented. This module refuses some values that
Python's reader accepts: NaN and infinities (also as ``1e999``), a name twice in one object (two readers of the same
bytes would see two requests), lone surrogates (UTF-8 cannot encode them), deep nesting. It also refuses integers that
other readers make infinite, or cannot read at all: Python's own stops at 4,300 digits. What agents give has the same
bounds (``check_numbers``, ``check_depth``), so that nothing is stored or sent that a reader refuses.
"""

from __future__ import annotations

import json
import math
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, cast

from pydantic_core import to_json

from a2a_serverless.domain.errors import InvalidRequest, ParseError
from a2a_serverless.protocol.error_codes import BodyTooLarge

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json, JsonObject


class Limits(NamedTuple):
    """Lengths are characters; those of ``ident`` (part of a key), ``body`` and ``metadata`` (as JSON) are UTF-8 bytes.

    A model that is validated with limits as its context comes from another party. Without a context it is our own:
    an agent's values and stored values are checked for their form and are not bounded.
    """

    body: int = 5_800_000  # 4 MiB in base64 and the members around it; Lambda accepts 6 MB
    values: int = 100_000  # of a whole body; each takes up to 200 bytes of memory when it is read
    depth: int = 56  # with the levels of an answer or a webhook around a message: 64, where many readers stop
    digits: int = 300  # of an integer, with its sign; the greatest double has 309
    parts: int = 256
    items: int = 64
    ident: int = 256
    name: int = 1024
    url: int = 2048
    secret: int = 4096
    metadata: int = 65_536
    violations: int = 16
    empties: bool = False  # whether a text, an id or a list may be empty where it is required


LIMITS: Final = Limits()
# For what is stored and only read here, by Python's reader and pydantic's.
STORED: Final = LIMITS._replace(depth=200, digits=4300)
# For the answers of other agents. A document of many chunks is one artifact with as many parts.
ANSWER_LIMITS: Final = Limits(
    body=16 * 1024 * 1024, values=1_000_000, depth=64, parts=100_000, items=10_000, metadata=1024 * 1024, empties=True
)


def loads(body: bytes, limits: Limits = LIMITS, name: str = "The body") -> Json:
    """The JSON value of a body. Raises ParseError, or InvalidRequest for a body that is too large or too deep.

    The errors call it ``name``.

    Values (each object, list, text, number, true, false and null) are counted before any of them is made.
    """
    if len(body) > limits.body:
        raise BodyTooLarge(f"{name} has {len(body)} bytes; at most {limits.body} are allowed.")
    if body.count(b",") + body.count(b"[") + body.count(b"{") >= limits.values and _holds_more(body, limits.values):
        raise BodyTooLarge(f"{name} has more than {limits.values} JSON values, which are the most that are allowed.")
    try:
        check_depth(body, limits.depth)
    except BadJson:
        raise InvalidRequest(f"{name} is nested too deep; at most {limits.depth} levels are allowed.") from None
    try:
        value = cast("Json", _DECODER.decode(body.decode()))
    except UnicodeDecodeError:
        raise ParseError(f"{name} is not UTF-8.") from None
    except ValueError as error:
        raise ParseError(f"{name} is not valid JSON: {_reason(error)}.") from None
    # A lone surrogate can come from an escape only. An escape can come from the bytes of the body only.
    if b"\\ud" in body or b"\\uD" in body:
        try:
            dumps(value)
        except UnicodeEncodeError:
            raise ParseError(f"{name} is not valid JSON: it contains a lone surrogate.") from None
    return value


def dumps(value: Json) -> bytes:
    """The value as compact UTF-8."""
    return _ENCODER.encode(value).encode()


def check_numbers(content: bytes, digits: int = LIMITS.digits) -> None:
    """Raises BadJson if JSON that was printed here has NaN, an infinity or an integer with more than ``digits``."""
    has_constant = b"NaN" in content or b"Infinity" in content
    if not has_constant and b"0" * (digits + 1) not in content.translate(_DIGITS):
        return
    bare = _outside_texts(content)
    if name := next((name for name in (b"NaN", b"-Infinity", b"Infinity") if name in bare), b""):
        _refuse_constant(name.decode())
    if b"0" * (digits + 1) in bare.translate(_DIGITS):
        raise BadJson(_too_long(digits))


def check_depth(content: bytes, depth: int) -> None:
    """Raises BadJson if JSON has more than ``depth`` levels."""
    if content.count(b"{") + content.count(b"[") > depth:
        brackets = _outside_texts(content).translate(None, _NO_BRACKETS)
        if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > depth:
            raise _too_deep(depth)


def dump_storable(value: object) -> str:
    """Compact JSON in ASCII, for what is stored and only read here.

    Raises TypeError or ValueError for what is no JSON value, and BadJson for what could not be read back (``STORED``).
    """
    try:
        text = _ASCII_ENCODER.encode(value)
    except RecursionError:
        raise _too_deep(STORED.depth) from None
    except ValueError:
        check_numbers(to_json(value, inf_nan_mode="null"), STORED.digits)  # Python prints no integer of so many digits
        raise
    check_numbers(text.encode(), STORED.digits)
    check_depth(text.encode(), STORED.depth)
    return text


def _outside_texts(body: bytes) -> bytes:
    """JSON with ``"`` in place of each text. Without escapes, each quote begins or ends a text or a name."""
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b'"'.join(plain.split(b'"')[::2])


def _holds_more(body: bytes, limit: int) -> bool:
    """Whether a body that is JSON has more than ``limit`` values: each but the first follows a comma or a bracket."""
    if body.replace(b"\\\\", b"").replace(b'\\"', b"").count(b'"') > 4 * limit:
        return True
    bare = _outside_texts(body).translate(None, b" \t\r\n")
    empty = bare.count(b"[]") + bare.count(b"{}")
    return 1 + bare.count(b",") + bare.count(b"[") + bare.count(b"{") - empty > limit


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    return str(error)


class BadJson(ValueError):
    """Valid grammar, but refused here. The text names the rule, and no content."""


def unique(pairs: list[tuple[str, Json]]) -> JsonObject:
    """An object of these members; raises ValueError for a name that is there twice."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise BadJson("an object has the same name twice")
    return values


def _refuse_constant(name: str) -> NoReturn:
    raise BadJson(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise BadJson("a number is too large")
    return number


def _bounded(text: str) -> int:
    if len(text) > LIMITS.digits:
        raise BadJson(_too_long(LIMITS.digits))
    return int(text)


def _too_deep(depth: int) -> BadJson:
    return BadJson(f"it has more than {depth} levels")


def _too_long(digits: int) -> str:
    return f"an integer has more than {digits} digits"


_DIGITS: Final = bytes(ord("0" if chr(byte) in "-0123456789" else " ") for byte in range(256))
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS: Final = bytes(set(range(256)) - _STEPS.keys())
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=unique, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_bounded
)
_ASCII_ENCODER: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
