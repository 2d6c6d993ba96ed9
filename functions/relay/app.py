"""Composition root of the relay function."""

from a2a_serverless.wiring.process import uncollected

with uncollected():
    from a2a_serverless.wiring.relay import make_relay

    handler = make_relay()
