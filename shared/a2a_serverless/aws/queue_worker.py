"""The worker as a process of its own, outside of Lambda: ``python -m a2a_serverless.aws.queue_worker``.

It takes messages from the work queue and runs their tasks with the engine of the worker function, each in a thread and
an event loop. A message is deleted when its work has ended. If the process dies, the leases of its tasks expire, their
messages come again, and another worker takes them. A process that has a name (``WORKER_NAME``) takes the tasks that an
earlier process of this name has left at once.

On SIGTERM it takes no more messages. Its tasks may go on for ``DRAIN_SECONDS``, then they are handed over to the next
worker: a step that is interrupted runs again there.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Condition, Thread
from typing import TYPE_CHECKING, Final

from a2a_serverless.aws.batches import NotAnswered, answer_message
from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.domain.queue_messages import QueueMessage, TickMessage, WorkMessage, to_json
from a2a_serverless.settings import SettingsError, read

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from enum import Enum

    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

    from a2a_serverless.domain.model import TaskKey

BATCH: Final = 10  # SQS gives no more in one call
POLL_S: Final = 5
FAILED_S: Final = 60  # until a message comes again whose work failed
PAUSE_S: Final = 1.0  # after a call that failed
STALE_S: Final = 60  # without an answer of the queue for so long, the process is not healthy
HAND_OVER_S: Final = 20

logger = logging.getLogger("a2a_serverless.aws.queue_worker")  # the module runs as __main__


class QueueWorker:
    """Answers the messages of the work queue, ``at_once`` of them at the same time, until ``stop`` is called.

    ``answer`` gets a message, a function that says how many ms are left, and the message's receipt. A call waits
    ``poll_s`` for messages.
    ``flush`` is called after each call and at the end. ``monotonic`` is a clock in seconds.
    """

    def __init__(  # noqa: PLR0913 - the parts of a worker, and its times
        self,
        client: SQSClient,
        queue_url: str,
        answer: Callable[[QueueMessage, Callable[[], int], str], Enum],
        at_once: int,
        drain_s: float = 0,
        flush: Callable[[], object] = lambda: None,
        *,
        poll_s: int = POLL_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._url, self._answer = client, queue_url, answer
        self._at_once, self._drain_s, self._poll_s, self._monotonic = at_once, drain_s, poll_s, monotonic
        self._flush = flush
        self._changed, self._under_way = Condition(), 0
        self._stops = SimpleQueue[None]()  # an Event may be locked by the code that a signal interrupts
        self._stopped_at: float | None = None
        self._polled_at = monotonic()

    @property
    def is_replaced(self) -> bool:
        """Whether the tasks have to be handed over to another worker."""
        return self._stopped_at is not None and self._monotonic() - self._stopped_at >= self._drain_s

    @property
    def is_healthy(self) -> bool:
        """Whether the queue has answered lately, or no message was asked for because all places are taken."""
        return self._under_way >= self._at_once or self._monotonic() - self._polled_at < STALE_S

    def stop(self) -> None:
        """Takes no more messages. Safe in a signal handler."""
        if self._stopped_at is None:
            self._stopped_at = self._monotonic()
        self._stops.put(None)

    def remaining_ms(self) -> int:
        """The time that is left for a task: without an end until ``stop``, then until after the hand-over."""
        if self._stopped_at is None:
            return 2**53
        left_s = self._stopped_at + self._drain_s - self._monotonic()
        return int((max(0.0, left_s) + HAND_OVER_S) * 1000)

    def run(self) -> int:
        """Answers messages until it is stopped and its work has ended. Returns the number of tasks that it left."""
        poller = Thread(target=self._poll, name="poll", daemon=True)
        poller.start()
        self._stops.get()
        poller.join(2 * self._poll_s + PAUSE_S)  # it may have taken messages
        until = (self._stopped_at or 0) + self._drain_s + HAND_OVER_S
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way, max(0.0, until - self._monotonic()))
            count = self._under_way
        self._flush()
        return count

    def _poll(self) -> None:
        while self._stopped_at is None:
            with self._changed:
                self._changed.wait_for(lambda: self._under_way < self._at_once, PAUSE_S)
                free = self._at_once - self._under_way
            if free > 0:
                self._take(min(free, BATCH))
            self._flush()

    def _take(self, most: int) -> None:
        try:
            answer = self._client.receive_message(
                QueueUrl=self._url, MaxNumberOfMessages=most, WaitTimeSeconds=self._poll_s
            )
        except Exception as error:  # noqa: BLE001 - the queue is asked again
            logger.warning("queue not read", extra=safe_error_fields(error))
            time.sleep(PAUSE_S)
            return
        self._polled_at = self._monotonic()
        for message in answer.get("Messages", []):
            try:
                self._start(partial(self._handle, message))
            except RuntimeError as error:  # the process may have no more threads
                logger.warning("no thread for a queue message", extra=safe_error_fields(error))
                self._work(partial(self._release, message))

    def recover(self, key: TaskKey) -> None:
        """Runs a task that an earlier process has left, although all places may be taken.

        Its message in the queue may come late: SQS may hand it to the last call of the process that was killed. Then it
        would be hidden until the sweeper enqueues another.
        """
        self._start(partial(self._is_answered, json.dumps(to_json(WorkMessage(key))), "", ""))

    def _start(self, work: Callable[[], object]) -> None:
        """Does the work in a thread. Raises RuntimeError if there is none."""
        with self._changed:
            self._under_way += 1
        Thread(target=self._work, args=(work,), name="message", daemon=True).start()

    def _handle(self, message: MessageTypeDef) -> None:
        receipt = message["ReceiptHandle"]
        if self._stopped_at is None and self._is_answered(message["Body"], message["MessageId"], receipt):
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=receipt)
        else:
            self._release(message)

    def _work(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the message comes again
            logger.warning("queue message not deleted", extra=safe_error_fields(error))
        finally:
            with self._changed:
                if self._under_way == self._at_once:
                    self._polled_at = self._monotonic()  # until now there was nothing to ask for
                self._under_way -= 1
                self._changed.notify_all()

    def _is_answered(self, body: str, message_id: str, receipt: str) -> bool:
        """Whether the message is done. SQS delivers it again if it is not."""
        try:
            answer_message(
                (WorkMessage, TickMessage),
                body,
                message_id,
                lambda one, remaining_ms: self._answer(one, remaining_ms, receipt),
                self.remaining_ms,
            )
        except NotAnswered:
            return False
        return True

    def _release(self, message: MessageTypeDef) -> None:
        handle, after_s = message["ReceiptHandle"], FAILED_S if self._stopped_at is None else 0
        self._client.change_message_visibility(QueueUrl=self._url, ReceiptHandle=handle, VisibilityTimeout=after_s)


def serve_health(worker: QueueWorker, address: str) -> ThreadingHTTPServer:
    """Serves 200 or 503 for every GET at ``host:port``, in a thread. Raises SettingsError if it cannot."""
    host, _, port = address.rpartition(":")

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if worker.is_healthy else 503)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Writes no line for each look."""

    try:
        server = ThreadingHTTPServer((host, int(port)), Health)
    except OSError as error:
        raise SettingsError(f"HEALTH_ADDRESS cannot be used: {address}: {error.strerror}") from None
    Thread(target=server.serve_forever, name="health", daemon=True).start()
    return server


def main(environment: Mapping[str, str]) -> int:
    """Works until SIGTERM or SIGINT. Returns the exit code: 0, or 1 if tasks could not be handed over in time."""
    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.adapters.logs import start_process_log
    from a2a_serverless.aws.engine import make_worker
    from a2a_serverless.aws.process import make_metrics, make_tracer
    from a2a_serverless.engine.lease import recover_tasks

    settings, aws = read(environment), Aws()
    start_process_log(environment)
    metrics, tracer = make_metrics(environment), make_tracer(environment)
    work = make_worker(settings, aws, metrics, tracer, lambda: worker.is_replaced)

    def stop(number: int, frame: object) -> None:
        del number, frame
        worker.stop()

    url = settings.need("WORK_QUEUE_URL")
    worker = QueueWorker(aws.sqs, url, work, settings.tasks_at_once, settings.drain_seconds, tracer.flush)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if settings.health_address:
        serve_health(worker, settings.health_address)
    metrics.count("ColdStart", function="worker")
    logger.info("worker started", extra={"count": settings.tasks_at_once})
    if settings.worker_name:
        keys = recover_tasks(work.engine)
        logger.info("tasks recovered", extra={"count": len(keys)})
        for key in keys:
            worker.recover(key)
    count = worker.run()
    logger.info("worker ended", extra={"count": count})
    return 1 if count else 0


if __name__ == "__main__":
    raise SystemExit(main(os.environ))
