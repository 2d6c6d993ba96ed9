"""From the commit of an event to the first byte of its webhook at the receiver, at 50 events a second (N8).

All of our own code on the way runs: the relay's message, the claim, reading the log, the signature, the address check,
TLS. Storage and queues are in memory. 50 tasks on 10 hosts take turns; the sender reuses connections as it does in a
deployment.
"""

from __future__ import annotations

from typing import Final

from measuring import Report, figure, goal, main
from notifying import Instance, delays_ms, percentile, play, receiver, warm

SECONDS: Final = 8
TASKS: Final = 50
HOSTS: Final = 10
P50_MS: Final = 20
P99_MS: Final = 100


def measure(rounds: int) -> Report:
    """Measures one run of ``SECONDS`` per round."""
    runs = [_run() for _ in range(rounds)]
    halves, tails = ([percentile(delays, part) for delays in runs] for part in (0.5, 0.99))
    return Report(
        "From commit to webhook",
        __doc__ or "",
        [figure("half of the events within", "ms", halves, ours=True), figure("99 % within", "ms", tails, ours=True)],
        [
            goal("N8", "commit to first byte of the webhook, ms, p50", "<=", P50_MS, halves),
            goal("N8", "commit to first byte of the webhook, ms, p99", "<=", P99_MS, tails),
        ],
        ["Not measured: DynamoDB, its stream and SQS, which add their own delays in AWS."],
    )


def _run() -> list[float]:
    with receiver() as (port, context, arrived):
        instance = Instance(port, context)
        keys = [instance.open(f"h{number % HOSTS}.example.com") for number in range(TASKS)]
        warm(instance, keys)
        play(instance, keys, SECONDS)
        instance.close()
        return delays_ms(instance.committed, arrived())


if __name__ == "__main__":
    main(measure, rounds=3)
