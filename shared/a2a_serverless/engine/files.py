"""Files of a task, wherever they lie: in the part itself, beside the log, or at a URL that the client gave."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.agent import TaskFailed
from a2a_serverless.domain.contents import LARGEST, ContentNotFound, file_of
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.outbound import OutboundError

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Part, TaskKey
    from a2a_serverless.domain.outbound import Outcome
    from a2a_serverless.ports import ContentStore, UrlFetcher

INLINE_LIMIT: Final = 700 * 1024  # characters of base64 (half a megabyte) from which a file lies beside the log


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """Where files are kept and fetched; without them all files are inline."""

    contents: ContentStore | None = None
    fetch: UrlFetcher | None = None

    def read(self, key: TaskKey, part: Part) -> bytes:
        """The bytes of a part, checked; raises Failed with the reason."""
        if part.kind == "raw":
            return base64.b64decode(str(part.value))
        content = file_of(part)
        if part.kind == "url" and content is None and self.fetch:
            return _fetched(self.fetch(str(part.value)))
        if content is None or self.contents is None:
            raise TaskFailed("The part is no file that came with a message.")
        try:
            return self.contents.read(Principal(key.tenant, key.owner), content)
        except ContentNotFound:
            raise TaskFailed("The file was not uploaded, or is there no longer.") from None

    def store(self, key: TaskKey, part: Part) -> Part:
        """A part as it goes into the log: a big file lies beside it."""
        if self.contents is None or part.kind != "raw" or len(str(part.value)) <= INLINE_LIMIT:
            return part
        kept = self.contents.store(key, base64.b64decode(str(part.value)))
        return replace(part, kind="url", value=kept.address)


INLINE: Final = TaskFiles()


def _fetched(outcome: Outcome) -> bytes:
    """What was fetched; raises Failed with the reason, without the URL, which may hold secrets."""
    if outcome.error is OutboundError.REFUSED:
        raise TaskFailed(f"The URL of the file is refused: {outcome.reason}.")
    if outcome.error is OutboundError.TOO_LARGE:
        raise TaskFailed(f"The file at the URL is larger than {LARGEST // 1024**2} MiB.")
    if outcome.error or outcome.status is None:
        raise TaskFailed(f"The file could not be fetched from its URL ({outcome.error or 'no answer'}).")
    if outcome.status != HTTPStatus.OK:
        hint = "; redirects are not followed" if 300 <= outcome.status < 400 else ""  # noqa: PLR2004 - HTTP's classes
        raise TaskFailed(f"The URL of the file answered {outcome.status}{hint}.")
    return outcome.body
