"""An app behind a real socket on this machine."""

import asyncio
import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from a2a_webhook_receiver.receive import WebhookRequest


@contextmanager
def serving(app: ASGIApp, listener: socket.socket | None = None) -> Iterator[int]:
    """The port where ``app`` answers. It listens before the server runs, so nobody has to wait for it."""
    listener = listener or socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)

    async def serve() -> None:
        await server.serve([listener])
        for connection in server.server_state.connections:  # an open stream, a second after the end
            connection.transport.abort()
        await asyncio.sleep(0)  # the loop closes what was aborted

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def post(port: int, request: WebhookRequest) -> tuple[int, bytes]:
    """The status and body of the answer to a webhook."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/webhook", request.body, dict(request.headers))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
