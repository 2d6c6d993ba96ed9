"""Strict JSON and its limits: I-JSON (RFC 7493) of bounded size and depth comes in, compact UTF-8 goes out.

``Limits`` has every bound of the codecs, so that the bounds can be documented. This module refuses some values that
Python's reader accepts: NaN and infinities (also as ``1e999``), a name twice in one object (two readers of the same
bytes would see two requests), lone surrogates (UTF-8 cannot encode them), deep nesting.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, cast

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
    depth: int = 64
    parts: int = 256
    items: int = 64
    ident: int = 256
    name: int = 1024
    url: int = 2048
    secret: int = 4096
    metadata: int = 65_536
    violations: int = 16


LIMITS: Final = Limits()
# For the answers of other agents. A document of many chunks is one artifact with as many parts.
ANSWER_LIMITS: Final = Limits(
    body=16 * 1024 * 1024, values=1_000_000, parts=100_000, items=10_000, metadata=1024 * 1024
)


def loads(body: bytes, limits: Limits = LIMITS) -> Json:
    """The JSON value of a body. Raises ParseError, or InvalidRequest for a body that is too large or too deep.

    Values (each object, list, text, number, true, false and null) are counted before any of them is made.
    """
    if len(body) > limits.body:
        raise BodyTooLarge(f"The body has {len(body)} bytes; at most {limits.body} are allowed.")
    if body.count(b",") + body.count(b"[") + body.count(b"{") >= limits.values and _holds_more(body, limits.values):
        raise BodyTooLarge(f"The body has more than {limits.values} JSON values, which are the most that are allowed.")
    try:
        value = cast("Json", _DECODER.decode(body.decode()))
    except UnicodeDecodeError:
        raise ParseError("The body is not UTF-8.") from None
    except ValueError as error:
        raise ParseError(f"The body is not valid JSON: {_reason(error)}.") from None
    except RecursionError:
        raise _too_deep(limits) from None
    # A body with few brackets cannot be deep: only other bodies are walked.
    if body.count(b"{") + body.count(b"[") > limits.depth and _deeper(value, limits.depth):
        raise _too_deep(limits)
    # A lone surrogate can come from an escape only. An escape can come from the bytes of the body only.
    if b"\\ud" in body or b"\\uD" in body:
        try:
            dumps(value)
        except UnicodeEncodeError:
            raise ParseError("The body is not valid JSON: it contains a lone surrogate.") from None
    return value


def dumps(value: Json) -> bytes:
    """The value as compact UTF-8."""
    return _ENCODER.encode(value).encode()


def _holds_more(body: bytes, limit: int) -> bool:
    """Whether a body that is JSON has more than ``limit`` values.

    Each value but the first follows a comma or a bracket. Without escapes, each quote begins or ends a text or a name.
    """
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 4 * limit:
        return True
    bare = b'"'.join(plain.split(b'"')[::2]).translate(None, b" \t\r\n")
    empty = bare.count(b"[]") + bare.count(b"{}")
    return 1 + bare.count(b",") + bare.count(b"[") + bare.count(b"{") - empty > limit


def _deeper(value: Json, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [child for node in level for child in _children(node)]
        if not any(isinstance(node, (dict, list)) for node in level):
            return False
    return True


def _children(node: Json) -> list[Json]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []


def _too_deep(limits: Limits) -> InvalidRequest:
    return InvalidRequest(f"The body is nested too deep; at most {limits.depth} levels are allowed.")


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    return str(error) if isinstance(error, _BadJson) else "a number is too long"


class _BadJson(ValueError):
    """Valid grammar, but refused here."""


def unique(pairs: list[tuple[str, Json]]) -> JsonObject:
    """An object of these members; raises ValueError for a name that is there twice."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise _BadJson("an object has the same name twice")
    return values


def _refuse_constant(name: str) -> NoReturn:
    raise _BadJson(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _BadJson("a number is too large")
    return number


_DECODER: Final = json.JSONDecoder(object_pairs_hook=unique, parse_constant=_refuse_constant, parse_float=_finite)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
