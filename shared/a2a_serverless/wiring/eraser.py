"""The eraser function."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from a2a_serverless.adapters.dynamodb import keys
from a2a_serverless.adapters.dynamodb.api_keys import DynamoApiKeyStore
from a2a_serverless.adapters.dynamodb.erasure import DynamoErasureStore
from a2a_serverless.adapters.dynamodb.push_store import DynamoPushStore
from a2a_serverless.adapters.s3 import S3BlobStore
from a2a_serverless.adapters.system import SystemClock, UuidIds
from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.handlers.eraser import make_eraser_handler
from a2a_serverless.services.erasure import ErasureService
from a2a_serverless.settings import read
from a2a_serverless.wiring.process import make_metrics, start_handler
from a2a_serverless.wiring.stores import access_table, make_aws, task_log, task_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.handlers.invocations import Handler


def make_eraser(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the eraser function."""
    settings, aws = read(environment), make_aws()
    table, blobs = task_table(settings, aws), S3BlobStore(lambda: aws.s3, settings.need("BLOBS_BUCKET"))
    service = ErasureService(
        log=task_log(table, settings, aws),
        store=DynamoPushStore(table),
        erasure_store=DynamoErasureStore(table),
        blobs=blobs,
        api_keys=DynamoApiKeyStore(access_table(settings, aws)),
        clock=SystemClock(),
        ids=UuidIds(),
        place=lambda *names: f"{keys.path(*names)}/",
    )
    metrics = make_metrics(environment)
    return start_handler(make_eraser_handler(service), environment, metrics, "eraser", (InvalidParams,))
