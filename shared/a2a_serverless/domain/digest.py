"""Digests of values, to compare messages and the arguments of steps."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from hashlib import sha256


def digest(value: object) -> str:
    """SHA-256 (hex) of JSON values, dataclasses and protocol objects; the order of object members does not matter.

    Raises TypeError for anything else, because its digest could differ between two runs.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_members)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _members(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {"@": type(value).__name__, **{field.name: getattr(value, field.name) for field in fields(value)}}
    if hasattr(type(value), "__pydantic_fields__"):
        return {"@": type(value).__name__, **value.__dict__}
    raise TypeError(f"a {type(value).__name__} is neither a JSON value nor a dataclass")
