"""Orders of operators, to erase or to count."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from a2a_serverless.services.erase import obey, order_of

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json
    from a2a_serverless.handlers.queues import Context, Event, Handler
    from a2a_serverless.services.erase import Rubber

logger = logging.getLogger(__name__)


def make_eraser_handler(rubber: Rubber) -> Handler:
    """A Lambda handler for orders as ``services.erase.Order`` tells them. Raises InvalidParams for other events.

    An order may come twice, and two at once: what one has erased the other does not find.
    """

    def handler(event: Event, context: Context) -> dict[str, Any]:
        del context
        order = order_of(cast("Json", event))
        done = obey(rubber, order).told()
        logger.info("counted" if order.dry_run else "erased", extra=done)
        return dict(done)

    return handler
