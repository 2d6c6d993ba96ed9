"""Composition root of the worker function."""

from a2a_serverless.wiring.process import uncollected

with uncollected():
    from a2a_serverless.wiring.worker import make_worker

    handler = make_worker()
