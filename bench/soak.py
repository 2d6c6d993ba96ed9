"""A soak test: the whole stack on this machine under a limited load for minutes; it measures memory and queues.

Every task has a webhook at the project's receiver; every third is followed by a stream, and every seventh is canceled
while it works. At the end every task must have ended, every webhook must have its last event, the queues must be empty,
and the memory of the api and the receiver must not have grown.

    make soak MINUTES=10
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from a2a_serverless.client import Client, over_urllib, text_message
from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.events import TERMINAL
from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest, Task, TaskPushNotificationConfig
from a2a_serverless_tools.stack import local_stack, paths, processes, sam

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT: Final = Path(__file__).parents[1].joinpath("examples/demo.md").read_text()
QUEUES: Final = ("WorkQueueUrl", "DeliveryQueueUrl", "WorkDeadLettersUrl", "DeliveryDeadLettersUrl", "RelayFailuresUrl")
DEPTHS: Final = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
SAMPLE_S: Final = 15.0
DRAIN_S: Final = 180.0
STREAM_EVERY: Final = 3
CANCEL_EVERY: Final = 7
GROWTH: Final = 1.15


@dataclass(frozen=True)
class Sample:
    """The stack at one moment: resident memory in MB, messages in each queue, tasks that have not ended."""

    second: float
    memory: dict[str, float]
    queued: dict[str, int]
    unended: int


@dataclass
class Soak:
    """One run and its records."""

    stack: local_stack.RunningStack
    sent: list[str] = field(default_factory=list)
    followed: int = 0
    numbers_missed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)

    @property
    def agent(self) -> Client:
        """A client of the agent that gets the load."""
        return Client(f"{self.stack.api.url}/document", over_urllib)

    def send(self, number: int) -> None:
        """Sends one task, and follows or cancels it depending on its number."""
        try:
            request = SendMessageRequest(
                message=text_message(TEXT),
                configuration=SendMessageConfiguration(
                    return_immediately=True, task_push_notification_config=self._webhook()
                ),
            )
            if number % STREAM_EVERY == 0:
                self._follow(request)
                return
            task = self.agent.send(request)
            assert isinstance(task, Task)  # noqa: S101 - this agent answers with tasks
            self.sent.append(task.id)
            if number % CANCEL_EVERY == 0:
                self.agent.cancel(task.id)
        except Exception as error:  # noqa: BLE001 - every error is counted
            self.refused[type(error).__name__] += 1

    def take_sample(self, second: float) -> None:
        """Records a sample of the stack."""
        self.look_at_tasks()
        memory = {one.name: resident_mb(one.pid) for one in (self.stack.api, self.stack.receiver, self.stack.emulator)}
        unended = len(self.sent) - len(self.ended)
        self.samples.append(Sample(second, memory, self._depths(), unended))

    def look_at_tasks(self) -> None:
        """Notes which tasks have ended."""
        for task in [one for one in self.sent if one not in self.ended]:
            with suppress(A2AError, OSError):
                state = self.agent.get(task, history_length=0).status.state
                if state in TERMINAL:
                    self.ended[task] = state.value

    def behind(self) -> list[str]:
        """Returns the tasks whose webhook lacks events."""
        return [task for task in self.sent if not self._delivered(task)]

    def _webhook(self) -> TaskPushNotificationConfig:
        made = fetched(f"{self.stack.receiver.url}/expectations", {})
        config = made["pushNotificationConfig"]
        return TaskPushNotificationConfig(url=config["url"], token=config["token"])

    def _follow(self, request: SendMessageRequest) -> None:
        seen: list[int] = []
        for item in self.agent.stream(request):
            seen += [item.n] if item.n else []
            if item.task_id and item.task_id not in self.sent:
                self.sent.append(item.task_id)
        self.followed += 1
        self.numbers_missed += sum(1 for before, after in pairwise(seen) if after != before + 1)

    def _delivered(self, task: str) -> bool:
        found = fetched(f"{self.stack.api.url}/document/tasks/{task}/deliveries")["deliveries"]
        return bool(found) and all(one["deliveredUpTo"] == one["lastEvent"] for one in found)

    def _depths(self) -> dict[str, int]:
        sqs = sam.client("sqs", self.stack.deployment.endpoint)
        found = {}
        for name in QUEUES:
            url = self.stack.deployment.outputs[name]
            told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[*DEPTHS])["Attributes"]
            found[name.removesuffix("Url")] = sum(int(told[one]) for one in DEPTHS)
        return found


def fetched(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Fetches JSON from a local server; a body is POSTed."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"content-type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - on this machine
        return dict(json.loads(answer.read()))


def resident_mb(pid: int) -> float:
    """Returns the resident memory of a process in MB; raises OSError if the process has ended."""
    _, found, told = Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")
    if not found:  # it has ended, and nobody has waited for it yet
        raise ProcessLookupError(pid)
    return int(told.split()[0]) / 1024


def soak(stack: local_stack.RunningStack, minutes: float, per_minute: float) -> Soak:
    """Puts load on the stack, then waits until its work is done."""
    run, began = Soak(stack), time.monotonic()
    pause, number, looked = 60 / per_minute, 0, -SAMPLE_S
    with ThreadPoolExecutor(8) as clients:
        while (second := time.monotonic() - began) < minutes * 60:
            if second >= number * pause:
                clients.submit(run.send, number)
                number += 1
            if second >= looked + SAMPLE_S:
                looked = second
                run.take_sample(second)
            time.sleep(0.05)
    drained = time.monotonic() + DRAIN_S
    run.take_sample(time.monotonic() - began)
    while (run.samples[-1].unended or run.behind()) and time.monotonic() < drained:
        time.sleep(1)
        run.take_sample(time.monotonic() - began)
    return run


def judged(run: Soak) -> list[str]:
    """Yields what is wrong; nothing when all is well."""
    last, behind = run.samples[-1], run.behind()
    wrong = [] if run.sent else ["no task was made"]
    wrong += [f"{last.unended} tasks have not ended"] if last.unended else []
    wrong += [f"{len(behind)} webhooks have not got everything"] if behind else []
    wrong += [f"{run.numbers_missed} events were missed by streams"] if run.numbers_missed else []
    wrong += [f"{count} requests failed: {name}" for name, count in run.refused.items()]
    wrong += [f"{count} messages left in {name}" for name, count in last.queued.items() if count]
    grown = {name: growth(run, name) for name in ("api", "receiver")}
    return wrong + [f"the {name} grew by {by - 1:.0%}" for name, by in grown.items() if by > GROWTH]


def growth(run: Soak, name: str) -> float:
    """Divides the median memory of the last quarter by that of the second one; the first is warm-up."""
    held = [sample.memory[name] for sample in run.samples]
    quarter = max(1, len(held) // 4)
    return statistics.median(held[-quarter:]) / statistics.median(held[quarter : 2 * quarter] or held)


def figures(run: Soak) -> Iterator[str]:
    """Formats the run as a table."""
    states = Counter(run.ended.values())
    yield f"| tasks | {len(run.sent)}: {', '.join(f'{count} {state}' for state, count in sorted(states.items()))} |"
    yield f"| followed by a stream | {run.followed}, {run.numbers_missed} events missed |"
    most = {name: max(sample.queued[name] for sample in run.samples) for name in run.samples[0].queued}
    for name, count in most.items():
        yield f"| {name} | at most {count}, {run.samples[-1].queued[name]} at the end |"
    yield f"| tasks under way | at most {max(sample.unended for sample in run.samples)} |"
    for name in ("api", "receiver", "emulator"):
        held = [sample.memory[name] for sample in run.samples]
        by = growth(run, name)
        yield f"| memory of the {name} | {held[0]:.0f} MB first, {held[-1]:.0f} MB last, x{by:.2f} |"


@contextmanager
def running(options: local_stack.Options) -> Iterator[local_stack.RunningStack]:
    """Runs a stack while the block lasts."""
    here = paths.find(state=paths.CHECKOUT / ".a2a/soak")
    console = Console(stderr=True)
    try:
        yield local_stack.up(here, options, console)
    finally:
        local_stack.down(here, console)


def main() -> int:
    """Runs the soak test and prints its figures."""
    reader = argparse.ArgumentParser(description="A soak of the whole stack on this machine.")
    reader.add_argument("--minutes", type=float, default=10)
    reader.add_argument("--per-minute", type=float, default=20)
    asked = reader.parse_args()
    emulator, api, receiver = (processes.claim_port(part, 0) for part in ("emulator", "api", "receiver"))
    with running(local_stack.Options(emulator, api, receiver)) as stack:
        run = soak(stack, asked.minutes, asked.per_minute)
        print(f"| {asked.minutes:g} minutes | {asked.per_minute:g} tasks a minute |\n|---|---|")
        print("\n".join(figures(run)))
        wrong = judged(run)
    print("\n".join(wrong) or "Nothing was lost, nothing grew.", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
