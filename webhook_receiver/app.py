"""Starts the receiver: ``uvicorn --factory app:app`` on a server, ``app.handler`` on AWS Lambda.

Importing this module reads and opens nothing.
"""

import logging
import os
from functools import cache

from fastapi import FastAPI
from mangum import Mangum
from mangum.types import LambdaContext, LambdaEvent

from a2a_webhook_receiver.settings import read_settings
from a2a_webhook_receiver.wiring import build_app


def app() -> FastAPI:
    """The receiver with settings from the environment. It logs one line per request: codes and ids, no content."""
    logging.basicConfig(format="%(levelname)s:     %(message)s")
    logging.getLogger("receiver").setLevel(logging.INFO)
    return build_app(read_settings(os.environ))


@cache
def _adapter() -> Mangum:
    return Mangum(app(), lifespan="off")


def handler(event: LambdaEvent, context: LambdaContext) -> dict[str, object]:
    """The Lambda entry point, behind API Gateway or a function URL."""
    return _adapter()(event, context)
