"""Types of invocations, and a wrapper that keeps error texts from Lambda's log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

from a2a_serverless.domain.errors import safe_error_fields

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

Event: TypeAlias = Mapping[str, Any]
Handler: TypeAlias = "Callable[[Event, LambdaContext], dict[str, Any]]"

logger = logging.getLogger(__name__)


class InvocationFailed(Exception):
    """An invocation's error without its text: Lambda's runtime logs the text, which may quote a client."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}; see the log")


def hide_texts(
    handler: Handler, but: tuple[type[Exception], ...] = (), at_end: Callable[[], None] = lambda: None
) -> Handler:
    """Wraps a handler: logs its errors and raises InvocationFailed instead; ``but`` errors pass, with our own texts.

    Each invocation ends with ``at_end``.
    """

    @wraps(handler)
    def hiding(event: Event, context: LambdaContext) -> dict[str, Any]:
        try:
            return handler(event, context)
        except but:
            raise
        except Exception as error:  # noqa: BLE001 - any text may quote a client
            logger.error("invocation failed", extra=safe_error_fields(error))
            raise InvocationFailed(error) from None
        finally:
            at_end()

    return hiding
