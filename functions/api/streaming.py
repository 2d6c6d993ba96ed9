"""Composition root of the api function where answers are streamed."""

from a2a_serverless.wiring import stream_api

stream_api()
