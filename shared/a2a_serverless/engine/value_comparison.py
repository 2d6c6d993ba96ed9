"""Compares a value that a step gave with the value that is read back, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from a2a_serverless.domain.json_forms import SEQUENCES, members_of

if TYPE_CHECKING:
    from collections.abc import Iterable


_LEAVES: Final = frozenset({str, int, bool, bytes, type(None)})


def find_change(value: object, again: object, path: str = "") -> str:
    """How the first part of ``value`` that is another one in ``again`` changes, by the names of types and fields.

    "" if no part does. Keys of dicts are not named: they may be content. Equality is not asked of a whole: NaN does not
    equal itself, a class may have no equality, and a tuple may become a list. Fields that their dataclass does not
    compare, and private attributes, do not count.
    """
    if type(value) in _LEAVES and type(value) is type(again):
        return "" if value == again else f"{path or 'it'} changes"
    here = path or "it"
    if (members := members_of(value)) is not None:
        return _change_of_fields(value, members, again, here)
    if isinstance(value, dict) and isinstance(again, dict):
        by_text = {str(key): inner for key, inner in again.items()}  # JSON has texts only
        if {*map(str, value)} == by_text.keys():
            return _first((inner, by_text[str(key)], path) for key, inner in value.items())
    elif isinstance(value, SEQUENCES) and isinstance(again, SEQUENCES):
        if len(value) == len(again):
            return _first((*pair, path) for pair in zip(value, again, strict=True))
    elif _is_same(value, again):
        return ""
    return f"{here} changes"


def _change_of_fields(value: object, members: dict[str, Any], again: object, here: str) -> str:
    name = type(value).__name__
    if _kind(value) is not _kind(again):
        return f"{here} is a {name}, and comes back as {type(again).__name__}"
    fields = getattr(value, "__dataclass_fields__", {})
    rest = members_of(again) or {}
    if missing := next((one for one in members if one not in rest), None):
        return f"{name}.{missing} is lost"
    compared = (one for one in members if one not in fields or fields[one].compare)
    return _first((members[one], rest[one], f"{name}.{one}") for one in compared)


def _first(pairs: Iterable[tuple[object, object, str]]) -> str:
    return next(filter(None, (find_change(*pair) for pair in pairs)), "")


def _kind(value: object) -> object:
    """The type of a value; of a generic model, the type without arguments."""
    kind: Any = type(value)
    return kind.__pydantic_generic_metadata__["origin"] or kind if isinstance(value, BaseModel) else kind


def _is_same(value: Any, again: Any) -> bool:  # noqa: ANN401 - any values
    try:
        if value == again or (value != value and again != again):  # noqa: PLR0124 - NaN
            return True
    except Exception:  # noqa: BLE001 - any exception of the type's own code: it cannot be told
        return type(value) is type(again)
    equality: Any = type(value).__eq__
    if equality is not object.__eq__ or type(value) is not type(again):
        return False
    return not find_change(getattr(value, "__dict__", {}), getattr(again, "__dict__", {}))
