"""Composition root of the api function."""

from a2a_serverless.wiring.process import uncollected

with uncollected():
    from a2a_serverless.wiring.api import make_api

    handler = make_api()
