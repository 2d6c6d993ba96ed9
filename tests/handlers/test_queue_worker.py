"""A worker outside of Lambda takes the messages of its queue, as many as it may, and stops when it is told to."""

from __future__ import annotations

import json
import socket
import sys
import threading
import urllib.error
import urllib.request
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import EndpointConnectionError

from a2a_serverless.aws.queue_worker import HAND_OVER_S, STALE_S, QueueWorker, serve_health
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.queue_messages import DeliveryMessage, WorkMessage, to_json
from a2a_serverless.settings import SettingsError
from tests.adapters.clouds import cloud
from tests.handlers.test_queues import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_serverless.domain.queue_messages import QueueMessage

DEADLINE_S = 60


def work(number: int) -> WorkMessage:
    return WorkMessage(TaskKey("tenant", "owner", f"task-{number}"))


class Bench:
    """A queue, its worker in a thread, and the work under way. ``holds`` keeps all work until it is false."""

    def __init__(self, client: Any, at_once: int = 5, drain_s: float = 0, poll_s: int = 0) -> None:
        self.client = client
        self.url = client.create_queue(QueueName="work")["QueueUrl"]
        self.now = 100.0
        self.holds = False
        self.fails: dict[QueueMessage, BaseException] = {}
        self.begun: list[QueueMessage] = []
        self.receipts: list[str] = []
        self.under_way = self.most = 0
        self.changed = Condition()
        self.flushes = 0
        self.worker = QueueWorker(
            self,  # type: ignore[arg-type]
            self.url,
            self.answer,
            at_once,
            drain_s,
            self.flush,
            poll_s=poll_s,
            monotonic=lambda: self.now,
        )
        self.down = self.silent = self.asks = False
        self.left: int | None = None
        self.ended_before: list[bool] = []
        self.thread = Thread(target=self._run, daemon=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def receive_message(self, **options: Any) -> Any:
        """The queue's answer, or its failure while it is down. While it is silent, it ``asks`` in vain.

        ``ended_before`` says of each answer whether the worker had ended before it came.
        """
        if self.down:
            raise EndpointConnectionError(endpoint_url="http://queue")
        with self.changed:
            self.asks = self.silent
            self.changed.wait_for(lambda: not self.silent, DEADLINE_S)
        self.ended_before.append(self.left is not None)
        return self.client.receive_message(**options)

    def flush(self) -> None:
        self.flushes += 1

    def _run(self) -> None:
        self.left = self.worker.run()

    def answer(self, message: QueueMessage, remaining_ms: Callable[[], int], receipt: str) -> Ending:
        del remaining_ms
        with self.changed:
            self.receipts.append(receipt)
            self.begun.append(message)
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            self.changed.notify_all()
            self.changed.wait_for(lambda: not self.holds or self.worker.is_replaced, DEADLINE_S)
            self.under_way -= 1
            self.changed.notify_all()
        if message in self.fails:
            raise self.fails[message]
        return Ending.DONE

    def send(self, *messages: QueueMessage | str) -> None:
        for message in messages:
            body = message if isinstance(message, str) else json.dumps(to_json(message))
            self.client.send_message(QueueUrl=self.url, MessageBody=body)

    def until(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            for _ in range(DEADLINE_S * 20):
                if condition():
                    return
                self.changed.wait(0.05)
        raise AssertionError("it did not happen in time")

    def count(self) -> tuple[int, int]:
        """The numbers of visible and of hidden messages."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        attributes = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return int(attributes[names[0]]), int(attributes[names[1]])

    def release(self) -> None:
        with self.changed:
            self.holds = False
            self.changed.notify_all()

    def stop(self) -> int | None:
        self.worker.stop()
        with self.changed:
            self.changed.notify_all()
        self.thread.join(DEADLINE_S)
        return self.left


@pytest.fixture
def client() -> Iterator[Any]:
    with cloud("sqs") as made:
        yield made


def test_each_message_is_answered_and_deleted(client: Any) -> None:
    bench = Bench(client)
    bench.send(*map(work, range(12)))
    bench.thread.start()
    bench.until(lambda: bench.count() == (0, 0))
    assert bench.stop() == 0
    assert sorted(message.key.task for message in bench.begun) == sorted(f"task-{number}" for number in range(12))


def test_no_more_tasks_run_at_once_than_there_are_places(client: Any) -> None:
    bench = Bench(client, at_once=2)
    bench.holds = True
    bench.send(*map(work, range(5)))
    bench.thread.start()
    bench.until(lambda: bench.under_way == 2)
    assert bench.count() == (3, 2)
    bench.release()
    bench.until(lambda: bench.count() == (0, 0))
    assert (bench.most, bench.stop()) == (2, 0)


def test_a_task_that_an_earlier_process_has_left_runs_although_its_message_does_not_come(client: Any) -> None:
    bench = Bench(client, at_once=1)
    bench.holds = bench.silent = True
    bench.thread.start()
    for number in range(2):
        bench.worker.recover(work(number).key)
    bench.until(lambda: bench.under_way == 2)
    assert bench.receipts == ["", ""]
    bench.silent = False
    assert bench.stop() == 0


@pytest.mark.parametrize("failure", [ValueError("secret"), SystemExit(1), KeyboardInterrupt()])
def test_a_message_whose_work_fails_comes_again_later_and_ends_no_other(client: Any, failure: BaseException) -> None:
    bench = Bench(client)
    bench.fails = {work(0): failure}
    bench.send(work(0), work(1))
    bench.thread.start()
    bench.until(lambda: len(bench.begun) == 2 and bench.count() == (0, 1))
    assert bench.stop() == 0


def test_an_invalid_message_is_discarded_and_one_of_a_newer_release_is_left(client: Any) -> None:
    bench = Bench(client)
    newer = json.dumps(to_json(work(1)) | {"v": 99})
    bench.send("not json", json.dumps(to_json(DeliveryMessage(TaskKey("t", "o", "x"), "hook"))), newer, work(2))
    bench.thread.start()
    bench.until(lambda: bench.count() == (0, 1))
    assert (bench.begun, bench.stop()) == ([work(2)], 0)


def test_a_worker_that_stops_takes_no_more_and_hands_its_tasks_over(client: Any) -> None:
    bench = Bench(client)
    bench.holds = True
    bench.send(work(0))
    bench.thread.start()
    bench.until(lambda: bench.under_way == 1)
    assert (bench.worker.is_replaced, bench.worker.remaining_ms() > 10**12) == (False, True)
    client.change_message_visibility(QueueUrl=bench.url, ReceiptHandle=bench.receipts[0], VisibilityTimeout=18)
    assert bench.stop() == 0
    bench.send(work(1))
    assert (bench.begun, bench.count()) == ([work(0)], (1, 0))


def test_a_worker_that_stops_while_it_receives_gives_the_messages_back(client: Any) -> None:
    bench = Bench(client, poll_s=DEADLINE_S)
    bench.silent = True
    bench.thread.start()
    bench.until(lambda: bench.asks)
    bench.worker.stop()
    bench.send(work(0), work(1))
    bench.silent = False
    assert bench.stop() == 0
    assert (bench.begun, bench.count()) == ([], (2, 0))
    assert bench.ended_before == [False], "its process would have died with the messages"


def test_tasks_go_on_while_the_worker_drains(client: Any) -> None:
    bench = Bench(client, drain_s=3600)
    bench.holds = True
    bench.send(work(0))
    bench.thread.start()
    bench.until(lambda: bench.under_way == 1)
    bench.worker.stop()
    bench.now += 3599
    assert not bench.worker.is_replaced
    assert bench.worker.remaining_ms() == (1 + HAND_OVER_S) * 1000
    bench.now += 1
    assert bench.worker.is_replaced
    assert bench.worker.remaining_ms() == HAND_OVER_S * 1000
    assert bench.stop() == 0


def test_a_queue_that_does_not_answer_is_asked_again_and_makes_the_worker_unhealthy(client: Any) -> None:
    bench = Bench(client)
    bench.down = True
    bench.thread.start()
    assert bench.worker.is_healthy
    bench.now += STALE_S
    assert not bench.worker.is_healthy
    bench.down = False
    bench.send(work(0))
    bench.until(lambda: bench.begun == [work(0)])
    bench.until(lambda: bench.worker.is_healthy)
    assert bench.stop() == 0


def test_a_worker_without_a_free_place_is_healthy(client: Any) -> None:
    bench = Bench(client, at_once=1)
    bench.holds = True
    bench.send(work(0))
    bench.thread.start()
    bench.until(lambda: bench.under_way == 1)
    bench.now += 10 * STALE_S
    assert bench.worker.is_healthy
    assert bench.stop() == 0


@pytest.mark.enable_socket
def test_the_health_port_says_whether_the_worker_is_healthy(client: Any) -> None:
    bench = Bench(client)
    server = serve_health(bench.worker, "127.0.0.1:0")
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
        assert answer.status == 200
    bench.now += STALE_S
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url, timeout=DEADLINE_S)
    assert refused.value.code == 503
    refused.value.close()
    server.shutdown()
    server.server_close()


def test_a_worker_whose_last_place_is_free_again_is_healthy_before_the_queue_answers(client: Any) -> None:
    bench = Bench(client, at_once=1)
    bench.holds = True
    bench.send(work(0))
    bench.thread.start()
    bench.until(lambda: bench.under_way == 1)
    bench.now += 10 * STALE_S
    bench.silent = True
    bench.release()
    bench.until(lambda: bench.asks)
    assert bench.worker.is_healthy
    bench.silent = False
    assert bench.stop() == 0


def test_a_message_for_which_there_is_no_thread_comes_again_and_the_worker_goes_on(client: Any) -> None:
    bench = Bench(client)
    bench.send(work(0))
    bench.thread.start()
    bench.until(lambda: bench.count() == (0, 0))
    before = threading.stack_size(2**46)  # no thread can be started
    try:
        bench.send(work(1))
        bench.until(lambda: bench.count() == (0, 1))
    finally:
        threading.stack_size(before)
    bench.send(work(2))
    bench.until(lambda: bench.count() == (0, 1) and bench.begun == [work(0), work(2)])
    assert bench.stop() == 0


def test_spans_are_sent_while_nothing_comes_and_while_all_places_are_taken_and_at_the_end(client: Any) -> None:
    bench = Bench(client, at_once=1)
    bench.thread.start()
    bench.until(lambda: bench.flushes > 1)
    bench.holds = True
    bench.send(work(0))
    bench.until(lambda: bench.under_way == 1)
    before = bench.flushes
    bench.until(lambda: bench.flushes > before + 1)
    bench.silent = True
    bench.release()
    bench.until(lambda: bench.asks)
    before = bench.flushes
    bench.worker.stop()
    bench.silent = False
    assert bench.stop() == 0
    assert bench.flushes > before


def test_signals_between_any_two_lines_of_its_code_stop_it(client: Any) -> None:
    bench = Bench(client)

    def trace(*_: object) -> Any:
        bench.worker.stop()
        return trace

    def run() -> None:
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            bench.left = bench.worker.run()
        finally:
            sys.settrace(before)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(DEADLINE_S)
    assert bench.left == 0


@pytest.mark.enable_socket
def test_a_health_address_that_is_not_free_is_named(client: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SettingsError, match=f"HEALTH_ADDRESS cannot be used: {address}"):
            serve_health(Bench(client).worker, address)
