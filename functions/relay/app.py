"""Composition root of the relay function."""

import aws_lambda_powertools.utilities.batch  # noqa: F401 - first: after pydantic it imports models for 0.3 s

from a2a_serverless.aws.process import uncollected

with uncollected():
    from a2a_serverless.wiring.relay import make_relay

    handler = make_relay()
