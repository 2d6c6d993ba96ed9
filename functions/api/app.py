"""Composition root of the api function."""

from typing import Any


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Proves that the function is deployed, until its real handler is wired."""
    del context
    print({"api": event})
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": '{"ok":true}'}
