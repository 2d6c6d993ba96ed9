"""The largest tasks that the api accepts, read: GetTask, pages of ListTasks, webhooks. Prints CPU and memory as JSON.

``python largest_page.py <values|text> <tasks>``: each task's message is a data part of as many values as a body may
have, or a text of as many bytes. The stores are in memory, so memory is how much the process grew at its peak.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from a2a_serverless import Agent, Skill, TaskContext
from a2a_serverless.adapters.clock import SystemClock
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.http.api import ANYBODY, AllowAnonymous, Api
from a2a_serverless.http.app import make_asgi_app
from a2a_serverless.http.lambda_proxy import Exchange
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol.strict_json import LIMITS
from a2a_serverless.services.deliver import MESSAGES_AT_ONCE, DeliveryOutcome, deliver
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.edge import scope_of
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp

    from a2a_serverless.services.delivery_context import DeliveryContext

HEADERS: Final = {"content-type": "application/json", "a2a-version": "1.0"}
OK: Final = 200
BYTES: Final = LIMITS.body - 1_000
VALUES: Final = min(LIMITS.values - 20, BYTES // 3)


def main(kind: str, count: int) -> None:
    """Prints what each read takes."""
    trusting = EgressPolicy(trusted_domains=("example.com",))
    world = World([Agent("echo", "echo", "echo", (Skill("s", "s", "s", ("s",)),), _work)], policy=trusting)
    app = make_asgi_app(Api(world.service, world.engine.agents, AllowAnonymous(), MemoryCallbackVerifier(), 60))
    tasks = [_send(app, kind, number) for number in range(count)]
    post = replace(world.post, sender=Accepting(), clock=SystemClock())
    messages = [
        DeliveryMessage(ANYBODY.key(task), world.table.list_configs(ANYBODY.key(task))[0].config_id) for task in tasks
    ]
    waiting = iter(messages)
    reads = {
        "GetTask": lambda: _ask(app, "GET", f"/echo/tasks/{tasks[0]}"),
        "ListTasks, whole": lambda: _ask(app, "GET", "/echo/tasks", pageSize="100"),
        "ListTasks, historyLength=0": lambda: _ask(app, "GET", "/echo/tasks", pageSize="100", historyLength="0"),
        "a webhook": lambda: deliver(post, next(waiting), lambda: 900_000),
        f"{MESSAGES_AT_ONCE} webhooks at once": lambda: _deliver_together(post, [*islice(waiting, MESSAGES_AT_ONCE)]),
    }
    print(json.dumps({name: _measured(read) for name, read in reads.items()}))


class Accepting:
    """Accepts each webhook after a moment."""

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        """Answers 200."""
        del url, headers, body, deadline_ms
        time.sleep(0.5)
        return Outcome(status=200, connected=True, request_sent=True)


def _deliver_together(post: DeliveryContext, messages: list[DeliveryMessage]) -> None:
    """Delivers as the notifier does; a delivery that finds no memory is tried again."""

    def work(message: DeliveryMessage) -> None:
        while deliver(post, message, lambda: 900_000) is DeliveryOutcome.NOT_YET:
            time.sleep(0.1)

    with ThreadPoolExecutor(MESSAGES_AT_ONCE) as pool:
        list(pool.map(work, messages))


async def _work(task: TaskContext) -> None:
    raise NotImplementedError


def _send(app: ASGIApp, kind: str, number: int) -> str:
    part: dict[str, object] = {"data": [[]] * VALUES} if kind == "values" else {"text": "x" * BYTES}
    message = {"messageId": f"m{number}", "role": "ROLE_USER", "parts": [part]}
    webhook = {"url": f"https://hook{number}.example.com/"}
    configuration = {"returnImmediately": True, "taskPushNotificationConfig": webhook}
    body = json.dumps({"message": message, "configuration": configuration}, separators=(",", ":")).encode()
    return str(json.loads(_ask(app, "POST", "/echo/message:send", body))["task"]["id"])


def _ask(app: ASGIApp, verb: str, path: str, body: bytes = b"", **query: str) -> bytes:
    exchange = Exchange(app, scope_of(HttpRequest(verb, path, HEADERS, tuple(query.items()), body)), body)
    answer = exchange.read()
    if exchange.status != OK:
        raise SystemExit(answer.decode())
    return answer


def _measured(read: Callable[[], object]) -> dict[str, float]:
    """CPU seconds, and by how many MB the process grew at most."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before, began = _memory("VmRSS"), time.process_time()
    answer = read()
    seconds, grown = time.process_time() - began, _memory("VmHWM") - before
    tasks = len(json.loads(answer).get("tasks", "1")) if isinstance(answer, bytes) else 1
    return {"seconds": round(seconds, 3), "MB": round(grown), "tasks": tasks}


def _memory(name: str) -> float:
    """A line of the process's status, in MB."""
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith(name))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
