"""Handles one operation from its parameters to its answer: version, extensions, decode, serve or stream, encode.

The bindings differ in their envelopes only. An error before a stream begins is an ordinary answer; a later one is the
stream's last event, which is named ``error``.
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.domain import trace
from a2a_serverless.domain.agent import WEBHOOK_EXTENSIONS, requested_webhook_events
from a2a_serverless.domain.events import StatusEvent, update_of
from a2a_serverless.domain.replay import TaskReplay
from a2a_serverless.http.messages import NO_STORE, EventStream, error_answer, json_answer, log_error
from a2a_serverless.protocol import codecs, sse, versions
from a2a_serverless.protocol.v1 import Message, Task
from a2a_serverless.services.content_links import INLINE_BYTES, resolve_contents
from a2a_serverless.services.operation_runner import StreamLimits, open_stream, run_operation
from a2a_serverless.services.requests import RequestContext

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from starlette.responses import Response

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import Json, Principal
    from a2a_serverless.http.api import Api
    from a2a_serverless.http.messages import Failure, HttpRequest
    from a2a_serverless.protocol.codecs import Binding
    from a2a_serverless.protocol.operations import Operation
    from a2a_serverless.protocol.protojson import ProtoModel
    from a2a_serverless.protocol.v1 import StreamContent
    from a2a_serverless.protocol.versions import ProtocolVersion
    from a2a_serverless.services.operation_runner import OpenStream
    from a2a_serverless.services.rate_limiter import StreamSlot
    from a2a_serverless.services.streams import StreamItem

logger = logging.getLogger(__name__)

MARGIN_MS: Final = 7_000  # to notice that the time is over, to stop an agent, and to send the answer


class Envelope(NamedTuple):
    """The form of results and errors in a binding; with ``streams_errors`` a refused stream streams the error."""

    content_type: str
    success: Callable[[bytes], bytes]
    failure: Failure
    streams_errors: bool = False


class OperationHandler:
    """Handles one request to an agent in one version and one binding, in the time that is left for it."""

    def __init__(  # noqa: PLR0913 - the request, and how it came in
        self,
        api: Api,
        agent: Agent,
        caller: Caller,
        request: HttpRequest,
        binding: Binding,
        version: ProtocolVersion,
        envelope: Envelope,
    ) -> None:
        self._api, self._agent, self._caller = api, agent, caller
        self._request, self._envelope = request, envelope
        headers, service, seed = request.headers, api.service, api.service.ids.new()
        # The caller's trace; else the trace that X-Ray began at API Gateway; else a new one.
        self._parent = trace.parse_traceparent(headers.get(trace.HEADER))
        own = self._parent or trace.from_xray(headers.get(trace.XRAY_HEADER), seed) or trace.new_trace(seed)
        if service.tracer.is_on:  # a span for the request; a caller's trace keeps its own decision whether to sample
            own = trace.child_of(own if self._parent else service.tracer.sample(own), seed)
        extensions = versions.requested_extensions(headers)
        self._time_ms = api.stream_ms if request.time_left_ms is None else max(0, request.time_left_ms - MARGIN_MS)
        # An agent names the task whose question it answers: its other calls in a context must not answer it.
        by_context = agent.answers_by_context and not caller.is_agent
        self._context = RequestContext(
            caller.principal,
            agent.id,
            version,
            caller,
            own,
            extensions,
            self._time_ms,
            by_context,
            webhook_events=requested_webhook_events(extensions) or agent.webhook_events,
        )
        self._begin = service.clock.now()
        self._codec = codecs.codec(binding, version, self._begin)

    def handle(self, operation: Operation, params: Json) -> Response:
        """Returns the answer. Never raises. Checks the caller's scopes before it reads from the store."""
        try:
            # First: a caller without the scope learns nothing about parameters or tasks (test_scopes.py).
            self._caller.check(self._agent.id, operation.access)
            headers = NO_STORE | self._negotiate()
            a2a_request = self._codec.read(operation, params)
            service, context = self._api.service, self._context
            if a2a_request.tenant:
                context = context._replace(principal=self._api.principal(self._caller, a2a_request.tenant))
            if self._api.limiter and operation.sends:
                self._api.limiter.admit_send(context.principal)
            if operation.streams:
                return self._stream(operation, context, a2a_request, headers)
            answer = run_operation(operation, service, context, self._agent, a2a_request)
            if isinstance(answer, bytes):
                result = answer
            else:
                content = resolve_contents(service.contents, context.principal, answer, INLINE_BYTES)
                result = self._codec.answer(operation, content)
            task = answer.id if isinstance(answer, Task) else None
            self._log(operation, task)
            return json_answer(self._envelope.success(result), headers, self._envelope.content_type)
        except Exception as error:  # noqa: BLE001 - every error is answered in the form of the binding
            self._log(operation, None, type(error).__name__)
            exception, envelope = log_error(error, self._api.service.metrics, self._context.trace), self._envelope
            return error_answer(exception, envelope.failure, envelope.content_type, in_stream=envelope.streams_errors)

    def _stream(
        self, operation: Operation, context: RequestContext, a2a_request: ProtoModel, headers: dict[str, str]
    ) -> Response:
        """Opens the stream, and takes a slot of the owner's quota of streams."""
        service, limiter, codec = self._api.service, self._api.limiter, self._codec
        # A stream of whole tasks begins with the task.
        after = None if codec.whole_tasks else sse.last_event_id(self._request.headers.get("last-event-id"))
        until = service.clock.now() + min(self._api.stream_ms, self._time_ms)
        slot = limiter.open_stream(context.principal, until) if limiter else None
        try:
            limits = StreamLimits(after, until, codec.subscription_ends)
            stream = open_stream(operation, service, context, self._agent, a2a_request, limits)
        except BaseException:  # no stream will close, and release the slot: the owner would lose it until it expires
            if slot:
                slot.release()
            raise
        self._log(operation, stream.task_id)
        close = partial(service.off_loop, slot.release) if slot else None
        return EventStream(self._frames(context.principal, stream, slot), headers, close)

    def _negotiate(self) -> dict[str, str]:
        """Checks the requested version and extensions; returns the header that names the activated extensions."""
        header = self._request.headers.get(versions.VERSION_HEADER.lower())
        version = self._context.version
        if header != version:
            in_query = dict(self._request.query).get(versions.VERSION_HEADER)
            versions.check_version(version, versions.asked_version(header, in_query))
        offer = {extension.uri: extension.required for extension in self._agent.offered_extensions}
        others = {one.uri for events, one in WEBHOOK_EXTENSIONS.items() if events != self._context.webhook_events}
        active = [uri for uri in versions.activated_extensions(self._context.extensions, offer) if uri not in others]
        return {versions.EXTENSION_HEADERS[version]: ", ".join(active)} if active else {}

    async def _frames(self, principal: Principal, stream: OpenStream, slot: StreamSlot | None) -> AsyncGenerator[bytes]:
        try:
            contents = _StreamContents(stream, whole_tasks=self._codec.whole_tasks)
            async with aclosing(stream.items) as items:
                async for item in items:
                    if slot and slot.is_renewal_due:
                        await self._api.service.off_loop(slot.renew)
                    if item is None:
                        yield sse.BEAT
                        continue
                    content = resolve_contents(self._api.service.contents, principal, contents.of(item))
                    yield sse.frame(self._envelope.success(self._codec.stream_item(content)), item.n)
        except Exception as error:  # noqa: BLE001 - the status was sent already
            _, body = self._envelope.failure(log_error(error, self._api.service.metrics, self._context.trace))
            yield sse.failure(body)

    def _log(self, operation: Operation, task: str | None, outcome: str = "ok") -> None:
        """Logs one line for a request, and records its span."""
        fields = {"operation": operation.value, "agent": self._agent.id, "version": self._context.version}
        trace_id, service = trace.trace_id(self._context.trace), self._api.service
        logger.info("request answered", extra={**fields, "task": task, "outcome": outcome, "trace": trace_id})
        if service.tracer.is_on:
            from a2a_serverless.domain.spans import request_span

            end = service.clock.now()  # a stream's span ends when the stream is open
            span = request_span(self._context.trace, self._parent or "", self._begin, end, task=task, **fields)
            service.tracer.record(span if outcome == "ok" else replace(span, error=outcome))


class _StreamContents:
    """The contents of a stream's items. With ``whole_tasks`` the task as of a status event replaces the event."""

    def __init__(self, stream: OpenStream, *, whole_tasks: bool) -> None:
        self._stream = stream
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
        return update_of(content, self._stream.task_id, self._stream.context_id)
