"""The plain stack: FastAPI under Mangum, pydantic, boto3, Powertools, PyJWT, all imported at the top; one put."""

import os
from typing import Any
from uuid import uuid4

import boto3
import jwt
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from fastapi import FastAPI
from mangum import Mangum
from pydantic import BaseModel

logger = Logger(service="plain", level="WARNING")
metrics = Metrics(namespace="plain", service="plain")
table = boto3.resource("dynamodb").Table(os.environ["TABLE_NAME"])
algorithms = jwt.algorithms.get_default_algorithms()
app = FastAPI()


class Message(BaseModel):
    """What the client says."""

    messageId: str  # noqa: N815 - as on the wire
    role: str
    parts: list[dict[str, Any]]


class Params(BaseModel):
    """The parameters of SendMessage."""

    message: Message
    configuration: dict[str, Any] | None = None


class Call(BaseModel):
    """A JSON-RPC request."""

    jsonrpc: str
    id: int | str
    method: str
    params: Params


@app.post("/{agent}")
def send(agent: str, call: Call) -> dict[str, Any]:
    """Stores the message as a submitted task."""
    task = {"id": str(uuid4()), "contextId": str(uuid4()), "status": {"state": "TASK_STATE_SUBMITTED"}}
    message = call.params.message.model_dump()
    item: dict[str, Any] = {"pk": f"TASK#{task['id']}", "sk": "HEAD", "task": task, "message": message, "agent": agent}
    table.put_item(Item=item, ConditionExpression="attribute_not_exists(pk)")
    metrics.add_metric("Tasks", MetricUnit.Count, 1)
    logger.info("stored", extra={"task": task["id"]})
    return {"jsonrpc": "2.0", "id": call.id, "result": {"task": task}}


handler = Mangum(app, lifespan="off")
