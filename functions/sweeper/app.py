"""Composition root of the sweeper function."""

from a2a_serverless.aws.process import uncollected

with uncollected():
    from a2a_serverless.wiring.sweeper import make_sweeper

    handler = make_sweeper()
