"""How one black-holed webhook host of 100 delays the other 99: commit to first byte, at 50 events a second (N10).

A black-holed host neither accepts nor refuses connections; each attempt waits until its deadline. Runs with and without
it alternate, over the same notifier (10 messages at a time), with two tasks on each host.
"""

from __future__ import annotations

from typing import Final

from measuring import Report, figure, goal, main, ratios
from notifying import Instance, delays_ms, percentile, play, receiver, warm

SECONDS: Final = 20
HOSTS: Final = 100
TASKS_EACH: Final = 2
LIMIT: Final = 1.2
DEAD: Final = "h0.example.com"


def measure(rounds: int) -> Report:
    """Measures both cases in each round."""
    well, ill = [], []
    for _ in range(rounds):
        well.append(_tail(frozenset()))
        ill.append(_tail(frozenset({DEAD})))
    return Report(
        "One black-holed host of 100",
        __doc__ or "",
        [
            figure("99 % of the others' events, all well", "ms", well),
            figure("99 % of the others' events, one black hole", "ms", ill, ours=True),
        ],
        [
            goal(
                "N10", "p99 of the other 99 hosts, by what it is without the black hole", "<=", LIMIT, ratios(ill, well)
            )
        ],
        ["Not measured: several instances. Each detects the black hole itself or reads the stored breaker."],
    )


def _tail(dead: frozenset[str]) -> float:
    with receiver() as (port, context, arrived):
        instance = Instance(port, context)
        hosts = [f"h{number}.example.com" for number in range(HOSTS)] * TASKS_EACH
        keys = [instance.open(host) for host in hosts]
        others = {key.task for key, host in zip(keys, hosts, strict=True) if host != DEAD}
        warm(instance, keys)
        instance.dead = dead
        play(instance, keys, SECONDS)
        instance.close()
        committed = {event: at for event, at in instance.committed.items() if event[0] in others}
        return percentile(delays_ms(committed, arrived()), 0.99)


if __name__ == "__main__":
    main(measure, rounds=3)
