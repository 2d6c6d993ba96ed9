"""Composition root of the worker function."""

from a2a_serverless.wiring import make_worker

handler = make_worker()
