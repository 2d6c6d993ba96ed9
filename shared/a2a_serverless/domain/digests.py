"""Digests of values. They compare messages, and the arguments of steps.

They are stored (idempotency records, steps) and compared after a deployment. A member of a model does not count while
it has its default, so that a member which a later release adds changes no digest.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final

from pydantic import BaseModel

from a2a_serverless.domain.json_forms import SEQUENCES, SETS, json_leaf, members_of


def digest(value: object, own_id: str = "", origin: str = "") -> str:
    """SHA-256 (hex) of a value (``json_forms``): the same in each process.

    The order of object members and of sets does not matter, nor do the contents of secrets. Raises TypeError for what
    is no value, because its digest could differ between two runs. With ``origin`` the task's ``own_id`` counts as that
    id: a retried task has the digests of the task that it repeats.
    """
    text = _encode(value)
    text = text.replace(own_id, origin) if origin else text
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _encode(value: object) -> str:
    try:
        try:
            return _ENCODER.encode(value)
        except TypeError:  # a key that is no text, or no value
            return _ENCODER.encode(_with_text_keys(value))
    except RecursionError:
        raise TypeError("it has too many levels, or contains itself") from None
    except ValueError:
        raise TypeError("it contains itself, or a number that is too long") from None


def _with_text_keys(value: object) -> object:
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _encode(key): _with_text_keys(value[key]) for key in value}
    if isinstance(value, list | tuple):
        return [_with_text_keys(inner) for inner in value]
    return value if value is None or isinstance(value, str | int | float) else _with_text_keys(_typed_form(value))


def _typed_form(value: object) -> dict[str, Any]:
    kind, members = {"@": type(value).__name__}, members_of(value)
    if isinstance(value, BaseModel) and members:
        defaults = {name: field.default for name, field in type(value).model_fields.items() if not field.is_required()}
        return kind | {
            name: inner for name, inner in members.items() if name not in defaults or inner != defaults[name]
        }
    if members is not None:
        return kind | members
    if isinstance(value, SETS):
        return kind | {"items": sorted(map(_encode, value))}
    if isinstance(value, SEQUENCES):
        return kind | {"items": [*value]}
    if hasattr(value, "isoformat") and not isinstance(value, type):
        return kind | {"text": value.isoformat()}
    return kind | {"text": json_leaf(value)}


_ENCODER: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_typed_form)
