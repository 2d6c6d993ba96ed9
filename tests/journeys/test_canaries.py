"""A journey through every part, with marked words in every place where a client can put some: none of them gets out.

Not into logs, not into metrics, not into answers that are errors; whatever goes wrong on the way.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.adapters.logs import IdsOnly
from a2a_serverless.adapters.metrics import EmfMetrics
from a2a_serverless.aws.batches import make_queue_handler, make_stream_handler
from a2a_serverless.aws.custom_resource import make_rotator_handler
from a2a_serverless.domain.access import ApiKey, digest_of
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.domain.queue_messages import DeliveryMessage, WorkMessage, to_json
from a2a_serverless.http.api import OidcOrApiKey
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.v1 import AuthenticationInfo, TaskPushNotificationConfig
from a2a_serverless.services.circuit_breakers import CircuitBreakers
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.doubles import MemoryApiKeyStore
from tests.echo import agent_of
from tests.edge import Edge
from tests.handlers.requests import BINDINGS, DELIVERIES, Names
from tests.world import HOUR_MS, ME, World, configured

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.http.messages import HttpRequest
    from tests.edge import HttpResponse

WORD: Final = "c4n4ry"
KEY: Final = f"a2a_{WORD}-key"
HOOK: Final = f"https://hooks.example.com/{WORD}-path?secret={WORD}"


async def talkative(task: TaskContext) -> None:
    """An agent that repeats what it was told wherever it can, and then fails with it."""
    await task.report_progress(task.text())
    said = await task.step("said", lambda: f"{task.text()} {WORD}-step")
    await task.emit(f"{WORD}.md", said, last=True)
    if "ask" in task.text():
        await task.ask(f"{WORD}-question")
    raise RuntimeError(f"{WORD}-failure: {said}")


class Everywhere:
    """A deployment whose every line of log and metrics is kept, and every answer that is an error."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        self._caplog = caplog
        self.metrics: list[str] = []
        self.errors: list[str] = []
        self.world = world = World([agent_of(talkative)])
        counting = EmfMetrics("A2AServerless", "stack", self.metrics.append)
        world.service = world.service._replace(metrics=counting)
        world.engine = replace(world.engine, metrics=counting)
        world.post = replace(world.post, metrics=counting, breakers=CircuitBreakers(world.table, metrics=counting))
        world.sweeper = replace(world.sweeper, metrics=counting)
        keys = MemoryApiKeyStore()
        keys.add(ApiKey(digest_of(KEY), ME, f"{WORD}-note", 0))
        self.edge = Edge(world.service, world.engine.agents, OidcOrApiKey(keys.find), MemoryCallbackVerifier(), 60)

    def ask(self, request: HttpRequest, **headers: str) -> HttpResponse:
        answer = self.edge.answer(request._replace(headers={"x-api-key": KEY, **request.headers, **headers}))
        body = answer.body if answer.stream is None else asyncio.run(_first(answer))
        if answer.status >= 400 or b'"error"' in body:
            self.errors.append(body.decode() + str(answer.headers))
        return answer

    def said(self) -> Iterator[str]:
        """All that has got out."""
        yield from map(IdsOnly().format, self._caplog.records)
        yield from self.metrics
        yield from self.errors


async def _first(answer: HttpResponse) -> bytes:
    stream: Any = answer.stream
    frame: bytes = await anext(stream)
    await stream.aclose()
    return frame


def test_rule_10_no_word_of_a_client_gets_into_logs_metrics_or_errors(caplog: pytest.LogCaptureFixture) -> None:
    here = Everywhere(caplog)
    _talk_in_every_binding(here)
    _say_it_wrongly(here)
    _let_things_fail(here)
    _call_the_functions(here)
    said = list(here.said())
    assert [line for line in said if WORD in line] == []
    assert len(here.errors) > 100
    assert len(here.metrics) > 20
    assert any("agent failed" in line for line in said)
    assert any("queue message failed" in line for line in said)
    assert any("request failed" in line for line in said)


def _talk_in_every_binding(here: Everywhere) -> None:
    """Every operation, with what exists and what does not, by who is known and who is not."""
    push = TaskPushNotificationConfig(
        url=HOOK,
        id="hook",
        token=f"{WORD}-token",
        authentication=AuthenticationInfo(scheme="Basic", credentials=f"{WORD}-credentials"),
    )
    task = here.world.sent(configured(here.world.request(f"{WORD} ask"), task_push_notification_config=push))
    for number, (binding, made) in enumerate(BINDINGS.items()):
        for operation, make in made.items():
            for known in (task.id, f"{WORD}-task", None):
                message = f"{WORD}-{binding}-{operation}-{known}"
                names = Names(task=known, message=message, text=f"{WORD} ask", webhook=HOOK, config=f"hook-{number}")
                here.ask(make(names))
                here.ask(make(names), **{"x-api-key": f"a2a_{WORD}-other"})
                here.ask(make(names), **{"x-api-key": "", "authorization": f"Bearer {WORD}"})
    here.ask(DELIVERIES(Names(task=f"{WORD}-task")))
    here.world.settle(HOUR_MS)
    assert any(WORD in json.dumps(post.body) for post in here.world.receiver.posts)


def _say_it_wrongly(here: Everywhere) -> None:
    """Requests that cannot be meant, each wrong in another place."""
    make = BINDINGS["1.0 JSON-RPC"][Operation.SEND]
    good = json.loads(make(Names(text=WORD)).body)
    message = good["params"]["message"]
    hook = {"url": f"http://{WORD}.example.com/{WORD}", "token": f"{WORD}\n", "id": f"{WORD} é"}
    wrong: list[dict[str, Any]] = [
        {**message, "role": WORD},
        {**message, "parts": [{"text": {WORD: WORD}}]},
        {**message, "parts": [{"raw": f"{WORD}!!"}]},
        {**message, "parts": [{"url": f"ftp://{WORD}"}]},
        {**message, "parts": WORD},
        {**message, "messageId": [WORD]},
        {**message, "metadata": WORD},
        {**message, "parts": [{"text": WORD, "mediaType": "video/mpeg"}]},
    ]
    bodies = [{**good, "params": {"message": one}} for one in wrong]
    bodies += [{**good, "params": {"message": message, "configuration": {"taskPushNotificationConfig": hook}}}]
    bodies += [{**good, "params": [WORD]}, {**good, "id": {WORD: 1}}, {**good, "jsonrpc": WORD}]
    texts = [json.dumps(body).encode() for body in bodies]
    for text in (
        *texts,
        f'{{"{WORD}": '.encode(),
        f'{{"a": "{WORD}", "a": "{WORD}"}}'.encode(),
        b"\xff" + WORD.encode(),
    ):
        here.ask(make(Names())._replace(body=text))


def _let_things_fail(here: Everywhere) -> None:
    """The store, the receiver and the sealer fail, quoting what they were given."""

    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise ConnectionError(f"{name} of {WORD}")

    broken: Any = Broken()
    service = here.world.service._replace(log=broken)
    whole, here.edge = here.edge, replace(here.edge, service=service)
    for made in BINDINGS.values():
        for make in made.values():
            here.ask(make(Names(task="t", text=WORD, webhook=HOOK)))
    here.edge = whole
    here.world.receiver.answers = lambda _: Outcome(status=500, body=WORD.encode(), connected=True, request_sent=True)
    push = TaskPushNotificationConfig(url=HOOK, id="hook", token=f"{WORD}-token")
    here.world.sent(configured(here.world.request(WORD), task_push_notification_config=push))
    here.world.settle(HOUR_MS)


def _call_the_functions(here: Everywhere) -> None:
    """Every function gets events that are none, and fails at those that are."""
    key = ME.key("some-task")

    def fails(*_: object) -> Any:
        raise RuntimeError(WORD)

    context: Any = SimpleNamespace(get_remaining_time_in_millis=lambda: 60_000)
    for message in (WorkMessage(key), DeliveryMessage(key, "hook")):
        kind: Any = type(message)
        handler = make_queue_handler(kind, fails)
        bodies = (WORD, json.dumps({"v": 1, "kind": WORD}), json.dumps(to_json(message)))
        handler({"Records": [{"messageId": "m", "body": body, "attributes": {}} for body in bodies]}, context)
    images = [
        {"dynamodb": {"Keys": {"pk": {"S": WORD}}, "NewImage": {"body": {"S": WORD}}, "SequenceNumber": "1"}},
        WORD,
    ]
    make_stream_handler(fails)({"Records": images}, context)
    request = dict.fromkeys(("StackId", "RequestId", "LogicalResourceId"), "x")
    rotator = make_rotator_handler(
        {"ensure": fails, "schedule": fails}, lambda _, body: here.errors.append(body.decode())
    )
    rotator(request | {"RequestType": "Create", "ResponseURL": f"https://s3.example.com/{WORD}"}, context)
