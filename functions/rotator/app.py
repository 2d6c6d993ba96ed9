"""Composition root of the rotator function."""

import json
import urllib.request
from typing import Any


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answers CloudFormation."""
    del context
    print({"rotator": event})
    if "ResponseURL" in event:
        body = {
            "Status": "SUCCESS",
            "PhysicalResourceId": "key-ring",
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
        }
        request = urllib.request.Request(event["ResponseURL"], data=json.dumps(body).encode(), method="PUT")
        urllib.request.urlopen(request).close()
    return {}
