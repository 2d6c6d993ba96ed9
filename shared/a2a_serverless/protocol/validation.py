"""Everything that is wrong with a request, as the protocol tells it, from what pydantic found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from a2a_serverless.domain.errors import FieldViolation, InvalidAgentResponse, InvalidParams
from a2a_serverless.protocol.limits import ANSWER_LIMITS, LIMITS, Limits

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)

_DESCRIPTIONS: Final = {
    "missing": "is required",
    "string_type": "must be a string",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "tuple_type": "must be a list",
    "extra_forbidden": "is not known",
}
_NEEDS_PARTS: Final = frozenset({"parts", "content"})


def read(model: type[M], value: object, limits: Limits = LIMITS) -> M:
    """The object that a JSON value is. Raises InvalidParams with every violation."""
    if not isinstance(value, dict):
        raise InvalidParams("The parameters must be an object.")
    try:
        return model.model_validate(value, context=limits)
    except ValidationError as error:
        raise InvalidParams(violations=violations(error, limits)) from None


def read_peer(model: type[M], value: object, limits: Limits = ANSWER_LIMITS) -> M:
    """The same of another agent's answer. Raises InvalidAgentResponse: its fault, not our caller's."""
    try:
        return read(model, value, limits)
    except InvalidParams as error:
        raise InvalidAgentResponse(f"The other agent's answer is invalid: {error}") from error


def violations(error: ValidationError, limits: Limits = LIMITS) -> tuple[FieldViolation, ...]:
    """The violations, each under its path as the client wrote it, as many as the limits name."""
    found = error.errors(include_url=False)[: limits.violations]
    return tuple(FieldViolation(path_of(one["loc"]) + _below(one), describe(one)) for one in found)


def path_of(loc: tuple[int | str, ...]) -> str:
    """``message.parts[0].raw``. The tag of a union (``@text``) is no part of a path."""
    path = ""
    for name in _names_in(loc):
        path += f"[{name}]" if isinstance(name, int) else f".{name}" if path else name
    return path


def _names_in(loc: tuple[int | str, ...]) -> list[int | str]:
    return [name for name in loc if isinstance(name, int) or not name.startswith("@")] or [""]


def describe(one: ErrorDetails) -> str:
    """What would be valid."""
    kind, value, name = one["type"], one["input"], _names_in(one["loc"])[-1]
    if kind == "missing" and name in _NEEDS_PARTS:
        return "must hold at least one part"
    if kind == "missing" or (value is None and kind != "violation" and isinstance(name, str)):
        return "is required"
    if kind == "enum":
        if value == "":
            return "is required"
        return "must be one of " + str(one["ctx"]["expected"]).replace("'", "").replace(" or ", ", ")
    return _DESCRIPTIONS.get(kind, one["msg"])


def _below(one: Any) -> str:  # noqa: ANN401 - ErrorDetails
    if one["type"] == "item_kind":
        return "kind"
    return ".kind" if one["type"] == "part_kind" else ""
