"""Composition root of the sweeper function."""

from a2a_serverless.wiring import make_sweeper

handler = make_sweeper()
