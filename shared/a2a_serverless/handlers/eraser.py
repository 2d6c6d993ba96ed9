"""The handler of the eraser function: operators' requests to erase, or to count what would be erased."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from a2a_serverless.protocol.additions import EraseRequest
from a2a_serverless.protocol.protojson import as_json, read_model
from a2a_serverless.services.erasure import run_request

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from a2a_serverless.handlers.invocations import Event, Handler
    from a2a_serverless.services.erasure import ErasureService

logger = logging.getLogger(__name__)


def make_eraser_handler(erasure: ErasureService) -> Handler:
    """Returns a Lambda handler for an ``EraseRequest``. Raises InvalidParams for other events.

    A request may be repeated, also at the same time: what one has erased the other does not find.
    """

    def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
        del context
        wanted = read_model(EraseRequest, event)
        done = as_json(run_request(erasure, wanted))
        logger.info("counted" if wanted.dry_run else "erased", extra=done)
        return done

    return handler
