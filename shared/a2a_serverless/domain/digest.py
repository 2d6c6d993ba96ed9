"""Digests of values, to compare messages and the arguments of steps.

Digests are stored (idempotency records, steps) and compared after a deployment. A member of a model does not count
while it has its default, so that a member which a later release adds changes no digest.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any, Final

from pydantic import BaseModel


def digest(value: object) -> str:
    """SHA-256 (hex) of JSON values, objects of A2A and dataclasses; the order of object members does not matter.

    Raises TypeError for anything else, because its digest could differ between two runs.
    """
    return sha256(_ENCODER.encode(value).encode("utf-8", "surrogatepass")).hexdigest()


def _members(value: object) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        fields_of = type(value).model_fields
        members = {name: inner for name, inner in value.__dict__.items() if inner != fields_of[name].default}
        return {"@": type(value).__name__, **members}
    if is_dataclass(value) and not isinstance(value, type):
        return {"@": type(value).__name__, **{field.name: getattr(value, field.name) for field in fields(value)}}
    raise TypeError(f"a {type(value).__name__} is neither a JSON value nor a dataclass nor an object of A2A")


_ENCODER: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_members)
