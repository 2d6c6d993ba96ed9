"""The cost of a million queued tasks on AWS (N12), and of a worker that waits 30 seconds for a model (N21).

Counted usage times public prices, as `bench/cost.py` itemises it: one send, one get, two webhooks with at most two
POSTs each, logs included, without the time of a model. A worker waits in Lambda or in containers of 50 tasks at a time,
whose number is enough for 999 of 1,000 moments, if tasks arrive at random.
"""

from __future__ import annotations

from cost import MILLION, N12_USD, PRICES, Scale, bill, total, waiting
from measuring import Report, figure, goal, main

RATES = (50, 1_000, 6_000)  # tasks an hour


def measure(_rounds: int) -> Report:
    """Computes the bills once: they do not vary."""
    items, waits = bill(Scale()), {rate: waiting(rate) for rate in RATES}
    wait = waits[1_000]
    return Report(
        "A million tasks",
        __doc__ or "",
        [
            *(figure(item.what, "USD", [item.usd], ours=True) for item in items if not item.kept),
            figure("30 s of waiting on Lambda", "micro-USD", [wait.on_lambda * MILLION], ours=True),
            *(
                figure(
                    f"the same in containers, {rate:,} an hour", "micro-USD", [one.in_containers * MILLION], ours=True
                )
                for rate, one in waits.items()
            ),
        ],
        [
            goal("N12", "a million queued tasks, USD", "<=", N12_USD, [total(items)]),
            goal("N21", "30 s of waiting on Lambda, micro-USD", "<=", 200, [round(wait.on_lambda * MILLION)]),
            goal("N21", "in containers, micro-USD", "<=", 20, [wait.in_containers * MILLION]),
        ],
        [f"Prices of {PRICES['as_of']} in {PRICES['region']}. `bench/cost.py` lists the assumptions."],
    )


if __name__ == "__main__":
    main(measure, rounds=1)
