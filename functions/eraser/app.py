"""Composition root of the eraser function."""

from a2a_serverless.wiring import make_eraser

handler = make_eraser()
