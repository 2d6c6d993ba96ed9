"""The artifacts that an agent emits, from what its author's code gives."""

from __future__ import annotations

import asyncio
import base64
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from a2a_serverless.domain.agent import refuse_single
from a2a_serverless.domain.json_forms import json_form
from a2a_serverless.engine.messages import check_printable, json_part
from a2a_serverless.protocol.v1 import Artifact, Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.domain.task_context import Content
    from a2a_serverless.engine.execution import Execution
    from a2a_serverless.engine.scopes import Scope
    from a2a_serverless.engine.task_files import TaskFiles


class Artifacts:
    """The artifacts of an execution. Their large files are stored with the task."""

    def __init__(self, execution: Execution, files: TaskFiles) -> None:
        self._execution, self._files = execution, files

    async def emit(self, scope: Scope, artifact: Artifact, *, append: bool, last: bool) -> None:
        """Emits a chunk of the artifact, unless the log holds it already. See ``TaskContext.emit``."""

        def store_files() -> Artifact:
            parts = tuple(self._files.store(self._execution.session.key, part) for part in artifact.parts)
            return artifact if parts == artifact.parts else artifact.model_copy(update={"parts": parts})

        self._execution.artifact_writer.emit(scope, artifact.artifact_id, store_files, append=append, last=last)
        # In each run, also without a write: what works beside it must not end earlier in a later run.
        # tests/engine/test_orders.py: test_rule_07_of_two_acts_the_same_ends_first_in_each_run
        await asyncio.sleep(0)


def make_artifact(  # noqa: PLR0913 - the fields of an artifact
    origin: str,
    name: str,
    content: Content | Sequence[Part],
    media_type: str | None,
    description: str | None,
    metadata: JsonObject | None,
    extensions: Sequence[str],
) -> Artifact:
    """The artifact of this name: its id is the same in every run of the task ``origin``, and in those that repeat it.

    Raises TaskFailed as ``check_printable``, and TypeError for a text in the place of several ``extensions``.
    """
    refuse_single(lambda: f"The artifact {name!a}", extensions=extensions)
    artifact = Artifact(
        artifact_id=sha256(f"{origin}\n{name}".encode(errors="surrogatepass")).hexdigest()[:32],
        parts=tuple(make_parts(f"The artifact {name!a}", content, media_type)),
        name=name,
        description=description,
        metadata=cast("JsonObject | None", json_form(f"The metadata of the artifact {name!a}", metadata)),
        extensions=tuple(extensions),
    )
    check_printable(f"The artifact {name!a}", artifact)
    return artifact


def make_parts(what: str, content: Content | Sequence[Part], media_type: str | None = None) -> list[Part]:
    """Converts an author's content to parts. ``media_type`` applies to a single text, bytes or value.

    Raises TypeError, with ``what`` the content is of, for what is no value.
    """
    several = [item for item in content if isinstance(item, Part)] if isinstance(content, list | tuple) else []
    return [json_part(what, part) for part in several] or [_part(what, cast("Content", content), media_type)]


def _part(what: str, content: Content, media_type: str | None) -> Part:
    if isinstance(content, Part):
        return json_part(what, content)
    if isinstance(content, str):
        return Part(text=content, media_type=media_type)
    if isinstance(content, bytes):
        return Part(raw=base64.b64encode(content).decode(), media_type=media_type or "application/octet-stream")
    return Part(data=json_form(what, content), media_type=media_type)
