"""Composition root of the api function."""

from a2a_serverless.aws.process import uncollected

with uncollected():
    from a2a_serverless.aws.api import make_api

    handler = make_api()
