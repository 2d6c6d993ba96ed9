"""What every function does when its process starts: garbage collection, logging, metrics."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from a2a_serverless.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from a2a_serverless.handlers.invocations import Handler
    from a2a_serverless.ports.system import Metrics

T = TypeVar("T")


@contextmanager
def uncollected() -> Iterator[None]:
    """Disables the garbage collector for the block, then freezes what was imported and built in it.

    Those modules and objects live as long as the process, so the collector need not scan them.
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


def start_handler(
    handler: Handler,
    environment: Mapping[str, str],
    metrics: Metrics,
    function: str,
    told: tuple[type[Exception], ...] = (),
) -> Handler:
    """The handler of a function. Only ``told`` errors are raised with their text; of others only the class is shown."""
    from a2a_serverless.handlers.invocations import hide_texts

    return start_logged(hide_texts(handler, told), environment, metrics, function)


def start_logged(
    handler: Callable[[Any, LambdaContext], T], environment: Mapping[str, str], metrics: Metrics, function: str
) -> Callable[[Any, LambdaContext], T]:
    """The handler, with the invocation's id in its log lines. Starts logging and counts the cold start."""
    from a2a_serverless.adapters.logs import start_logging

    logger = start_logging(environment.get("POWERTOOLS_SERVICE_NAME", ""))
    metrics.count("ColdStart", function=function)
    named: Callable[[Any, LambdaContext], T] = logger.inject_lambda_context(handler, log_event=False)
    return named
