"""A cold start as Lambda has it: import a candidate's handler, give it its first event, check the answer, end at once.

The process ends without tearing the interpreter down, because Lambda freezes an instance there and never pays for it.
``python -S first_call.py <module> <path> <method>``; the candidate's packages come by PYTHONPATH. The same for all.
"""

import json
import os
import sys
from importlib import import_module
from typing import Any


class Context:
    """What Lambda says of an invocation."""

    function_name = "candidate"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:us-east-1:000000000000:function:candidate"
    aws_request_id = "00000000-0000-4000-8000-000000000000"

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        """Time enough."""
        return 29_000


def send_event(path: str, method: str) -> dict[str, Any]:
    """A SendMessage as API Gateway's REST API passes it on; `method` says which version speaks."""
    new = method == "SendMessage"
    part = {"text": "Say it again."} if new else {"kind": "text", "text": "Say it again."}
    message = {"messageId": "first", "role": "ROLE_USER" if new else "user", "parts": [part]}
    params = {"message": message} if not new else {"message": message, "configuration": {"returnImmediately": True}}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Content-Type": "application/json", "A2A-Version": "1.0" if new else "0.3", "Host": "example.com"}
    return {
        "resource": "/{agent}",
        "path": path,
        "httpMethod": "POST",
        "headers": headers,
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "requestContext": {"stage": "live", "identity": {"sourceIp": "203.0.113.7"}, "requestId": "1"},
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }


def main() -> None:
    """Fails unless the answer has a result; ends the process."""
    module, path, method = sys.argv[1:]
    answer = import_module(module).handler(send_event(path, method), Context())
    body = json.loads(answer["body"])
    if answer["statusCode"] != 200 or "result" not in body:  # noqa: PLR2004
        raise SystemExit(f"no result: {answer}")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
