"""The remote agent of a mirror, as a client speaks to it: authenticated, streamed if it streams, our secrets hidden."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar, cast

from a2a_serverless.adapters.remote_auth import RemoteAuth
from a2a_serverless.client.client import Binding, Client
from a2a_serverless.domain.model import digest
from a2a_serverless.engine.task_files import with_parts
from a2a_serverless.protocol.codecs import EXTENSION_HEADERS
from a2a_serverless.protocol.v1 import Message, Task, TaskStatusUpdateEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from a2a_serverless.client import Transport
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.remotes import Remote
    from a2a_serverless.protocol.v1 import Part, SendMessageRequest, StreamContent, TaskStatus

WAIT_S: Final = 300
"""How long an answer to a message, or the next item of a stream, is waited for."""

C = TypeVar("C", bound="StreamContent")


class MirroredAgent:
    """A remote agent. ``client`` has no headers of a caller: ``headers`` returns those."""

    def __init__(self, remote: Remote, transport: Transport, read_secret: Callable[[str], str]) -> None:
        self._remote = remote
        self._auth = RemoteAuth(remote.auth, read_secret)
        binding = cast("Binding", remote.binding)
        self.client = Client(remote.url, self._auth.wrap(transport), {}, remote.tenant or None, remote.version, binding)
        self.redact = self._auth.redact

    def headers(self, caller: Caller) -> dict[str, str]:
        """The header with the caller's session, if the remote agent has one."""
        return {self._remote.session_header: digest(caller.principal)} if self._remote.session_header else {}

    def with_extensions(self, client: Client, extensions: Sequence[str]) -> Client:
        """A client whose requests name these extensions."""
        named = {EXTENSION_HEADERS[client.version]: ", ".join(extensions)} if extensions else {}
        return replace(client, headers={**client.headers, **named})

    def send(self, client: Client, request: SendMessageRequest) -> Generator[StreamContent]:
        """Sends a message and yields the items of its answer."""
        client = replace(client, seconds=WAIT_S)
        if self._remote.streaming:
            yield from (self.hide_secrets(event.content) for event in client.stream(request))
        else:
            yield self.hide_secrets(client.send(request))

    def subscribe(self, client: Client, task_id: str) -> Generator[StreamContent]:
        """Yields the items of a task's stream."""
        events = replace(client, seconds=WAIT_S).subscribe(task_id)
        yield from (self.hide_secrets(event.content) for event in events)

    def hide_secrets(self, content: C) -> C:
        """The content without our secrets in the text of a message: a remote agent may repeat what it got."""
        if isinstance(content, Message):
            return cast("C", with_parts(content, self._without_secrets))
        if isinstance(content, Task | TaskStatusUpdateEvent):
            return cast("C", content.model_copy(update={"status": self._status(content.status)}))
        return content

    def _status(self, status: TaskStatus) -> TaskStatus:
        message = status.message and with_parts(status.message, self._without_secrets)
        return status.model_copy(update={"message": message})

    def _without_secrets(self, part: Part) -> Part:
        text = None if part.text is None else self.redact(part.text)
        return part if text == part.text else part.with_content(text=text)
