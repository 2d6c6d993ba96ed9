"""A Lambda function that receives webhooks, without FastAPI. Behind API Gateway or a function URL.

Package it with ``a2a-webhook-receiver`` (boto3 is in Lambda's Python runtime). Variables: ``ISSUER``; ``AUDIENCE``,
this function's URL exactly as it is registered; ``REPLAY_TABLE``, the DynamoDB table (keys ``pk``, ``sk``; TTL
``expires``); and ``WEBHOOK_TOKEN``, or a token is registered for each task.
"""

from a2a_webhook_receiver.aws_lambda import make_handler
from a2a_webhook_receiver.receive import Claimed


def handle(claimed: Claimed) -> None:
    """Change this. It gets each notification at least once; if it raises or dies, the next attempt calls it again."""
    print(claimed.notification.subject.task_id, claimed.notification.content.state)  # noqa: T201 - an example


handler = make_handler(handle)
