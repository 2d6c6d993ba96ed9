"""What digests are made of: messages, artifacts and tasks as the first releases held them.

A receipt names the digest of a message, and a step that of its arguments. Both are stored, and a send that is repeated
or a task that goes on after a deployment is compared with them: these forms never change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a2a_serverless.protocol import v1

if TYPE_CHECKING:
    from a2a_serverless.protocol.protojson import ProtoModel


def digest_form(value: object) -> dict[str, Any]:
    """The object as JSON values and objects of 1.0, for ``json.dumps``'s ``default``. Raises TypeError for others."""
    match value:
        case v1.Part():
            return _part(value)
        case v1.Message():
            return _members("Message", value) | {"role": value.role.short}
        case v1.Artifact():
            return _members("Artifact", value)
        case v1.TaskStatus():
            return _members("TaskStatus", value) | {"state": value.state.short, "timestamp": value.timestamp or 0}
        case v1.Task():
            members = _members("Task", value) | {"n": value.n}
            return {("task_id" if name == "id" else name): inner for name, inner in members.items()}
    raise TypeError(f"a {type(value).__name__} is neither a JSON value nor an object of the protocol")


def _members(name: str, value: ProtoModel) -> dict[str, Any]:
    return {"@": name, **value.__dict__}


def _part(part: v1.Part) -> dict[str, Any]:
    about = {"media_type": part.media_type, "filename": part.filename, "metadata": part.metadata}
    return {"@": "Part", "kind": part.kind, "value": getattr(part, part.kind), **about}
