"""Digests of values: what tells one message from another, and one step's arguments from another's."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from hashlib import sha256


def digest(value: object) -> str:
    """SHA-256 (hex) of a JSON value or a dataclass of them; the order of object members does not count.

    Raises TypeError for anything else, because a digest that changes between two runs would be worse than none.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_members)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _members(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {"@": type(value).__name__, **{field.name: getattr(value, field.name) for field in fields(value)}}
    raise TypeError(f"a {type(value).__name__} is neither a JSON value nor a dataclass")
