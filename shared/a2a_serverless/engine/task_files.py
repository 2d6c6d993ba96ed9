"""Files of a task: inline in the part, stored outside the log, or at a URL from the client."""

from __future__ import annotations

import base64
import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar

from a2a_serverless.domain.agent_errors import TaskFailed
from a2a_serverless.domain.contents import LARGEST, ContentNotFound, file_of, is_expiring
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.outcomes import OutboundError
from a2a_serverless.ports.agents import AgentUnavailable
from a2a_serverless.protocol.v1 import Artifact, Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.outcomes import Outcome
    from a2a_serverless.ports.system import UrlFetcher
    from a2a_serverless.protocol.v1 import Part, Task
    from a2a_serverless.store.stores import ContentStore

H = TypeVar("H", Artifact, Message)

logger = logging.getLogger(__name__)

INLINE_FILE_LIMIT: Final = 700 * 1024  # characters of base64 (half a megabyte); a larger file is stored outside the log


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """Stores and fetches files. Without ``contents`` all files stay inline; without ``fetch`` URLs are not read."""

    contents: ContentStore | None = None
    fetch: UrlFetcher | None = None

    def read(self, key: TaskKey, part: Part) -> bytes:
        """The bytes of a part, checked; raises TaskFailed with the reason."""
        if part.kind == "raw":
            return base64.b64decode(str(part.value))
        content = file_of(part)
        if part.kind == "url" and content is None and self.fetch:
            return _body_of(self.fetch(str(part.value)))
        if content is None or self.contents is None:
            raise TaskFailed("The part is not a file of a message.")
        try:
            return self.contents.read(Principal(key.tenant, key.owner), content)
        except ContentNotFound:
            raise TaskFailed("The file was not uploaded, or does not exist any more.") from None

    def store(self, key: TaskKey, part: Part) -> Part:
        """The part for the log; the content of a large file is stored outside it."""
        if self.contents is None or part.kind != "raw" or len(str(part.value)) <= INLINE_FILE_LIMIT:
            return part
        file = self.contents.store(key, base64.b64decode(str(part.value)))
        return part.with_content(url=file.address)

    def keep(self, key: TaskKey, part: Part) -> Part:
        """The part of a called agent's answer for the log: the file behind a link that expires is stored, too.

        Raises AgentUnavailable if it cannot be fetched now. A link that is refused, or to too large a file, stays.
        """
        if self.contents is None or self.fetch is None or not is_expiring(part):
            return self.store(key, part)
        outcome = self.fetch(str(part.value))
        if _may_come(outcome):
            reason = outcome.error or f"HTTP {outcome.status}"
            raise AgentUnavailable(f"A file of the agent's answer could not be fetched: {reason}.")
        if outcome.error or outcome.status != HTTPStatus.OK:
            ids = {"task": key.task, "reason": str(outcome.error or outcome.status)}
            logger.warning("a called agent's file stays a link that expires", extra=ids)
            return part
        return part.with_content(url=self.contents.store(key, outcome.body).address)


INLINE_FILES: Final = TaskFiles()


def with_parts(answer: Task | Message, change: Callable[[Part], Part]) -> Task | Message:
    """The answer of an agent with each of its parts changed, and without a task's history."""
    if isinstance(answer, Message):
        return _change_parts(answer, change)
    message = answer.status.message
    status = answer.status.model_copy(update={"message": message and _change_parts(message, change)})
    artifacts = tuple(_change_parts(artifact, change) for artifact in answer.artifacts)
    return answer.model_copy(update={"status": status, "artifacts": artifacts, "history": ()})


def _change_parts(holder: H, change: Callable[[Part], Part]) -> H:
    return holder.model_copy(update={"parts": tuple(map(change, holder.parts))})


def _may_come(outcome: Outcome) -> bool:
    """Whether a later try may succeed."""
    if outcome.error:
        return outcome.error not in {OutboundError.REFUSED, OutboundError.TOO_LARGE}
    return outcome.status is None or outcome.status >= HTTPStatus.INTERNAL_SERVER_ERROR


def _body_of(outcome: Outcome) -> bytes:
    """The fetched bytes; raises TaskFailed with the reason, but without the URL, which may contain secrets."""
    if outcome.error is OutboundError.REFUSED:
        raise TaskFailed(f"The URL of the file is refused: {outcome.reason}.")
    if outcome.error is OutboundError.TOO_LARGE:
        raise TaskFailed(f"The file at the URL is larger than {LARGEST >> 20} MiB.")
    if outcome.error or outcome.status is None:
        raise TaskFailed(f"The file could not be fetched from its URL ({outcome.error or 'no answer'}).")
    if outcome.status != HTTPStatus.OK:
        hint = "; redirects are not followed" if 300 <= outcome.status < 400 else ""  # noqa: PLR2004 - HTTP's classes
        raise TaskFailed(f"The URL of the file answered {outcome.status}{hint}.")
    return outcome.body
