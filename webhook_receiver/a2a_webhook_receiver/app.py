"""The whole receiver: ``uvicorn --factory a2a_webhook_receiver.app:app``; on AWS Lambda ``a2a_webhook_receiver.app.handler``.

Importing this module reads and opens nothing.
"""  # noqa: E501 - a command

import logging
import os
from functools import cache
from typing import TYPE_CHECKING, cast

from fastapi import FastAPI

from a2a_webhook_receiver.http import create_app
from a2a_webhook_receiver.settings import Settings, read_settings
from a2a_webhook_receiver.wiring import build_receiver

if TYPE_CHECKING:
    from mangum import Mangum
    from mangum.types import LambdaContext, LambdaEvent


def app() -> FastAPI:
    """The receiver with settings from the environment. It logs one line per request: codes and ids, no content."""
    logging.basicConfig(format="%(levelname)s:     %(message)s")
    logging.getLogger("a2a_webhook_receiver").setLevel(logging.INFO)
    return build_app(read_settings(os.environ))


def build_app(settings: Settings) -> FastAPI:
    """The receiver that ``settings`` describe."""
    return create_app(build_receiver(settings), settings)


@cache
def _adapter() -> "Mangum":
    from mangum import Mangum  # of the extra ``aws``

    return Mangum(app(), lifespan="off")


def handler(event: "LambdaEvent", context: "LambdaContext") -> dict[str, object]:
    """The Lambda entry point, behind API Gateway or a function URL."""
    return cast("dict[str, object]", _adapter()(event, context))
