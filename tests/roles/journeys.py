"""What callers, operators, schedules and mishaps make the functions do, so that each kind of call is made once."""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from a2a_serverless.domain.access import ApiKey, digest_of
from a2a_serverless.domain.head import LOST_LIMIT
from a2a_serverless.domain.queue_messages import TickMessage, to_json
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.store.api_keys import ApiKeyStore
from a2a_serverless.store.keys import HEAD
from a2a_serverless.store.payloads import PayloadStore
from a2a_serverless.store.task_log import TaskLog
from a2a_serverless.testing.memory import MemoryBlobStore
from sample_agents.conformance import plain as daily
from tests.roles.account import KEY, MODELS, WHO, Account, message_event, put, standing
from tests.roles.clouds import moto
from tests.roles.recorder import Need, Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from tests.roles.clouds import Cloud

TEXT: Final = "# Sea\n\nThe sea is wide. Ships cross it every day. Lighthouses show them the way home at night."
DONE: Final = "TASK_STATE_COMPLETED"
TRIES: Final = 20


def heard() -> tuple[Account, dict[str, set[Need]]]:
    """The last stack, which has everything on, and what the functions of all needed, by the template's names."""
    accounts: list[Account] = []
    found: dict[str, set[Need]] = {}
    for scenario in SCENARIOS:
        with scenario.standing(moto) as account:
            for journey in scenario.journeys:
                journey(account)
        assert not account.recorder.unknown, account.recorder.unknown
        accounts.append(account)
        for function, needs in account.recorder.needs.items():
            found.setdefault(function, set()).update(account.stack.told(need) for need in needs)
    return accounts[-1], found


def start(account: Account) -> None:
    """CloudFormation asks for the first keys, then come the schedule and the operator's commands."""
    ids = {"StackId": "stack", "RequestId": "request", "LogicalResourceId": "KeyRing"}
    resource = {"RequestType": "Create", "ResponseURL": f"{account.street.url}/cloudformation", **ids}
    assert account.invoke("rotator", resource)["Status"] == "SUCCESS"
    for command in ("schedule", "show", "rotate"):
        account.invoke("rotator", {"command": command})
    keys = ApiKeyStore(account.table("AccessTable"))
    keys.add(ApiKey(digest_of(KEY), WHO, "", 0))


def documents(account: Account) -> None:
    """Whatever anybody may read."""
    for path in ("/agents", "/.well-known/jwks.json", "/.well-known/agent-card.json", "/image/.well-known/agent.json"):
        account.http("GET", path)


def conversation(account: Account) -> None:
    """A task, a second one that relies on the first, lists, webhooks, a question, a cancel."""
    hook = f"{account.street.url}/receiver"
    first = account.send("image", {"text": "Generate an image of a sailboat on the ocean."}, webhook=hook)
    account.settle()
    again = account.send("image", {"text": "Please modify the sailboat to be red."}, contextId=first["contextId"])
    account.settle()
    assert {state(account, "image", one) for one in (first, again)} == {DONE}
    assert account.street.heard > 2
    page = account.call("image", "ListTasks", contextId=first["contextId"], pageSize=1)
    account.call("image", "ListTasks", contextId=first["contextId"], pageSize=1, pageToken=page["nextPageToken"])
    account.call("image", "ListTasks")
    account.call("image", "CreateTaskPushNotificationConfig", taskId=again["id"], id="late", url=f"{hook}/failing")
    account.settle()
    account.call("image", "ListTaskPushNotificationConfigs", taskId=again["id"])
    account.call("image", "DeleteTaskPushNotificationConfig", taskId=again["id"], id="late")
    asked = account.send("orchestrator", {"text": " "})
    account.settle()
    assert state(account, "orchestrator", asked) == "TASK_STATE_INPUT_REQUIRED"
    account.send("orchestrator", {"text": TEXT}, taskId=asked["id"])
    account.call("orchestrator", "CancelTask", id=asked["id"])
    account.settle()


def big_contents(account: Account) -> None:
    """An upload, a file too big for the log, and a message and events that lie in the bucket."""
    content = os.urandom(600_000)
    asked = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    slot = account.http("POST", "/conformance-files/uploads", asked)
    assert put(slot["upload"], content) == 200
    hook = f"{account.street.url}/receiver"
    task = account.send("conformance-files", slot["part"] | {"filename": "big"}, webhook=hook)
    account.settle()
    assert state(account, "conformance-files", task) == DONE
    task = account.send("document", {"text": "The sea is wide and deep. " * 16_000}, webhook=hook)
    account.settle()
    assert state(account, "document", task) == DONE


def streams(account: Account) -> None:
    """An inline agent's answer as a stream."""
    message = {"messageId": "stream", "role": "ROLE_USER", "parts": [{"text": TEXT}]}
    assert "TASK_STATE_" in account.call("outline", "SendStreamingMessage", message=message)


def called_agents(account: Account) -> None:
    """An agent that calls its siblings, in its caller's name."""
    task = account.send("orchestrator", {"text": TEXT})
    assert finished(account, task) == DONE, account.get("orchestrator", task["id"])


def schedules(account: Account) -> None:
    """An agent starts by itself, and an operator pauses its schedule and plays it."""
    (schedule,) = daily.schedules
    account.schedule(daily, schedule)
    assert len(account.type("schedules", "list")["schedules"]) == 1
    for command in ("pause", "resume", "run"):
        account.type("schedules", command, daily.id, schedule.name)
    account.settle()
    now = time.time_ns() // 1_000_000
    for late_ms in (0, -60_000, 2 * 3_600_000):
        tick = TickMessage(schedule.key(daily.id), now - late_ms)
        account.invoke("worker", message_event(json.dumps(to_json(tick))))
        account.settle()
    owners = {item["own"]["S"] for item in account.heads()}
    assert f"{schedule.tenant}/{schedule.owner}" in owners


def mishaps(account: Account) -> None:
    """Messages that got lost, workers that died, a retry, tasks that grew too old, items of a newer release."""
    lost = account.send("image", {"text": "Draw a boat."}, webhook=f"{account.street.url}/receiver")
    account.lose_messages()
    account.come_due()
    account.invoke("sweeper", {})
    account.settle()
    assert state(account, "image", lost) == DONE

    held = account.send("image", {"text": "Draw a boat."})
    (message,) = account.take("WorkQueue")
    until = str(time.time_ns() // 1_000_000 + 20_000)
    account.change(account.head(held["id"]), lease_until={"N": until}, fence={"N": "7"})
    account.invoke("worker", message_event(message["Body"], message["ReceiptHandle"]))

    died = account.send("image", {"text": "Draw a boat."})
    lost_runs = {"N": str(LOST_LIMIT)}
    account.change(account.head(died["id"]), lost=lost_runs, fence=lost_runs, lease_until={"N": "1"})
    account.settle()
    overtaken = account.send("image", {"text": "Draw a boat."})
    store_late_result(account, overtaken["id"])
    account.settle()
    assert state(account, "image", overtaken) == DONE
    old = account.send("image", {"text": "Draw a boat."})
    account.lose_messages()
    account.change(account.head(old["id"]), deadline={"N": "1"})
    newer = account.send("image", {"text": "Draw a boat."})
    account.lose_messages()
    account.change(account.head(newer["id"]), v={"N": "99"})
    account.come_due()
    account.invoke("sweeper", {})
    account.change(account.head(newer["id"]), v={"N": "1"})
    account.settle()
    assert {state(account, "image", one) for one in (died, old)} == {"TASK_STATE_FAILED"}
    retried = account.http("POST", f"/image/tasks/{died['id']}/retry", {"requestId": "again"})
    account.settle()
    assert state(account, "image", retried) == DONE


def store_late_result(account: Account, task: str) -> None:
    """A result of a first run comes after a second run, which had not read it, has stored another."""
    account.change(account.head(task), fence={"N": "2"})
    log = TaskLog(account.table("Table"), PayloadStore(MemoryBlobStore()))
    current = log.read_head(WHO.key(task))
    assert current
    for run in (1, 2):
        log.store_step(current.head, f"of run {run}", StepResult("", None, moment=1, fence=run), of_run=False)


def races(account: Account) -> None:
    """A write is refused because somebody else has moved the head."""
    for function in ("worker", "api"):
        task = account.send("image", {"text": "Draw a boat."})
        race = Race(account, function)
        account.recorder.before = race
        if function == "api":
            account.call("image", "CancelTask", id=task["id"])
        account.settle()
        assert race.done


class Race:
    """Moves a head just before a function's first transaction that would."""

    def __init__(self, account: Account, function: str) -> None:
        self.account = account
        self.function = function
        self.done = False

    def __call__(self, by: str, _: str, params: Mapping[str, Any]) -> None:
        paths = [one["Update"]["Key"] for one in params.get("TransactItems", []) if "Update" in one]
        heads = [place["pk"] for place in paths if place["sk"] == {"S": HEAD}]
        if by == self.function and heads and not self.done:
            self.done = True
            head = next(one for one in self.account.heads() if one["pk"] == heads[0])
            self.account.change(head, rev={"N": str(int(head.get("rev", {"N": "1"})["N"]) + 1)})


def operating(account: Account) -> None:
    """Operators' commands for webhooks, keys that sign, and API keys."""
    task = account.send("image", {"text": "Draw a boat."}, webhook=f"{account.street.url}/receiver/failing")
    account.settle()
    path, host = f"{WHO.tenant}/{WHO.owner}/{task['id']}", urlsplit(account.street.url).netloc
    account.type("push", "list")
    account.type("push", "list", path)
    account.type("tasks", "stuck")
    assert account.type("tasks", "show", path)["task"] == path
    assert len(account.type("queues")["queues"]) == 5
    account.log(task=task["id"], message="said")
    assert account.type("logs", "--task", task["id"], "--stack", "a2a-serverless")["message"] == "said"
    for command in ("show", "redrive", "pause", "resume"):
        account.type("push", command, path, "hook")
    account.settle()
    assert account.type("push", "redrive", "--host", host)["redriven"]
    account.settle()
    account.send("document", {"text": "The sea is wide and deep. " * 16_000})
    assert account.type("rehearse", "--stack", "a2a-serverless")["counts"]["fits"]
    account.settle()
    assert account.type("work", "--print-environment")["TASKS_AT_ONCE"]
    kid = account.type("keys", "show")["next"]["kid"]
    account.type("keys", "rotate")
    account.type("keys", "revoke", kid)
    made = account.type("callers", "add", "somebody")
    assert len(account.type("callers", "list")) == 2
    account.type("callers", "remove", made["id"])
    for what in (("image",), ("--owner", f"{WHO.tenant}/{WHO.owner}")):
        assert account.type("pause", *what)["paused"]
        account.type("resume", *what)
    assert not account.type("pause")["paused"]


def erasing(account: Account) -> None:
    """An operator erases and restores. Nothing has run lately, so no command waits for a worker."""
    for head in account.heads():
        account.change(head, status_at={"N": "1"}, fence={"N": "0"})
    owner = f"{WHO.tenant}/{WHO.owner}"
    backups = ("--table", account.back_up("Table"), "--access-table", account.back_up("AccessTable"))
    assert account.type("erase", "owner", owner, "--dry-run")["blobs"]
    working = account.send("image", {"text": "Draw a boat."})
    account.type("erase", "task", f"{owner}/{working['id']}", "--yes")
    account.type("erase", "context", f"{owner}/{working['contextId']}", "--yes")
    erased = account.type("erase", "owner", owner, "--yes")
    assert all(erased.values()), erased
    restored = account.type("restore", *backups, "--yes")
    assert restored["tasks"] == erased["tasks"]
    assert restored["apiKeys"]


def models(account: Account) -> None:
    """Texts and pictures by models on Bedrock, in the worker and inline, and an agent elsewhere with credentials."""
    streams(account)
    account.send("image", {"text": "Draw a boat."})
    account.send("document", {"text": TEXT})
    account.send("orchestrator", {"text": TEXT})
    account.settle()


def state(account: Account, agent: str, task: Mapping[str, Any]) -> str:
    """The state of a task."""
    return str(account.get(agent, task["id"])["status"]["state"])


def finished(account: Account, task: Mapping[str, Any]) -> str:
    """The state of an orchestrator's task that has ended, with the sweeper's help."""
    account.settle()
    for _ in range(TRIES):
        if state(account, "orchestrator", task) not in {"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"}:
            break
        account.come_due()
        account.invoke("sweeper", {})
        account.settle()
    return state(account, "orchestrator", task)


JOURNEYS: Final = (
    start,
    documents,
    conversation,
    big_contents,
    streams,
    called_agents,
    schedules,
    mishaps,
    races,
    operating,
    erasing,
)


class Scenario(NamedTuple):
    """What is done in a stack, in this order; its parameters, and its agents elsewhere."""

    journeys: tuple[Callable[[Account], None], ...]
    parameters: Mapping[str, str]
    agent_urls: str = ""

    def standing(self, play: Callable[[], AbstractContextManager[Cloud]]) -> AbstractContextManager[Account]:
        """Its stack, in which nothing has been done yet."""
        return standing(Recorder(), play, self.parameters, self.agent_urls)


SCENARIOS: Final = (
    Scenario(JOURNEYS, {}),
    Scenario((start, models), {"Models": MODELS}, "outline={url}/outline"),
)
