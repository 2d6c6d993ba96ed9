"""Spans of traces: acts, and how long each took."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from a2a_serverless.domain.spans import TraceSpan

# The variables of functions. The first switches spans on; libraries of agents read the others, too.
OTEL_SWITCH: Final = "OPEN_TELEMETRY"
OTEL_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
OTEL_HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"
OTEL_HEADERS_SECRET: Final = "OTEL_HEADERS_SECRET"  # noqa: S105 - a name
OTEL_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
OTEL_SERVICE: Final = "OTEL_SERVICE_NAME"
OTEL_SHARE: Final = "OTEL_TRACES_SAMPLER_ARG"


class Tracer:
    """Records spans, if ``is_on``; callers check that first. No method raises. This tracer records nothing."""

    is_on: ClassVar[bool] = False

    def sample(self, trace: str) -> str:
        """The trace (a ``traceparent``) with the decision whether its spans are recorded."""
        return trace

    def record(self, span: TraceSpan) -> None:
        """Stores an ended span until the next ``flush``, if its trace is sampled."""

    def enter(self, trace: str) -> AbstractContextManager[None]:
        """While the context is entered, spans of libraries are children of ``trace``."""
        del trace
        return nullcontext()

    def flush(self) -> None:
        """Exports the recorded spans, in bounded time. Spans that cannot be exported are lost."""


NULL_TRACER: Final = Tracer()
