"""The handler of the eraser function: operators' requests to erase, or to count what would be erased."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from a2a_serverless.services.erasure import parse_request, run_request

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from a2a_serverless.domain.model import Json
    from a2a_serverless.handlers.invocations import Event, Handler
    from a2a_serverless.services.erasure import ErasureService

logger = logging.getLogger(__name__)


def make_eraser_handler(erasure: ErasureService) -> Handler:
    """Returns a Lambda handler for ``services.erasure.ErasureRequest`` as JSON. Raises InvalidParams for other events.

    A request may be repeated, also at the same time: what one has erased the other does not find.
    """

    def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
        del context
        order = parse_request(cast("Json", event))
        done = run_request(erasure, order).to_json()
        logger.info("counted" if order.dry_run else "erased", extra=done)
        return dict(done)

    return handler
