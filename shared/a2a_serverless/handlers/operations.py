"""Handles one operation from its parameters to its answer: version, extensions, decode, serve or stream, encode.

The bindings differ in their envelopes only. An error before a stream begins is an ordinary answer; a later one is the
stream's last event, which is named ``error``.
"""

from __future__ import annotations

import json
import logging
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.error_fields import safe_error_fields
from a2a_serverless.domain.errors import A2AError, ExtendedCardNotConfigured, UnsupportedOperation
from a2a_serverless.domain.events import StatusEvent, TaskReplay, update_of
from a2a_serverless.domain.publications import extended_card_name
from a2a_serverless.domain.trace import trace_id
from a2a_serverless.handlers.http_types import JSON, HttpRequest, HttpResponse
from a2a_serverless.protocol import sse, versions
from a2a_serverless.protocol.errors import code_of, headers_of, status_of
from a2a_serverless.protocol.operations import READING, SENDING, STREAMING, Operation
from a2a_serverless.protocol.strict_json import dumps
from a2a_serverless.protocol.v1 import Message, Task
from a2a_serverless.services.contents import INLINE, resolve_contents
from a2a_serverless.services.operations import open_stream, run_operation

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import Json, JsonObject, Principal
    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.handlers.authentication import Authenticator
    from a2a_serverless.ports.keys import Publications
    from a2a_serverless.protocol.codecs import Codec
    from a2a_serverless.protocol.limits import Limits
    from a2a_serverless.protocol.protojson import ProtoModel
    from a2a_serverless.protocol.v1 import StreamContent
    from a2a_serverless.services.operations import OpenStream
    from a2a_serverless.services.rate_limiter import RateLimiter, StreamSlot
    from a2a_serverless.services.streams import OffLoop, StreamItem
    from a2a_serverless.services.tasks import TaskService

logger = logging.getLogger(__name__)

UNCACHED: Final = {"cache-control": "no-store"}
STREAM_HEADERS: Final = UNCACHED | {"content-type": sse.CONTENT_TYPE, "x-accel-buffering": "no"}


@dataclass(frozen=True, slots=True)
class Envelope:
    """How a binding wraps results and errors. With ``streams_errors`` a streaming call is refused within a stream.

    With ``resumes`` a stream continues after ``Last-Event-ID``; streams of the legacy form always begin with the task.
    """

    content_type: str
    success: Callable[[bytes], bytes]
    failure: Callable[[Exception], tuple[int, bytes]]
    streams_errors: bool = False
    resumes: bool = True


@dataclass(frozen=True, slots=True)
class OperationHandler:
    """Handles the operations of one agent in one version and one binding. A stream lasts ``stream_ms`` at most."""

    service: TaskService
    authenticator: Authenticator
    agent: Agent
    codec: Codec
    version: WireVersion
    stream_ms: int
    limits: Limits
    public: Publications
    limiter: RateLimiter | None = None

    def handle(
        self, caller: Caller, request: HttpRequest, operation: Operation, params: Json, envelope: Envelope
    ) -> HttpResponse:
        """Returns the answer. Never raises. The caller's scopes are checked before anything that it names is read."""
        try:
            caller.check(self.agent.id, "read" if operation in READING else "operate")
            echoed = UNCACHED | self._negotiate(request)
            asked = self.codec.read(operation, params, self.limits)
            principal = self._principal(caller.principal, asked.tenant)
            if self.limiter and operation in SENDING:
                self.limiter.admit_send(principal)
            if operation in STREAMING:
                opened, slot = self._open(principal, request, asked, envelope)
                _log(self, operation, opened.task_id)
                frames = self._frames(principal, opened, envelope, slot)
                stream = _FramesWithSlot(frames, slot, self.service.off_loop) if slot else frames
                return HttpResponse(200, b"", STREAM_HEADERS | echoed, stream)
            if operation is Operation.CARD:
                return self._serve(operation, None, envelope.success(dumps(self._extended_card())), envelope, echoed)
            answer = resolve_contents(
                self.service.contents,
                principal,
                run_operation(self.service, principal, self.agent, asked, self.version),
                INLINE,
            )
            task = answer.id if isinstance(answer, Task) else None
            body = envelope.success(self.codec.answer(operation, answer))
            return self._serve(operation, task, body, envelope, echoed)
        except Exception as error:  # noqa: BLE001 - every error is answered in the form of the binding
            _log(self, operation, None, error)
            in_stream = operation in STREAMING and envelope.streams_errors
            return error_response(
                log_error(error, self.service), envelope.failure, envelope.content_type, in_stream=in_stream
            )

    def _serve(
        self, operation: Operation, task: str | None, body: bytes, envelope: Envelope, echoed: dict[str, str]
    ) -> HttpResponse:
        _log(self, operation, task)
        return HttpResponse(200, body, {"content-type": envelope.content_type} | echoed)

    def _extended_card(self) -> Json:
        """Returns the card for authenticated callers, as the rotator has published it for this version."""
        if not self.agent.extended_skills:
            raise UnsupportedOperation("This agent has no extended card.")
        document = self.public.get_document(extended_card_name(self.agent.id))
        if not isinstance(document, dict):
            raise ExtendedCardNotConfigured
        forms: JsonObject = json.loads(str(document["body"]))
        return forms[self.version]

    def _negotiate(self, request: HttpRequest) -> dict[str, str]:
        """Checks the requested version and extensions; returns the header that names the activated extensions."""
        headers, query = request.headers, dict(request.query)
        asked = versions.asked(headers.get(versions.VERSION_HEADER.lower()), query.get(versions.VERSION_HEADER))
        versions.check(self.version, asked)
        named = versions.requested(*(headers.get(name.lower()) for name in versions.EXTENSION_HEADERS.values()))
        offered = self.agent.extensions
        required = [one.uri for one in offered if one.required]
        active = versions.activated(named, [one.uri for one in offered], required)
        return {versions.EXTENSION_HEADERS[self.version]: ", ".join(active)} if active else {}

    def _principal(self, principal: Principal, tenant: str | None) -> Principal:
        """Returns the caller in the tenant that the request names; 0.3 has no tenants."""
        return self.authenticator.enter_tenant(principal, tenant) if tenant else principal

    def _open(
        self, principal: Principal, request: HttpRequest, asked: ProtoModel, envelope: Envelope
    ) -> tuple[OpenStream, StreamSlot | None]:
        """Opens the stream; returns it with its slot in the quota, None without a limit."""
        after = sse.last_event_id(request.headers.get("last-event-id")) if envelope.resumes else None
        until = self.service.clock.now() + self.stream_ms
        slot = self.limiter.open_stream(principal, until) if self.limiter else None
        try:
            return open_stream(self.service, principal, self.agent, asked, self.version, after, until), slot
        except BaseException:
            if slot:
                slot.release()
            raise

    async def _frames(
        self, principal: Principal, opened: OpenStream, envelope: Envelope, slot: StreamSlot | None
    ) -> AsyncGenerator[bytes]:
        try:
            contents = _StreamContents(opened, whole_tasks=self.codec.whole_tasks)
            async with aclosing(opened.items) as items:
                async for item in items:
                    if slot and slot.is_renewal_due:
                        await self.service.off_loop(slot.renew)
                    yield sse.BEAT if item is None else self._frame(principal, item.n, contents.of(item), envelope)
        except Exception as error:  # noqa: BLE001 - the status was sent already
            yield sse.failure(envelope.failure(log_error(error, self.service))[1])

    def _frame(self, principal: Principal, n: int | None, content: StreamContent, envelope: Envelope) -> bytes:
        shown = resolve_contents(self.service.contents, principal, content)
        return sse.frame(envelope.success(self.codec.stream_item(shown)), n)


class _StreamContents:
    """What clients get for the items of a stream. With ``whole_tasks`` a status event becomes the task as of it."""

    def __init__(self, opened: OpenStream, *, whole_tasks: bool) -> None:
        self._opened = opened
        self._whole_tasks = whole_tasks
        self._replay: TaskReplay | None = None

    def of(self, item: StreamItem) -> StreamContent:
        """The content of the next item."""
        content = item.content
        if isinstance(content, Task | Message):
            if self._whole_tasks and isinstance(content, Task):
                self._replay = TaskReplay.from_task(content)
            return content
        if self._replay:
            self._replay.apply(content)
            if isinstance(content, StatusEvent):
                return self._replay.task()
        return update_of(content, self._opened.task_id, self._opened.context_id)


class _FramesWithSlot:
    """The frames of a stream that releases its slot when it ends or is closed.

    A generator cannot do this: if it is closed before its first frame was requested, none of its code runs.
    """

    def __init__(self, frames: AsyncGenerator[bytes], slot: StreamSlot, off_loop: OffLoop) -> None:
        self._frames = frames
        self._slot = slot
        self._off_loop = off_loop

    def __aiter__(self) -> _FramesWithSlot:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._frames)
        except StopAsyncIteration:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        await self._frames.aclose()
        await self._off_loop(self._slot.release)


def log_error(error: Exception, service: TaskService) -> Exception:
    """Returns the error; logs and counts it if it is a server error, whose reason only the log shows."""
    if not isinstance(error, A2AError):
        logger.error("request failed", extra=safe_error_fields(error) | {"trace": trace_id(service.trace)})
        service.metrics.count("ServerErrors")
    return error


def _log(operator: OperationHandler, operation: Operation, task: str | None, error: Exception | None = None) -> None:
    """Logs one line for a request: operation, agent, version, task, outcome and trace."""
    said = {"operation": operation.value, "agent": operator.agent.id, "version": operator.version, "task": task}
    outcome = type(error).__name__ if error else "ok"
    logger.info("request answered", extra={**said, "outcome": outcome, "trace": trace_id(operator.service.trace)})


def error_response(
    error: Exception,
    failure: Callable[[Exception], tuple[int, bytes]],
    content_type: str = JSON,
    *,
    in_stream: bool = False,
) -> HttpResponse:
    """Returns the answer for an error. Errors with an HTTP status in every binding are never sent in a stream."""
    status, body = failure(error)
    if in_stream and not code_of(error).by_http:
        return HttpResponse(200, b"", STREAM_HEADERS | headers_of(error), _single_frame(sse.frame(body)))
    headers = UNCACHED | {"content-type": content_type} | headers_of(error)
    return HttpResponse(status_of(error, status), body, headers)


async def _single_frame(frame: bytes) -> AsyncGenerator[bytes]:
    yield frame
