"""The start of every function's process: garbage collection, logging, metrics, traces."""

from __future__ import annotations

import gc
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.ports import tracing
from a2a_serverless.ports.tracing import NULL_TRACER
from a2a_serverless.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from a2a_serverless.adapters.invocations import Handler
    from a2a_serverless.ports.system import Metrics
    from a2a_serverless.ports.tracing import Tracer

T = TypeVar("T")

logger = logging.getLogger(__name__)


@contextmanager
def uncollected() -> Iterator[None]:
    """Disables the garbage collector for the block, then freezes the modules and objects of the block.

    They live as long as the process, so the collector need not scan them.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def make_metrics(environment: Mapping[str, str]) -> Metrics:
    """The metrics, which a function writes to its log for CloudWatch (embedded metric format)."""
    from a2a_serverless.adapters.metrics import EmfMetrics

    settings = Settings(values=environment)
    return EmfMetrics(
        settings.get("POWERTOOLS_METRICS_NAMESPACE"),
        settings.get("POWERTOOLS_SERVICE_NAME"),
        every=settings.get("OBSERVABILITY") == "full",
    )


def make_tracer(environment: Mapping[str, str]) -> Tracer:
    """The tracer, if ``OPEN_TELEMETRY`` is on. Wrong values of its variables are logged and cost the spans only.

    The headers for the collector are in ``OTEL_EXPORTER_OTLP_HEADERS``, or in the secret that ``OTEL_HEADERS_SECRET``
    names, in the same format. They are sent by https or to this machine only.
    """
    endpoint = environment.get(tracing.OTEL_ENDPOINT, "").strip()
    if environment.get(tracing.OTEL_SWITCH) != "on" or not endpoint:
        return NULL_TRACER
    header_text = environment.get(tracing.OTEL_HEADERS, "").strip()
    place = environment.get(tracing.OTEL_HEADERS_SECRET, "")
    try:
        from opentelemetry.trace import set_tracer_provider

        from a2a_serverless.adapters.agent_secrets import secret_at
        from a2a_serverless.adapters.open_telemetry import OpenTelemetryTracer
        from a2a_serverless.domain.outbound import is_confidential

        if (header_text or place) and not is_confidential(endpoint):
            logger.error("no spans: the headers for the collector need an https endpoint")
            return NULL_TRACER

        def headers() -> Mapping[str, str]:
            return _headers_in(header_text or (secret_at(place).strip() if place else ""))

        service, share = environment.get(tracing.OTEL_SERVICE, ""), environment.get(tracing.OTEL_SHARE, "")
        content, service = environment.get(tracing.OTEL_CONTENT, "") == "true", service or "a2a-serverless"
        tracer = OpenTelemetryTracer(endpoint, service, headers=headers, share=float(share or 1), content=content)
        set_tracer_provider(tracer.provider)
    except Exception as error:  # noqa: BLE001 - a function without spans is better than none
        logger.error("no spans", extra=safe_error_fields(error))
        return NULL_TRACER
    return tracer


def _headers_in(text: str) -> Mapping[str, str]:
    """The headers in ``name=value,name=value``. Raises ValueError if there is a text but no header in it."""
    from opentelemetry.util.re import parse_env_headers

    headers = dict(parse_env_headers(text, liberal=True))
    if text and not headers:
        raise ValueError("the headers for the collector are not name=value,name=value")
    return headers


def start_handler(
    handler: Handler,
    environment: Mapping[str, str],
    metrics: Metrics,
    function: str,
    errors: tuple[type[Exception], ...] = (),
    tracer: Tracer = NULL_TRACER,
) -> Handler:
    """The handler of a function. It raises these ``errors`` with their text; of others it shows only the class.

    Each invocation ends with a flush of the ``tracer``.
    """
    from a2a_serverless.adapters.invocations import hide_texts

    return start_logged(hide_texts(handler, errors, tracer.flush), environment, metrics, function)


def start_logged(
    handler: Callable[[Any, LambdaContext], T], environment: Mapping[str, str], metrics: Metrics, function: str
) -> Callable[[Any, LambdaContext], T]:
    """The handler, with the invocation's id in its log lines. Starts logging and counts the cold start."""
    from a2a_serverless.adapters.logs import start_process_log

    log = start_process_log(environment)
    metrics.count("ColdStart", function=function)
    logged_handler: Callable[[Any, LambdaContext], T] = log.inject_lambda_context(handler, log_event=False)
    return logged_handler
