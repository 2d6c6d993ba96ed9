"""The protocol's JSON schemas as assertions. What 1.0 does not name is refused, as strict readers do.

0.3 over REST, the older HTTP shapes and errors have no official schema: theirs are derived from what the specification
says of them, and name all that may be there.
"""

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator

SCHEMAS = Path(__file__).parents[1] / "data" / "schema"


def assert_v1(name: str, value: object) -> None:
    """The value is a ``name`` of A2A 1.0 and has no member that 1.0 does not name."""
    _v1(name).validate(value)


def assert_v0_3(name: str, value: object) -> None:
    """The value is a ``name`` of A2A 0.3."""
    _v0_3(name).validate(value)


def assert_card(card: dict[str, object]) -> None:
    """The document is a card of 1.0, of 0.3, or of both at once."""
    assert card.keys() & {"supportedInterfaces", "protocolVersion"}
    if "supportedInterfaces" in card:
        _v1("AgentCard", strict="protocolVersion" not in card).validate(card)
    if "protocolVersion" in card:
        assert_v0_3("AgentCard", card)


@lru_cache(10_000)
def assert_notification(version: str, body: bytes) -> None:
    """The body is one that a webhook of that version may get. The same bytes are looked at once."""
    if version == "1.0":
        assert_v1("StreamResponse", json.loads(body))
    else:
        assert_v0_3("Task", json.loads(body))


def assert_v0_3_rest(name: str, value: object) -> None:
    """The value is a ``name`` of A2A 0.3's proto, as ProtoJSON."""
    _derived("a2a-0.3-rest", name).validate(value)


def assert_older(name: str, value: object) -> None:
    """The value is a ``name`` of the HTTP shapes from before 0.3."""
    _derived("a2a-older-http", name).validate(value)


def assert_error(form: str, value: object) -> None:
    """The value is an error answer in the form of ``JSON-RPC``, ``REST 1.0`` or ``REST 0.3``."""
    _derived("errors", form).validate(value)


@cache
def _v1(name: str, *, strict: bool = True) -> Draft202012Validator:
    document = json.loads((SCHEMAS / "a2a-1.0.json").read_text())
    for definition in document["$defs"].values():
        if strict and "properties" in definition:
            definition["additionalProperties"] = False
    return Draft202012Validator(document | {"$ref": f"#/$defs/{name}"})


@cache
def _v0_3(name: str) -> Draft7Validator:
    document: dict[str, Any] = json.loads((SCHEMAS / "a2a-0.3.json").read_text())
    return Draft7Validator({"definitions": document["definitions"], "allOf": [{"$ref": f"#/definitions/{name}"}]})


@cache
def _derived(document: str, name: str) -> Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{document}.json").read_text())
    return Draft202012Validator(schema | {"$ref": f"#/$defs/{name}"})
