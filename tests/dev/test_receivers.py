"""A receiver on this machine that is started again gets at once what waits for it."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.domain.circuit_breaker import FAILURE_THRESHOLD, OpenBreaker
from a2a_serverless.protocol.v1 import Task
from a2a_serverless.services.circuit_breakers import CircuitOpen
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.tasks import send
from a2a_serverless_tools.dev.receivers import ReceiverWatch
from a2a_serverless_tools.local.deployment import LocalDeployment
from a2a_serverless_tools.local.server import listen
from tests.echo import Writer
from tests.world import ME, World, webhook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.cursors import Cursor

pytestmark = pytest.mark.enable_socket

DEADLINE_S: Final = 60


class Hook(BaseHTTPRequestHandler):
    """Echoes challenges and accepts everything else."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps({"challenge": body.get("challenge")}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Writes nothing."""


@contextmanager
def served(port: int) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", port), Hook) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield
        server.shutdown()
        thread.join()


@contextmanager
def dispatching() -> Iterator[LocalDeployment]:
    deployment = LocalDeployment([Writer().agent], "http://127.0.0.1:8000")
    thread = threading.Thread(target=deployment.dispatch)
    thread.start()
    try:
        yield deployment
    finally:
        deployment.close()
        thread.join()


def until(done: Any) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_deliveries_that_wait_are_sent_when_their_receiver_listens_again() -> None:
    with listen(0) as free:
        port = free.getsockname()[1]
    request = World([Writer().agent]).request("hello", push=False)
    hook = webhook(f"http://127.0.0.1:{port}/hook")
    configuration = request.configuration.model_copy(update={"task_push_notification_config": hook})
    with dispatching() as deployment:
        keys = []
        for number in range(FAILURE_THRESHOLD + 2):
            message = request.message.model_copy(update={"message_id": f"m-{number}"})
            asked = request.model_copy(update={"message": message, "configuration": configuration})
            task = send(deployment.service, RequestContext(ME, "echo", "1.0"), asked)
            assert isinstance(task, Task)
            keys.append(ME.key(task.id))

        def cursors() -> list[Cursor]:
            return [cursor for key in keys for cursor in deployment.table.list_cursors(key)]

        until(lambda: all(cursor.next_at for cursor in cursors()) and any(cursor.unanswered for cursor in cursors()))
        watch = ReceiverWatch(deployment)
        watch.look()
        assert all(cursor.position == 0 for cursor in cursors())
        with served(port):
            watch.look()
            until(lambda: all(cursor.position == deployment.table.read_head(keys[0]).last for cursor in cursors()))


def test_a_receiver_that_listens_and_answers_nothing_is_not_redriven_again_and_again() -> None:
    deployment = LocalDeployment([Writer().agent], "http://127.0.0.1:8000")
    with listen(0) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        opened = OpenBreaker(deployment.clock.now() + 30_000)
        deployment.table.store_open_breaker(host, opened)
        with pytest.raises(CircuitOpen):
            deployment.post.breakers.check(host, deployment.clock.now())
        watch = ReceiverWatch(deployment)
        for _ in range(3):
            watch.look()
        assert deployment.table.get_open_breaker(host) == opened
    deployment.close()


def test_hosts_elsewhere_get_no_connection() -> None:
    deployment = LocalDeployment([Writer().agent], "http://127.0.0.1:8000")
    with listen(0) as listener:
        host = f"localhost:{listener.getsockname()[1]}"
        deployment.table.store_open_breaker(host, OpenBreaker(deployment.clock.now() + 30_000))
        with pytest.raises(CircuitOpen):
            deployment.post.breakers.check(host, deployment.clock.now())
        ReceiverWatch(deployment).look()
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()
    deployment.close()
