"""Composition root of the rotator function."""

from a2a_serverless.aws.process import uncollected

with uncollected():
    from a2a_serverless.wiring.rotator import make_rotator

    handler = make_rotator()
