"""The cost of queued tasks on AWS, item by item: counted usage (usage.json) times public prices (prices.json).

    .venv/bin/python bench/cost.py                     a million tasks, as in N12
    .venv/bin/python bench/cost.py --tasks 50000 --posts 10 --agent-seconds 30

``python -m tests.costs.usage`` counts ``usage.json``, and a test compares it. ``ASSUMED`` has the values that are not
counted, with reasons; ``--agent-seconds`` is the time that an agent waits for its model, 0 in N12.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

HERE: Final = Path(__file__).parent
PRICES: Final[dict[str, Any]] = json.loads((HERE / "prices.json").read_text())
USAGE: Final[dict[str, Any]] = json.loads((HERE / "usage.json").read_text())
N12_USD: Final = 46.5
MILLION: Final = 1_000_000
GIGABYTE: Final = 1_000_000_000

ASSUMED: Final[dict[str, float]] = {
    "table_call_ms": 5,  # DynamoDB within a region, transactions included
    "queue_message_ms": 10,  # SQS SendMessage
    "queue_delay_ms": 10,  # SQS ChangeMessageVisibility
    "post_ms": 60,  # a webhook's answer; the second POST reuses the connection
    "invocation_ms": 6,  # decode, sign, encode: measured CPU on two shared cores, doubled
    "cold_share": 0.01,  # of invocations
    "cold_ms": 600,  # INIT is billed
    "line_bytes": 26,  # that CloudWatch adds to each line; with SystemLogLevel=WARN, Lambda itself logs faults only
    "receives": 1.0,  # ReceiveMessage calls per message: pollers receive up to ten at once
    "deletes": 1.0,  # DeleteMessageBatch calls per message, likewise
    "sampled": 0.05,  # of requests, by X-Ray's default rule
    "post_bytes": 2500,  # sent for each POST, TLS included
    "answer_bytes": 2500,  # sent for each request
    "stored_bytes": 6000,  # of a task, indexes included, for its life and retention
    "stored_months": 37 / 30,
}
COVERED: Final = 0.999
DEVIATIONS: Final = 3.1  # of a normal variable, beyond which is one moment of 1,000
LARGE: Final = 500.0
# A container of the worker, and the number of waiting tasks that it was seen to carry.
CONTAINER: Final = {"vcpu": 0.25, "gb": 0.5, "tasks": 50}  # of examples/worker/template.yaml
MEMORY_GB: Final = {"api": 1.0, "worker": 0.5, "relay": 0.5, "notifier": 0.5}


@dataclass(frozen=True)
class Scale:
    """Number of tasks, POSTs per task (None: as counted), seconds that an agent waits per task, and architecture."""

    tasks: int = MILLION
    posts: float | None = None
    agent_seconds: float = 0.0
    architecture: str = "arm64"


@dataclass(frozen=True)
class Item:
    """One line of the bill. ``kept`` items pay for storing tasks, not for running them."""

    what: str
    quantity: float
    unit: str
    usd: float
    kept: bool = False


def bill(scale: Scale, usage: Mapping[str, Any] = USAGE) -> list[Item]:
    """Returns every item, in USD for all tasks together."""
    run = (*_storage(scale, usage), *_calls(scale, usage), *_compute(scale, usage), *_words(scale, usage))
    return [*run, *_kept(scale)]


def free(items: list[Item]) -> float:
    """Returns the part (USD) that AWS's permanent free tier covers if nothing else in the account uses it."""
    saved = 0.0
    for name, given in PRICES["free_every_month"].items():
        used = [item for item in items if item.what == name or (name == "Lambda" and item.unit == "GB-s")]
        quantity = sum(item.quantity for item in used)
        saved += sum(item.usd for item in used) * min(1.0, given / quantity) if quantity else 0.0
    return saved


def total(items: list[Item]) -> float:
    """Returns the cost of running (USD), without storage."""
    return sum(item.usd for item in items if not item.kept)


def standing(alarms: int, metrics: int, dashboards: int) -> list[Item]:
    """Returns the monthly cost of an unused deployment; ``metrics`` is how many metrics it emits nevertheless."""
    month, million = PRICES["per_month"], PRICES["per_million"]
    polls = 2 * 5 * 3 * 60 * 24 * 30  # two queues, five pollers each, 20 s each
    sweeps = 60 * 24 * 30
    sweep = 8 * million["dynamodb_read_unit"] / 2 + 0.5 * 0.05 * PRICES["per_unit"]["lambda_gb_second_arm64"] * MILLION
    items = [
        Item("KMS key for sealing", 1, "key", month["kms_key"]),
        Item("secret with the key ring", 1, "secret", month["secret"]),
        Item("alarms", alarms, "metrics that they watch", alarms * month["alarm"]),
        Item("metrics, for the hours in which they are emitted", metrics, "metrics", metrics * month["custom_metric"]),
        Item("dashboard", dashboards, "dashboard", dashboards * month["dashboard"]),
        Item("empty polls of two queues", polls, "requests", polls * million["sqs_request"] / MILLION),
        Item("sweeper, every minute", sweeps, "runs", sweeps * (million["lambda_request"] + sweep) / MILLION),
    ]
    return [item for item in items if item.quantity]


def _more(scale: Scale, usage: Mapping[str, Any]) -> float:
    """Returns the POSTs per task beyond the counted ones; each adds table calls, a message and an invocation."""
    return 0.0 if scale.posts is None else scale.posts - usage["posts"]


def _storage(scale: Scale, usage: Mapping[str, Any]) -> Iterator[Item]:
    per, more = PRICES["per_million"], _more(scale, usage)
    writes, reads = scale.tasks * (usage["write_units"] + 3 * more), scale.tasks * (usage["read_units"] + 4 * more)
    yield Item("DynamoDB writes", writes, "units", writes * per["dynamodb_write_unit"] / MILLION)
    yield Item("DynamoDB reads", reads, "units", reads * per["dynamodb_read_unit"] / MILLION)


def _calls(scale: Scale, usage: Mapping[str, Any]) -> Iterator[Item]:
    per, more = PRICES["per_million"], _more(scale, usage)
    requests = scale.tasks * usage["requests"]
    sent = scale.tasks * (usage["queue_messages"] + more)
    queues = sent * (1 + ASSUMED["receives"] + ASSUMED["deletes"]) + scale.tasks * usage["queue_delays"]
    invoked = scale.tasks * (sum(one["invocations"] for one in usage["functions"].values()) + more)
    traces = requests * ASSUMED["sampled"]
    yield Item("API Gateway", requests, "requests", requests * per["api_gateway_rest_request"] / MILLION)
    yield Item("SQS", queues, "requests", queues * per["sqs_request"] / MILLION)
    yield Item("SQS, for fair queues", sent, "messages sent", sent * per["sqs_fair_message"] / MILLION)
    yield Item("Lambda requests", invoked, "requests", invoked * per["lambda_request"] / MILLION)
    yield Item("X-Ray", traces, "traces", traces * per["xray_trace"] / MILLION)


def _compute(scale: Scale, usage: Mapping[str, Any]) -> Iterator[Item]:
    price = PRICES["per_unit"][f"lambda_gb_second_{scale.architecture}"]
    for name, one in usage["functions"].items():
        seconds = _seconds(one) + (scale.agent_seconds if name == "worker" else 0.0)
        if name == "notifier":
            seconds += _more(scale, usage) * (ASSUMED["post_ms"] + 5 * ASSUMED["table_call_ms"]) / 1000
        gb_seconds = scale.tasks * seconds * MEMORY_GB[name]
        yield Item(f"Lambda {name}", gb_seconds, "GB-s", gb_seconds * price)


def _seconds(one: Mapping[str, float]) -> float:
    """Returns how long a function runs for one task, with its share of cold starts."""
    kinds = ("table_call", "queue_message", "queue_delay", "post")
    waits = sum(one[f"{kind}s"] * ASSUMED[f"{kind}_ms"] for kind in kinds)
    starts = one["invocations"] * (ASSUMED["invocation_ms"] + ASSUMED["cold_share"] * ASSUMED["cold_ms"])
    return (waits + starts) / 1000


def _words(scale: Scale, usage: Mapping[str, Any]) -> Iterator[Item]:
    per, more = PRICES["per_unit"], _more(scale, usage)
    logs = scale.tasks * (usage["log_bytes"] + 600 * more + usage["log_lines"] * ASSUMED["line_bytes"]) / GIGABYTE
    posts = usage["posts"] + more
    out = scale.tasks * (posts * ASSUMED["post_bytes"] + usage["requests"] * ASSUMED["answer_bytes"]) / GIGABYTE
    yield Item("logs and metrics", logs, "GB", logs * per["logs_ingested_gb"])
    yield Item("data out", out, "GB", out * per["data_out_gb"])


def _kept(scale: Scale) -> Iterator[Item]:
    month = PRICES["per_month"]
    months = scale.tasks * ASSUMED["stored_bytes"] * ASSUMED["stored_months"] / GIGABYTE
    price = month["dynamodb_stored_gb"] + month["dynamodb_point_in_time_gb"]
    what = "kept in DynamoDB until they expire, with point-in-time recovery (not in the sum)"
    yield Item(what, months, "GB-months", months * price, kept=True)


def enough(mean: float) -> int:
    """Returns the number that a Poisson variable of this mean does not exceed at 999 of 1,000 moments."""
    if mean > LARGE:  # as a normal variable
        return math.ceil(mean + DEVIATIONS * math.sqrt(mean))
    probability = covered = math.exp(-mean)
    most = 0
    while covered < COVERED:
        most += 1
        probability *= mean / most
        covered += probability
    return most


@dataclass(frozen=True)
class Waiting:
    """The USD of a task that waits for its model, for its worker only, at a rate of tasks that arrive at random."""

    tasks_an_hour: float
    on_lambda: float
    in_containers: float
    containers: int


def waiting(tasks_an_hour: float, seconds: float = 30.0) -> Waiting:
    """Returns the cost of a task of ``seconds`` on Lambda, and in as many small containers as the tasks need.

    They have places for the tasks that are there at 999 of 1,000 moments, if tasks arrive independently (Poisson).
    """
    unit = PRICES["per_unit"]
    most = enough(tasks_an_hour * seconds / 3600)
    containers = max(1, math.ceil(most / CONTAINER["tasks"]))
    hour = CONTAINER["vcpu"] * unit["fargate_vcpu_hour_arm64"] + CONTAINER["gb"] * unit["fargate_gb_hour_arm64"]
    hour += unit["public_address_hour"]
    on_lambda = seconds * MEMORY_GB["worker"] * unit["lambda_gb_second_arm64"]
    return Waiting(tasks_an_hour, on_lambda, containers * hour / tasks_an_hour, containers)


def shown_waiting(rates: Iterable[float]) -> str:
    """Formats the costs at these rates as a table."""
    rows = [
        f"| {one.tasks_an_hour:,.0f} | {one.on_lambda:.5f} | {one.in_containers:.6f} | {one.containers:,} |"
        for one in map(waiting, rates)
    ]
    return "\n".join(["| tasks an hour | on Lambda | in containers | containers |", "|---:|---:|---:|---:|", *rows])


def shown(items: list[Item]) -> str:
    """Formats the items as a table."""
    rows = [f"| {item.what} | {item.quantity:,.1f} {item.unit} | {item.usd:.2f} |" for item in items]
    return "\n".join(["| item | quantity | USD |", "|---|---|---|", *rows])


def main() -> None:
    """Prints the bill."""
    reader = argparse.ArgumentParser(description="What queued tasks cost on AWS.")
    reader.add_argument("--tasks", type=int, default=MILLION)
    reader.add_argument("--posts", type=float, help=f"POSTs to webhooks for each task, {USAGE['posts']} as counted")
    reader.add_argument("--agent-seconds", type=float, default=0.0, help="seconds that the worker waits for its model")
    reader.add_argument("--architecture", choices=["arm64", "x86_64"], default="arm64")
    asked = reader.parse_args()
    items = bill(Scale(asked.tasks, asked.posts, asked.agent_seconds, asked.architecture))
    print(shown(items))
    print(f"\n{total(items):.2f} USD for {asked.tasks:,} tasks, prices of {PRICES['as_of']} in {PRICES['region']}")
    print(f"{total(items) - free(items):.2f} USD of it if nothing else uses the free tier of the month")


if __name__ == "__main__":
    main()
