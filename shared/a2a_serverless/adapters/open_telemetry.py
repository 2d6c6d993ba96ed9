"""Exports spans to an OpenTelemetry collector by OTLP over HTTP, at the end of each invocation.

A collector that is down or slow costs spans. It costs a function at most ``FLUSH_S`` in each ``PAUSE_S``: an export
runs in a thread of its own, and there is a pause after an export that failed or took too long.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from opentelemetry import context as contexts
from opentelemetry import trace as traces
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.domain.spans import CHAT, OPERATION
from a2a_serverless.domain.trace import is_sampled, with_sampling
from a2a_serverless.ports.tracing import Tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from a2a_serverless.domain.spans import TraceSpan

FLUSH_S: Final = 1.0
PAUSE_S: Final = 30.0
EXPORT_S: Final = 5.0
KEPT: Final = 2048
ERROR: Final = "error.type"
NS_PER_MS: Final = 1_000_000
SCOPE: Final = InstrumentationScope("a2a_serverless")
# The last words of the attributes whose texts are names and ids. Other texts may be words of a client or a model.
NAMES: Final = re.compile(
    r"(?:^|[._])(?:address|host|id|kind|method|model|name|namespace|operation|protocol|provider|region|scheme|service"
    r"|system|type|version)$"
)
KINDS: Final = {
    "internal": traces.SpanKind.INTERNAL,
    "server": traces.SpanKind.SERVER,
    "client": traces.SpanKind.CLIENT,
}

logger = logging.getLogger(__name__)


class OpenTelemetryTracer(Tracer):
    """``ports.Tracer``. ``endpoint`` is a collector's base URL; ``share`` (0 to 1) of new traces are sampled.

    ``headers`` returns the collector's headers; it is called at the first export, and again after it raised.
    ``now_s`` is the wall clock: another one may stand still while Lambda freezes the instance.
    ``provider`` is for libraries: their spans are exported too, with numbers and names only unless ``content``.
    """

    is_on: ClassVar[bool] = True

    def __init__(  # noqa: PLR0913 - the options of an operator
        self,
        endpoint: str,
        service: str,
        *,
        headers: Callable[[], Mapping[str, str]] = dict,
        share: float = 1.0,
        content: bool = False,
        flush_s: float = FLUSH_S,
        export_s: float = EXPORT_S,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._url = f"{endpoint.rstrip('/')}/v1/traces"
        self._headers, self._share, self._now_s = headers, share, now_s
        self._flush_s, self._export_s = flush_s, export_s
        self._resource = Resource.create({"service.name": service})
        self._exporter: Any = None
        self._ended: deque[Any] = deque(maxlen=KEPT)
        self._sending = threading.Lock()
        self._failed_at = -PAUSE_S
        self.provider = TracerProvider(resource=self._resource, sampler=ParentBased(TraceIdRatioBased(share)))
        self.provider.add_span_processor(_LibrarySpans(self._ended, content=content))
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # its lines may quote the collector

    def sample(self, trace: str) -> str:
        return with_sampling(trace, self._share)

    def record(self, span: TraceSpan) -> None:
        if is_sampled(span.trace) and not self._is_known(span):
            self._ended.append(self._readable(span))

    @contextmanager
    def enter(self, trace: str) -> Iterator[None]:
        if not trace:
            yield
            return
        current = traces.set_span_in_context(traces.NonRecordingSpan(_context(trace)))
        token = contexts.attach(current)
        try:
            yield
        finally:
            contexts.detach(token)

    def flush(self) -> None:
        is_paused = 0 <= self._now_s() - self._failed_at < PAUSE_S  # less than 0: somebody has set the clock back
        if not self._ended or is_paused or not self._sending.acquire(blocking=False):
            return
        end, exported = threading.Event(), list[bool]()
        batch = [self._ended.popleft() for _ in range(len(self._ended))]

        def export() -> None:
            try:
                exported.append(self._export(batch))
            finally:
                self._sending.release()
                end.set()

        try:
            threading.Thread(target=export, name="spans", daemon=True).start()
        except RuntimeError as error:  # no thread can be started
            self._sending.release()
            self._failed_at = self._now_s()
            logger.warning("spans not exported", extra={"count": len(batch), **safe_error_fields(error)})
            return
        end.wait(self._flush_s)
        if exported != [True]:
            self._failed_at = self._now_s()
            reason = "failed" if exported else "slow"
            logger.warning("spans not exported", extra={"count": len(batch), "reason": reason})

    def _export(self, batch: Sequence[Any]) -> bool:
        try:
            if self._exporter is None:
                headers = dict(self._headers())
                self._exporter = OTLPSpanExporter(
                    self._url, headers=headers, timeout=self._export_s, compression=Compression.Gzip
                )
            return bool(self._exporter.export(batch) is SpanExportResult.SUCCESS)
        except Exception as error:  # noqa: BLE001 - it costs the spans only
            logger.warning("spans cannot be exported", extra=safe_error_fields(error))
            return False

    def _is_known(self, span: TraceSpan) -> bool:
        """Whether a library has made a span of the same model call: both began in one step, or outside of steps."""
        if span.attributes.get(OPERATION) != CHAT:
            return False
        parent, start = _context(span.parent), span.began_at * NS_PER_MS
        return any(
            library_span.instrumentation_scope != SCOPE
            and (library_span.attributes or {}).get(OPERATION) == CHAT
            and library_span.context.trace_id == parent.trace_id
            and start <= library_span.start_time + NS_PER_MS
            and library_span.end_time <= (span.ended_at + 1) * NS_PER_MS
            for library_span in [*self._ended]
        )

    def _readable(self, span: TraceSpan) -> Any:  # noqa: ANN401 - the SDK's span
        code = traces.StatusCode.ERROR if span.error else traces.StatusCode.UNSET
        return ReadableSpan(
            span.name,
            context=_context(span.trace),
            parent=_context(span.parent) if span.parent else None,
            resource=self._resource,
            attributes={**span.attributes, **({ERROR: span.error} if span.error else {})},
            kind=KINDS[span.kind],
            instrumentation_scope=SCOPE,
            status=traces.Status(code),
            start_time=span.began_at * NS_PER_MS,
            end_time=max(span.began_at, span.ended_at) * NS_PER_MS,
        )


class _LibrarySpans(SpanProcessor):
    """Stores the sampled spans of libraries until the next flush."""

    def __init__(self, spans: deque[Any], *, content: bool) -> None:
        self._ended, self._content = spans, content

    def on_end(self, span: ReadableSpan) -> None:
        if span.context and span.context.trace_flags.sampled:
            self._ended.append(span if self._content else _without_content(span))


def _without_content(span: ReadableSpan) -> ReadableSpan:
    """The span with its numbers and names, without other texts, without events, and without the text of an error."""
    return ReadableSpan(
        span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes={name: value for name, value in (span.attributes or {}).items() if _is_harmless(name, value)},
        links=[traces.Link(link.context) for link in span.links],
        kind=span.kind,
        instrumentation_scope=span.instrumentation_scope,
        status=traces.Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
    )


def _is_harmless(name: str, value: object) -> bool:
    return isinstance(value, (bool, int, float)) or bool(NAMES.search(name))


def _context(trace: str) -> traces.SpanContext:
    flags = traces.TraceFlags(int(is_sampled(trace)))
    return traces.SpanContext(int(trace[3:35], 16), int(trace[36:52], 16), is_remote=False, trace_flags=flags)
