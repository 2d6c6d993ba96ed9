"""Values that agents keep by key, for a task or for a conversation of its owner: their bounds and their form.

A value is bytes or what has a JSON form (``json_forms``), which is what its readers get. It is stored as a text, which
is a JSON object with one member.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from a2a_serverless.domain.json_forms import json_form
from a2a_serverless.domain.model import Json, TaskKey, is_utf8
from a2a_serverless.protocol.strict_json import dump_storable

KEY_LIMIT: Final = 512
"""Characters of a percent-encoded key."""
SIZE_LIMIT: Final = 10 * 1024 * 1024
"""Bytes of a stored value: its JSON text; bytes are stored as base64."""
LIST_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class ValueScope:
    """The place of values: the task ``key``, or with ``context_id`` that conversation of the task's owner."""

    key: TaskKey
    context_id: str | None = None

    @property
    def blobs(self) -> TaskKey:
        """The key of the blobs of large values. No task has an id that begins with @."""
        return self.key if self.context_id is None else conversation(self.key.tenant, self.key.owner, self.context_id)


@dataclass(frozen=True, slots=True)
class StoredText:
    """A stored value as its text. ``version`` identifies the write; ``agent`` is the agent that wrote it."""

    key: str
    text: str
    version: str
    agent: str = ""


def conversation(tenant: str, owner: str, context_id: str) -> TaskKey:
    """The key of the blobs of a conversation's values."""
    return TaskKey(tenant, owner, f"@{context_id}")


def encode_key(key: str) -> str:
    """The percent-encoded key, which begins with the encoding of each of its prefixes. Raises ValueError."""
    encoded = quote(key, safe="") if is_utf8(key) else ""
    if not 0 < len(encoded) <= KEY_LIMIT:
        raise ValueError(f"a key has 1 to {KEY_LIMIT} characters, percent-encoded, and no lone surrogate")
    return encoded


def dump_value(value: Json | bytes) -> str:
    """The text to store. Raises TypeError or ValueError for a value that is no JSON value, or is too large or deep."""
    form = {"b": base64.b64encode(value).decode()} if isinstance(value, bytes) else {"v": json_form("The value", value)}
    text = dump_storable(form)
    if len(text) > SIZE_LIMIT:
        raise ValueError(f"a value has at most {SIZE_LIMIT} bytes, not {len(text)}")
    return text


def load_value(text: str) -> Json | bytes:
    """The value of a text of ``dump_value``."""
    form = json.loads(text)
    value: Json | bytes = base64.b64decode(form["b"]) if "b" in form else form["v"]
    return value
