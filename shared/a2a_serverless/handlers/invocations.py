"""Invocations of a function, and what the platform is told of those that fail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

from a2a_serverless.domain.error_fields import safe_error_fields

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

Event: TypeAlias = Mapping[str, Any]
Handler: TypeAlias = "Callable[[Event, LambdaContext], dict[str, Any]]"

logger = logging.getLogger(__name__)


class InvocationFailed(Exception):
    """What an invocation ended by, without its text: Lambda's runtime logs that, and it may quote a client."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}; see the log")


def hide_texts(handler: Handler, but: tuple[type[Exception], ...] = ()) -> Handler:
    """The handler, which logs what it fails by and raises InvocationFailed; ``but`` errors have texts of ours."""

    @wraps(handler)
    def hiding(event: Event, context: LambdaContext) -> dict[str, Any]:
        try:
            return handler(event, context)
        except but:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is
            logger.error("invocation failed", extra=safe_error_fields(error))
            raise InvocationFailed(error) from None

    return hiding
