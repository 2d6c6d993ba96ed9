"""Composition root of the api function where answers are streamed."""

from a2a_serverless.wiring.process import uncollected

with uncollected():
    from a2a_serverless.wiring.api import make_streaming_api, stream_api

    handler, tracer = make_streaming_api()

stream_api(handler, tracer)
