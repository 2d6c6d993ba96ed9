"""Parses only JSON that every parser reads the same way (RFC 8259 with the rules of RFC 7493).

It is dangerous when two parsers disagree on a signed text: of two equal names one takes the first and another the last,
and some accept ``NaN`` or a lone surrogate. So: UTF-8 without a byte order mark, no duplicate name in an object,
numbers in range, no lone surrogates, at most 64 levels.
"""

import json
import math
from typing import Never

MAX_DEPTH = 64
MAX_DIGITS = 300

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def parse(raw: bytes) -> Json:
    """The value of a JSON text. Raises ValueError that names the broken rule."""
    try:
        value: Json = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_refuse_duplicates,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_bounded,
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    _check(value)
    return value


def parse_object(raw: bytes) -> dict[str, Json]:
    """The object of a JSON text. Raises ValueError for anything else."""
    value = parse(raw)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - a caller handles one error for one bad text
    return value


def _refuse_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name comes twice in one object")
    return members


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is out of range")
    return number


def _bounded(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError("a number is out of range")
    return int(digits)


def _check(value: Json) -> None:
    """Checks level by level, without recursion, so that deep input cannot overflow the stack."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        for item in level:
            _whole_characters(item)
        level = [child for item in level for child in _children(item)]


def _children(value: Json) -> list[Json]:
    if isinstance(value, list):
        return value
    return list(value.values()) if isinstance(value, dict) else []


def _whole_characters(value: Json) -> None:
    texts = [value] if isinstance(value, str) else value if isinstance(value, dict) else ()
    for text in texts:
        text.encode("utf-8")  # a lone surrogate raises UnicodeEncodeError, which is a ValueError
