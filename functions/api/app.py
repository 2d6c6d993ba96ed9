"""Composition root of the api function."""

from a2a_serverless.wiring import make_api

handler = make_api()
