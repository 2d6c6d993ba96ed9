"""Composition root of the eraser function."""

from a2a_serverless.wiring.process import uncollected

with uncollected():
    from a2a_serverless.wiring.eraser import make_eraser

    handler = make_eraser()
