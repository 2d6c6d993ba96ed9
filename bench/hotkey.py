"""A hot key: how one owner's flood of events for one webhook host delays the webhooks of others.

Four tasks of one owner, all with webhooks at one host, have more events waiting than can be delivered in the time, and
a queue message for every 25 of them, as the relay enqueues; meanwhile 50 events a second go to 99 other hosts. Runs
with and without the flood alternate, over one notifier instance (10 messages at a time), on one core (Python's lock).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from measuring import Report, figure, goal, main
from notifying import Instance, delays_ms, percentile, play, receiver, warm

SECONDS: Final = 8
HOSTS: Final = 99
HOT_TASKS: Final = 4
BATCH: Final = 25
BATCHES: Final = 100
P50_MS: Final = 20


@dataclass(frozen=True)
class Outcome:
    """Commit to first byte (ms) of the others: p50 and p99; and the hot key's events delivered per second."""

    middle: float
    tail: float
    delivered: float


def measure(rounds: int) -> Report:
    """Measures both cases in each round."""
    quiet, flooded = [], []
    for _ in range(rounds):
        quiet.append(_run(hot=False))
        flooded.append(_run(hot=True))
    return Report(
        "A hot key",
        __doc__ or "",
        [
            figure("half of the others' events, without the flood", "ms", [one.middle for one in quiet]),
            figure("half of the others' events, beside it", "ms", [one.middle for one in flooded], ours=True),
            figure("99 % of the others' events, without the flood", "ms", [one.tail for one in quiet]),
            figure("99 % of the others' events, beside it", "ms", [one.tail for one in flooded], ours=True),
            figure("the flood meanwhile", "events/s", [one.delivered for one in flooded], ours=True),
        ],
        [
            goal("N8", "p50 beside a hot key, commit to first byte, ms", "<=", P50_MS, [one.middle for one in flooded]),
        ],
        [
            (
                f"The flood: {HOT_TASKS} tasks of {BATCH * BATCHES:,} events take four of ten messages at a time: one"
                " delivery at a time for each webhook. The others share the processor with it; on Lambda more instances"
                " would start."
            ),
            "Not measured: DynamoDB's own limits, which docs/scale.md works out.",
        ],
    )


def _run(*, hot: bool) -> Outcome:
    with receiver() as (port, context, arrived):
        instance = Instance(port, context)
        keys = [instance.open(f"h{number}.example.com") for number in range(HOSTS)]
        flood = [instance.open("hot.example.com") for _ in range(HOT_TASKS)] if hot else []
        warm(instance, keys + flood)
        for _ in range(BATCHES):
            instance.commit(*flood * BATCH)
        play(instance, keys, SECONDS)
        instance.close()
        hot_tasks, found = {key.task for key in flood}, arrived()
        others = {event: at for event, at in instance.committed.items() if event[0] not in hot_tasks}
        delays, delivered = delays_ms(others, found), sum(1 for task, _ in found if task in hot_tasks)
        return Outcome(percentile(delays, 0.5), percentile(delays, 0.99), delivered / SECONDS)


if __name__ == "__main__":
    main(measure, rounds=3)
