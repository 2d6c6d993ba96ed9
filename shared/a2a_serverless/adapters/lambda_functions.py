"""Calls Lambda functions of a deployment by name, and waits for their answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError, ReadTimeoutError

from a2a_serverless.domain.deployed import CommandFailed
from a2a_serverless.domain.errors import Overloaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.domain.model import Json, JsonObject

REQUEST_TIMEOUT_S: Final = 25  # API Gateway takes 29 for a buffered answer
FUNCTION_TIMEOUT_S: Final = 910  # no function runs for longer than 900
THROTTLED: Final = frozenset({"TooManyRequestsException", "EC2ThrottledException"})


class LambdaFunctions:
    """Calls each function once, without retries: after a timeout it still runs, and a second call would overlap it."""

    def __init__(self, aws: Aws, waits_s: float = FUNCTION_TIMEOUT_S) -> None:
        self._aws = aws
        self._waits_s = waits_s

    def invoke(self, function: str, event: Mapping[str, Json]) -> JsonObject:
        """The function's answer.

        Raises CommandFailed when the function failed, TimeoutError when it still runs after ``waits_s`` seconds, and
        Overloaded when Lambda did not start it because too many functions run.
        """
        client = self._aws.client("lambda", read_s=self._waits_s, tries=1)
        try:
            answer = client.invoke(FunctionName=function, Payload=json.dumps(event).encode())
            body = json.loads(answer["Payload"].read())
        except ReadTimeoutError:
            raise TimeoutError(f"{function} has not ended in {self._waits_s} s and is still running") from None
        except ClientError as error:
            if error.response["Error"]["Code"] not in THROTTLED:
                raise
            raise Overloaded("Too many functions run at once. Try again.") from None
        if answer.get("FunctionError"):
            raise CommandFailed(f"{function} failed: {body.get('errorMessage', 'see its log')}")
        result: JsonObject = body
        return result
