"""The rotator's events: commands, its schedule, and the custom resource that makes the first key."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aws_lambda_powertools.utilities.data_classes import CloudFormationCustomResourceEvent
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from a2a_serverless.adapters.invocations import Event, Handler
    from a2a_serverless.http_client.transport import Transport

logger = logging.getLogger(__name__)

PHYSICAL_ID: Final = "key-ring"


class UnknownCommand(ValueError):
    """The rotator has no such command; the text lists its commands."""


def make_rotator_handler(
    commands: Mapping[str, Callable[[Event], dict[str, Any]]], answer: Callable[[str, bytes], None]
) -> Handler:
    """Returns the rotator's Lambda handler: CloudFormation's requests, commands (``{"command": ...}``), the schedule.

    ``commands`` has at least ``ensure`` (run for Create and Update) and ``schedule`` (run for events without a
    command). ``answer`` PUTs to the URL that CloudFormation gave.
    """

    def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
        del context
        if "RequestType" in event:
            from aws_lambda_powertools.utilities.data_classes import CloudFormationCustomResourceEvent

            return _custom_resource(CloudFormationCustomResourceEvent(dict(event)), commands["ensure"], answer)
        command = event.get("command", "schedule")
        if not isinstance(command, str) or command not in commands:
            raise UnknownCommand(f"unknown command; there are {', '.join(sorted(commands))}")
        logger.info("key ring command", extra={"command": command})
        return commands[command](event)

    return handler


def _custom_resource(
    event: CloudFormationCustomResourceEvent,
    ensure: Callable[[Event], dict[str, Any]],
    answer: Callable[[str, bytes], None],
) -> dict[str, Any]:
    """Always answers CloudFormation: without an answer a deployment hangs for an hour."""
    result: dict[str, Any] = {"Status": "SUCCESS", "Data": {}}
    try:
        if event.request_type != "Delete":
            result["Data"] = ensure(event.raw_event)
    except Exception as error:  # noqa: BLE001 - CloudFormation has to be answered
        logger.error("custom resource failed", extra=safe_error_fields(error))
        why = f": {error}" if isinstance(error, SettingsError) else "; see the log of the rotator"
        result = {"Status": "FAILED", "Reason": f"{type(error).__name__}{why}"}
    ids = {
        "StackId": event.stack_id,
        "RequestId": event.request_id,
        "LogicalResourceId": event.logical_resource_id,
        "PhysicalResourceId": event.physical_resource_id or PHYSICAL_ID,
    }
    answer(event.response_url, json.dumps(result | ids).encode())
    return result


def put_answer(url: str, body: bytes, transport: Transport | None = None) -> None:
    """PUTs the answer to the presigned URL of CloudFormation's request. Raises Unreachable."""
    from a2a_serverless.http_client import open_request
    from a2a_serverless.http_client.transport import ClientRequest, Unreachable

    request = ClientRequest(url, {"content-type": ""}, body, put=True)
    with (transport or open_request)(request) as answer:
        if answer.status != HTTPStatus.OK:
            raise Unreachable(urlsplit(url).netloc, f"HTTP {answer.status}")  # without the signature
