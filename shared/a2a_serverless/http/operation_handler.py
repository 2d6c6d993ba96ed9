"""Handles one operation from its parameters to its answer: version, extensions, decode, serve or stream, encode.

The bindings differ in their envelopes only. An error before a stream begins is an ordinary answer; a later one is the
stream's last event, which is named ``error``.
"""

from __future__ import annotations

import json
import logging
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.domain import trace
from a2a_serverless.domain.errors import ExtendedCardNotConfigured, UnsupportedOperation
from a2a_serverless.domain.events import StatusEvent, TaskReplay, update_of
from a2a_serverless.domain.publications import extended_card_name
from a2a_serverless.http.messages import UNCACHED, EventStream, error_answer, json_answer, log_error
from a2a_serverless.protocol import sse
from a2a_serverless.protocol.codecs import (
    EXTENSION_HEADERS,
    VERSION_HEADER,
    activated_extensions,
    asked_version,
    check_version,
    codec,
    requested_extensions,
)
from a2a_serverless.protocol.operations import READING, SENDING, STREAMING, Operation
from a2a_serverless.protocol.strict_json import dumps
from a2a_serverless.protocol.v1 import Message, Task
from a2a_serverless.services.content_links import INLINE, resolve_contents
from a2a_serverless.services.operation_runner import open_stream, run_operation
from a2a_serverless.services.tasks import RequestContext

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from starlette.responses import Response

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.delivery import ProtocolVersion
    from a2a_serverless.domain.model import Json, JsonObject, Principal
    from a2a_serverless.http.api import Api
    from a2a_serverless.http.messages import Failure, HttpRequest
    from a2a_serverless.protocol.codecs import Binding, Codec
    from a2a_serverless.protocol.protojson import ProtoModel
    from a2a_serverless.protocol.v1 import StreamContent
    from a2a_serverless.services.operation_runner import OpenStream
    from a2a_serverless.services.rate_limiter import StreamSlot
    from a2a_serverless.services.streams import StreamItem

logger = logging.getLogger(__name__)

_EXTENSION_HEADERS: Final = [name.lower() for name in EXTENSION_HEADERS.values()]
MARGIN_MS: Final = 7_000  # to notice that the time is over, to stop an agent, and to send the answer


class Envelope(NamedTuple):
    """The form of results and errors in a binding. With ``streams_errors`` a refused stream is a stream with the error.

    With ``resumes`` a stream continues after ``Last-Event-ID``; streams of the legacy form always begin with the task.
    """

    content_type: str
    success: Callable[[bytes], bytes]
    failure: Failure
    streams_errors: bool = False
    resumes: bool = True


def make_handler(  # noqa: PLR0913 - the request, and how it came in
    api: Api,
    agent: Agent,
    caller: Caller,
    request: HttpRequest,
    binding: Binding,
    version: ProtocolVersion,
    envelope: Envelope,
) -> OperationHandler:
    """The handler of a request, with the time that is left for it."""
    time_ms = api.stream_ms if request.time_left_ms is None else max(0, request.time_left_ms - MARGIN_MS)
    headers, service, seed = request.headers, api.service, api.service.ids.new()
    # The caller's trace; else the trace that X-Ray began at API Gateway; else a new one.
    theirs = trace.parse_traceparent(headers.get(trace.HEADER))
    request_trace = theirs or trace.from_xray(headers.get(trace.XRAY_HEADER), seed) or trace.new_trace(seed)
    if service.tracer.is_on:  # a span for the request; a caller's trace keeps its own decision whether to sample
        request_trace = trace.child_of(request_trace if theirs else service.tracer.sample(request_trace), seed)
    extensions = requested_extensions(*map(headers.get, _EXTENSION_HEADERS))
    # An agent names the task whose question it answers: its other calls in a context must not answer it.
    by_context = agent.answers_by_context and not caller.is_agent
    context = RequestContext(
        caller.principal, agent.id, version, caller, request_trace, extensions, time_ms, by_context
    )
    now = service.clock.now()
    return OperationHandler(
        api, agent, caller, request, context, codec(binding, version, now), envelope, (now, theirs or "")
    )


class OperationHandler(NamedTuple):
    """Handles one request to an agent in one version and one binding.

    ``since`` is the time (ms) at which the request began; ``parent`` is the parent of its span.
    """

    api: Api
    agent: Agent
    caller: Caller
    request: HttpRequest
    context: RequestContext
    codec: Codec
    envelope: Envelope
    since: tuple[int, str] = (0, "")

    def handle(self, operation: Operation, params: Json) -> Response:
        """Returns the answer. Never raises. Checks the caller's scopes before it reads from the store."""
        try:
            self.caller.check(self.agent.id, "read" if operation in READING else "operate")
            headers = UNCACHED | self._negotiate()
            a2a_request = self.codec.read(operation, params)
            service, context = self.api.service, self.context
            if a2a_request.tenant:
                context = context._replace(principal=self.api.principal(self.caller, a2a_request.tenant))
            if self.api.limiter and operation in SENDING:
                self.api.limiter.admit_send(context.principal)
            if operation in STREAMING:
                return self._stream(operation, context, a2a_request, headers)
            if operation is Operation.CARD:
                task, result = None, dumps(self._extended_card())
            else:
                answer = run_operation(service, context, self.agent, a2a_request)
                content = resolve_contents(service.contents, context.principal, answer, INLINE)
                task, result = answer.id if isinstance(answer, Task) else None, self.codec.answer(operation, content)
            self._log(operation, task)
            return json_answer(self.envelope.success(result), headers, self.envelope.content_type)
        except Exception as error:  # noqa: BLE001 - every error is answered in the form of the binding
            self._log(operation, None, type(error).__name__)
            exception, envelope = log_error(error, self.api.service.metrics, self.context.trace), self.envelope
            return error_answer(exception, envelope.failure, envelope.content_type, in_stream=envelope.streams_errors)

    def _stream(
        self, operation: Operation, context: RequestContext, a2a_request: ProtoModel, headers: dict[str, str]
    ) -> Response:
        """Opens the stream, and takes a slot of the owner's quota of streams."""
        after = sse.last_event_id(self.request.headers.get("last-event-id")) if self.envelope.resumes else None
        service, limiter, time_left_ms = self.api.service, self.api.limiter, context.time_left_ms
        until = service.clock.now() + (
            self.api.stream_ms if time_left_ms is None else min(self.api.stream_ms, time_left_ms)
        )
        slot = limiter.open_stream(context.principal, until) if limiter else None
        try:
            opened = open_stream(service, context, self.agent, a2a_request, after, until, self.codec.subscription_ends)
        except BaseException:
            if slot:
                slot.release()
            raise
        self._log(operation, opened.task_id)
        close = partial(service.off_loop, slot.release) if slot else None
        return EventStream(self._frames(context.principal, opened, slot), headers, close)

    def _extended_card(self) -> Json:
        """The card for authenticated callers, as the rotator published it for this version."""
        if not self.agent.extended_skills:
            raise UnsupportedOperation("This agent has no extended card.")
        document = self.api.public.get_document(extended_card_name(self.agent.id))
        if not isinstance(document, dict):
            raise ExtendedCardNotConfigured
        forms: JsonObject = json.loads(str(document["body"]))
        return forms[self.context.wire]

    def _negotiate(self) -> dict[str, str]:
        """Checks the requested version and extensions; returns the header that names the activated extensions."""
        header = self.request.headers.get(VERSION_HEADER.lower())
        version = self.context.wire
        if header != version:
            check_version(version, asked_version(header, dict(self.request.query).get(VERSION_HEADER)))
        offered = self.agent.offered_extensions
        required = [extension.uri for extension in offered if extension.required]
        active = activated_extensions(self.context.extensions, [extension.uri for extension in offered], required)
        return {EXTENSION_HEADERS[version]: ", ".join(active)} if active else {}

    async def _frames(self, principal: Principal, opened: OpenStream, slot: StreamSlot | None) -> AsyncGenerator[bytes]:
        try:
            contents = _StreamContents(opened, whole_tasks=self.codec.whole_tasks)
            async with aclosing(opened.items) as items:
                async for item in items:
                    if slot and slot.is_renewal_due:
                        await self.api.service.off_loop(slot.renew)
                    yield sse.BEAT if item is None else self._frame(principal, item.n, contents.of(item))
        except Exception as error:  # noqa: BLE001 - the status was sent already
            yield sse.failure(self.envelope.failure(log_error(error, self.api.service.metrics, self.context.trace))[1])

    def _frame(self, principal: Principal, n: int | None, content: StreamContent) -> bytes:
        contents = resolve_contents(self.api.service.contents, principal, content)
        return sse.frame(self.envelope.success(self.codec.stream_item(contents)), n)

    def _log(self, operation: Operation, task: str | None, outcome: str = "ok") -> None:
        """Logs one line for a request, and records its span."""
        fields = {"operation": operation.value, "agent": self.agent.id, "version": self.context.wire}
        trace_id, service = trace.trace_id(self.context.trace), self.api.service
        logger.info("request answered", extra={**fields, "task": task, "outcome": outcome, "trace": trace_id})
        if service.tracer.is_on:
            from a2a_serverless.domain.spans import request_span

            (begin, parent), end = self.since, service.clock.now()  # a stream's span ends when the stream is open
            span = request_span(self.context.trace, parent, begin, end, task=task, **fields)
            service.tracer.record(span if outcome == "ok" else replace(span, error=outcome))


class _StreamContents:
    """The contents of a stream's items. With ``whole_tasks`` the task as of a status event replaces the event."""

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
