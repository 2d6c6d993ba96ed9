"""Composition root of the rotator function."""

from a2a_serverless.wiring import make_rotator

handler = make_rotator()
