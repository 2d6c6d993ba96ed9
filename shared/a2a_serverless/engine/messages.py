"""The messages of an agent, from what its author's code gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_core import MISSING

from a2a_serverless.domain.agent_errors import TaskFailed
from a2a_serverless.domain.json_forms import is_of_fields, json_form
from a2a_serverless.protocol.protojson import ProtoModel, printed
from a2a_serverless.protocol.strict_json import LIMITS, BadJson, check_depth
from a2a_serverless.protocol.v1 import Message, Part, Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.domain.task_context import MessageContent


def make_message(
    content: MessageContent,
    new_id: Callable[[], str],
    context_id: str | None,
    task_id: str | None = None,
    metadata: JsonObject | None = None,
) -> Message:
    """A message from the agent with the ids of its task (4.1.4). A given ``Message`` keeps its own id.

    Raises TypeError for other content, ValueError for a message without parts (5.7) or with the client's role, and
    TaskFailed as ``check_printable``.
    """
    if not isinstance(content, Message):
        content = Message(message_id=new_id(), role=Role.AGENT, parts=_parts_of(content))
    if not content.parts or content.role is not Role.AGENT:
        raise ValueError("a message needs parts, and the role of an agent")
    metadata = content.metadata if metadata is None else metadata
    own = {
        "context_id": context_id,
        "task_id": task_id,
        "parts": tuple(json_part("The message", part) for part in content.parts),
        "metadata": json_form("The metadata of the message", metadata),
    }
    message = content.model_copy(update=own)
    check_printable("The message", message)
    return message


def _parts_of(content: object) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Part(text=content),)
    if isinstance(content, dict) or (is_of_fields(content) and not isinstance(content, ProtoModel)):
        return (Part(data=json_form("The message", content)),)
    kind = type(content).__name__
    if isinstance(content, list | tuple):
        kind = next((f"a {kind} with {type(one).__name__}" for one in content if not isinstance(one, Part)), "")
        if not kind:
            return tuple(content)
    raise TypeError(f"a message is a text, a dict, model or dataclass (data), a list of parts or a Message, not {kind}")


def json_part(what: str, part: Part) -> Part:
    """The part with the JSON forms of its data and its metadata. Raises TypeError for what is no value."""
    data, metadata = part.data, part.metadata
    if (data is MISSING or isinstance(data, str)) and metadata is None:
        return part
    own = {} if data is MISSING else {"data": json_form(what, data)}
    return part.model_copy(update=own | {"metadata": json_form(f"{what}'s metadata", metadata)})


def check_printable(what: str, value: ProtoModel) -> None:
    """Raises TaskFailed for a value that readers of JSON refuse: stored, it would break every answer with it."""
    try:
        check_depth(printed(value), LIMITS.depth)
    except ValueError as error:
        why = (
            str(error) if isinstance(error, BadJson) else "it has a lone surrogate, or a value that JSON does not have"
        )
        raise TaskFailed(f"{what} cannot be written as JSON in UTF-8 that every reader reads: {why}.") from None
