"""Warm requests: sends messages and gets their tasks, and prints the processor time of one of each (us) as JSON.

``python -S many_calls.py <module> <path> <version> <times>``. Each candidate is asked as Lambda asks it: a handler, an
event of API Gateway's. What it leaves to be done after an answer is done during the next calls, and counts there.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from first_call import Context

NEW = {"send": "SendMessage", "get": "GetTask"}
OLD = {"send": "message/send", "get": "tasks/get"}
WARM_UP = 50
Call = Callable[[str], dict[str, Any]]


def body(version: str, kind: str, what: str) -> str:
    """A request; `what` is the message's or the task's id."""
    new = version == "1.0"
    params: dict[str, Any] = {"id": what}
    if kind == "send":
        part = {"text": "Say it again."} if new else {"kind": "text", "text": "Say it again."}
        message = {"messageId": what, "role": "ROLE_USER" if new else "user", "parts": [part]}
        waits: dict[str, Any] = {"returnImmediately": True} if new else {"blocking": False}
        params = {"message": message, "configuration": waits}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": (NEW if new else OLD)[kind], "params": params})


def caller(handler: Callable[..., dict[str, Any]], path: str, version: str) -> Call:
    """Asks a handler, and reads its answer."""
    headers = {"Content-Type": "application/json", "A2A-Version": version, "Host": "example.com"}
    event = {"resource": "/{agent}", "path": path, "httpMethod": "POST", "headers": headers, "isBase64Encoded": False}
    event |= {"multiValueHeaders": {name: [value] for name, value in headers.items()}}
    event |= {"queryStringParameters": None, "multiValueQueryStringParameters": None, "requestContext": {}}
    return lambda content: dict(json.loads(handler({**event, "body": content}, Context())["body"]))


def timed(call: Call, bodies: list[str]) -> tuple[float, list[dict[str, Any]]]:
    """The processor time of one call (us), and all answers."""
    start = time.process_time()
    answers = [call(content) for content in bodies]
    return (time.process_time() - start) / len(bodies) * 1_000_000, answers


def task_of(answer: dict[str, Any]) -> str:
    """The id of the task that a send has made; fails when there is none."""
    result = answer["result"]
    return str(result.get("task", result)["id"])


def main() -> None:
    """Prints the figures."""
    module, path, version, times = sys.argv[1:]
    call = caller(import_module(module).handler, path, version)
    timed(call, [body(version, "send", f"warm-{number}") for number in range(WARM_UP)])
    send, answers = timed(call, [body(version, "send", f"sent-{number}") for number in range(int(times))])
    get, found = timed(call, [body(version, "get", task_of(answer)) for answer in answers])
    if not all("result" in one for one in found):
        raise SystemExit(f"no result: {found[0]}")
    print(json.dumps({"send": send, "get": get}))


if __name__ == "__main__":
    main()
