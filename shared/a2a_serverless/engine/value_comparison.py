"""Compares a value that a step gave with the value that is read back: which part of it is another one?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, RootModel

from a2a_serverless.domain.json_forms import SEQUENCES, members_of

if TYPE_CHECKING:
    from collections.abc import Iterable


def find_change(value: object, again: object, path: str = "") -> str:
    """How the first part of ``value`` that is another one in ``again`` changes, by the names of types and fields.

    "" if no part does.

    Keys of dicts are not named: they may be content. Equality is not asked of a whole: NaN does not equal itself, a class may have no equality, and a tuple may become a
    list. Fields that their dataclass does not compare, and private attributes, do not count.
    """
    if value is again:
        return ""
    here = path or "it"
    if isinstance(value, RootModel) and isinstance(again, RootModel):
        return find_change(value.root, again.root, path)
    if (members := members_of(value)) is not None:
        if _kind(value) is not _kind(again):
            return f"{here} is a {type(value).__name__}, and comes back as {type(again).__name__}"
        if not isinstance(value, BaseModel):
            fields = type(value).__dataclass_fields__  # type: ignore[attr-defined]
            members = {name: inner for name, inner in members.items() if fields[name].compare}
        rest = members_of(again) or {}
        if missing := next((name for name in members if name not in rest), None):
            return f"{type(value).__name__}.{missing} is lost"
        return _first((inner, rest[name], f"{type(value).__name__}.{name}") for name, inner in members.items())
    if isinstance(value, dict) and isinstance(again, dict):
        others = again if value.keys() == again.keys() else {str(key): inner for key, inner in again.items()}
        keys = {key: key if others is again else str(key) for key in value}
        if {*keys.values()} != others.keys():
            return f"a key of {here} changes"
        return _first((inner, others[keys[key]], path) for key, inner in value.items())
    if isinstance(value, SEQUENCES) and isinstance(again, SEQUENCES):
        if len(value) != len(again):
            return f"the length of {here} changes"
        return _first((inner, again[at], path) for at, inner in enumerate(value))
    return "" if _is_same(value, again) else f"{here} changes"


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
        has_equality = type(value).__eq__ is not object.__eq__
    except Exception:  # noqa: BLE001 - any exception of the type's own code: it cannot be told
        return type(value) is type(again)
    if has_equality or type(value) is not type(again):
        return False
    return not find_change(getattr(value, "__dict__", {}), getattr(again, "__dict__", {}))
