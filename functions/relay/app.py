"""Composition root of the relay function."""

from a2a_serverless.wiring import make_relay

handler = make_relay()
