"""A Lambda context for handlers that tests call directly."""

from __future__ import annotations

from aws_lambda_powertools.utilities.typing import LambdaContext


class Context(LambdaContext):
    """The context of an invocation that has ``left_ms`` milliseconds left."""

    _function_name = "function"
    _memory_limit_in_mb = 512
    _invoked_function_arn = "arn:aws:lambda:us-east-1:000000000000:function:function"
    _aws_request_id = "11111111-2222-4333-8444-555555555555"

    def __init__(self, left_ms: int = 60_000) -> None:
        self._left_ms = left_ms

    def get_remaining_time_in_millis(self) -> int:  # type: ignore[override] # theirs is static
        return self._left_ms
