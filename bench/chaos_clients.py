"""The clients of ``chaos.py``, the receiver of their webhooks, and what the table holds at the end.

The clients come in rounds, of which each has a tenant and a history of its own.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final
from urllib.request import urlopen

from faulty_proxy import QuietServer
from measuring import ROOT

sys.path.insert(0, str(ROOT))

from a2a_serverless.adapters.clock import SystemClock
from a2a_serverless.client import Unreachable, open_request
from a2a_serverless.domain.cursors import CursorState
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.store import keys
from a2a_serverless.store.dynamodb import DynamoTable, RetryPolicy
from a2a_serverless.store.payloads import PayloadStore
from a2a_serverless.store.push_store import PushStore
from a2a_serverless.store.task_log import TaskLog
from a2a_serverless.testing.memory import MemoryBlobStore
from a2a_serverless_tools.stack import sam
from a2a_webhook_receiver.errors import Refused
from a2a_webhook_receiver.keys import KeySet, parse_key_set
from a2a_webhook_receiver.verifier import accept_challenge, authenticate, is_challenge, read_envelope
from tests.histories.check import check
from tests.histories.clients import Board, Client, HttpTransport, Program, look_at_the_end
from tests.histories.history import History, Operation, Recorder, log_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from random import Random

    from a2a_serverless.client import ClientRequest, ClientResponse
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey

AGENT: Final = "chaos"
CLIENTS: Final = 4
ACTIONS: Final = 10
REFUSED: Final = 0.03  # of the notifications; one of three of these gets no answer at all
PAUSE_S: Final = 0.2
LARGEST: Final = 100_000
READABLE: Final = ("application/json", "application/a2a+json", "text/event-stream")


@dataclass
class Observed:
    """What clients and the receiver saw that no server may do."""

    is_stopping: Callable[[float, float], bool]
    wrong: list[str] = field(default_factory=list)
    excused: int = 0

    @contextmanager
    def open_request(self, request: ClientRequest) -> Iterator[ClientResponse]:
        """Sends a request. An answer that is neither JSON nor a stream is judged, and then as good as none."""
        began = time.monotonic()
        with self._waiting(), open_request(request) as answer:
            if answer.headers.get("content-type", "").startswith(READABLE):
                yield answer
                return
            self.judge(began, answer.status, answer.body.read(LARGEST))
        raise Unreachable(request.url, f"an answer of status {answer.status} that is not JSON")

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Lets a client without an answer wait while the api is down, as clients do, before it goes on."""
        try:
            yield
        except Unreachable:
            while self.is_stopping(now := time.monotonic(), now):
                time.sleep(PAUSE_S)
            raise

    def judge(self, began: float, status: int, body: bytes) -> None:
        """A server that is being stopped may answer 5xx in plain text (uvicorn does), as a load balancer would."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR and self.is_stopping(began, time.monotonic()):
            self.excused += 1
        else:
            self.wrong.append(f"an answer of status {status} is not JSON: {body[:100]!r}")


class TenantTransport(HttpTransport):
    """The agent, by one tenant."""

    def __init__(self, url: str, tenant: str, observed: Observed) -> None:
        super().__init__(url, {}, observed.open_request)
        self._tenant = tenant

    def call(self, method: str, params: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        return super().call(method, {**params, "tenant": self._tenant})

    def stream(self, method: str, params: Mapping[str, Any], after: int | None) -> Iterator[tuple[int, Any]]:
        return super().stream(method, {**params, "tenant": self._tenant}, after)


@dataclass
class Round:
    """Clients that know of each other's tasks, and their history."""

    tenant: str
    client: Client
    recorder: Recorder = field(default_factory=Recorder)

    def play(self, random: Random, hook: Callable[[str], str]) -> None:
        """Runs the clients to their end."""
        board = Board()
        programs = [
            Program(
                name=f"{self.tenant}-{number}",
                client=self.client,
                board=board,
                random=random,
                sleep=time.sleep,
                hook=hook,
                actions=ACTIONS,
                played=0,
            )
            for number in range(CLIENTS)
        ]
        threads = [Thread(target=program.run) for program in programs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def history(self, logs: dict[str, Any]) -> History:
        """Returns the history, once all is at rest, with these logs."""
        look_at_the_end(self.client)
        self.recorder.history.logs = logs
        return self.recorder.history


@dataclass
class Rounds:
    """All rounds. ``receiver`` is where their webhooks go."""

    url: str
    observed: Observed
    receiver: str = ""
    made: dict[str, Round] = field(default_factory=dict)

    def play(self, random: Random) -> None:
        """Plays one round."""
        tenant, recorder = f"round-{len(self.made) + 1}", Recorder()
        transport = TenantTransport(f"{self.url}/{AGENT}", tenant, self.observed)
        one = self.made[tenant] = Round(tenant, Client(transport, recorder), recorder)
        one.play(random, lambda name: f"{self.receiver}/{tenant}/{name}")

    def operations(self) -> list[Operation]:
        """Returns what the clients of all rounds did."""
        return [one for made in self.made.values() for one in made.recorder.history.operations]

    def broken(self, store: Store, *, settled: bool) -> list[str]:
        """Returns the promises that were broken, in words."""
        found, logs = [*self.observed.wrong, *store.failed()], store.logs()
        for tenant, one in self.made.items():
            history = one.history(logs[tenant])
            history.settled = settled
            found += [f"{tenant}: {wrong.promise}: {wrong.task}: {wrong.text}" for wrong in check(history)]
        return found


class WebhookReceiver:
    """Answers challenges, verifies notifications by the issuer's keys, and adds them to the history of their round."""

    def __init__(self, rounds: Rounds, random: Random) -> None:
        self.rounds, self.random, self.received = rounds, random, 0
        self._keys, self._lock = KeySet({}), Lock()

    def answer(self, url: str, headers: list[tuple[str, str]], body: bytes) -> tuple[int, bytes] | None:
        """Returns status and body of the answer, or None for no answer."""
        round_ = self.rounds.made[url.removeprefix(self.rounds.receiver).split("/")[1]]
        at = round_.recorder.tick()
        try:
            envelope = read_envelope(headers)
            now = SystemClock().now()
            keys_ = self._keys_for(envelope.kid)
            authentic = authenticate(envelope, body, keys_, now, issuer=self.rounds.url, audience=url)
        except Refused as refused:
            self.rounds.observed.wrong.append(f"a notification was not genuine: {type(refused).__name__}: {refused}")
            return 401, b"{}"
        except (OSError, HTTPException, ValueError):
            return 503, b"{}"  # no keys now: the api is down
        if is_challenge(envelope):
            return 200, json.dumps({"challenge": accept_challenge(authentic, expected=True).challenge}).encode()
        fate = self.random.random()
        round_.recorder.received(at, url, dict(headers), body, accepted=fate > REFUSED)
        self.received += 1
        if fate < REFUSED / 3:
            return None
        return (503, b"{}") if fate < REFUSED else (200, b"{}")

    def _keys_for(self, kid: str) -> KeySet:
        with self._lock:
            if kid not in self._keys:
                with urlopen(f"{self.rounds.url}/.well-known/jwks.json", timeout=10) as answer:  # noqa: S310 - ours
                    self._keys = parse_key_set(answer.read())
            return self._keys


@contextmanager
def receiving(rounds: Rounds, random: Random) -> Iterator[WebhookReceiver]:
    """Receives the webhooks of the rounds while the block lasts."""
    receiver = WebhookReceiver(rounds, random)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            answer = receiver.answer(f"{rounds.receiver}{self.path}", list(self.headers.items()), body)
            if answer is None:
                self.close_connection = True
                return
            self.send_response(answer[0])
            self.send_header("Content-Length", str(len(answer[1])))
            self.end_headers()
            self.wfile.write(answer[1])

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with QuietServer(("127.0.0.1", 0), Handler) as server:
        rounds.receiver = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()


class Store(TaskLog, PushStore):
    """The deployment's table, read past the proxy."""

    def __init__(self, deployment: sam.Deployment) -> None:
        self._client, self._name = sam.client("dynamodb", deployment.endpoint), deployment.outputs["TableName"]
        table = DynamoTable(self._client, self._name, SystemClock().now, RetryPolicy(time.sleep, lambda: 0.5))
        super().__init__(table, PayloadStore(MemoryBlobStore()))

    def heads(self) -> list[Head]:
        """Returns the heads of all tasks."""
        pages = self._client.get_paginator("scan").paginate(
            TableName=self._name,
            ConsistentRead=True,
            FilterExpression="sk = :head",
            ExpressionAttributeValues={":head": {"S": keys.HEAD}},
        )
        found = [keys.task_key(item["pk"]["S"]) for page in pages for item in page["Items"]]
        return [snapshot.head for key in found if (snapshot := self.read_head(key))]

    def count_working(self) -> int:
        """Returns how many tasks have work to do."""
        return sum(head.state not in TERMINAL | INTERRUPTED for head in self.heads())

    def logs(self) -> dict[str, dict[str, Any]]:
        """Returns the logs of the agent's tasks, by tenant and task id."""
        found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for head in self.heads():
            if head.agent == AGENT and (loaded := self.read_log(head.key)):
                found[head.key.tenant][head.key.task] = log_of(loaded[1])
        return found

    def failed(self) -> list[str]:
        """Returns the tasks that failed, and why they say they did: no fault may fail a task."""
        found = []
        for head in self.heads():
            if head.state is TaskState.FAILED and (loaded := self.read_task(head.key)):
                said = loaded[1].status.message
                found.append(f"{head.agent} {head.key.task} failed: {said.text() if said else ''}")
        return found

    def unsettled(self) -> list[str]:
        """Returns what has not come to rest: tasks that may still run, webhooks that are behind."""
        found = []
        for head in self.heads():
            if head.state not in TERMINAL | INTERRUPTED or head.lease_until:
                found.append(f"{head.agent} {head.key.task} is {head.state}")
            found += [f"webhook {text}" for text in self._behind(head.key)]
        return found

    def _behind(self, key: TaskKey) -> Iterator[str]:
        snapshot = self.read_head(key)
        for cursor in self.list_cursors(key):
            if snapshot and cursor.state is not CursorState.CLOSED and cursor.position < snapshot.last:
                yield f"{cursor.config_id} of {key.task} is {cursor.state}, at {cursor.position} of {snapshot.last}"
