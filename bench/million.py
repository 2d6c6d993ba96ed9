"""The cost of a million queued tasks on AWS, without the time of a model (N12).

Counted usage times public prices, as `bench/cost.py` itemises it: one send, one get, two webhooks with at most two
POSTs each, logs included.
"""

from __future__ import annotations

from cost import N12_USD, PRICES, Scale, bill, total
from measuring import Report, figure, goal, main


def measure(_rounds: int) -> Report:
    """Computes the bill once: it does not vary."""
    items = bill(Scale())
    return Report(
        "A million tasks",
        __doc__ or "",
        [figure(item.what, "USD", [item.usd], ours=True) for item in items if not item.kept],
        [goal("N12", "a million queued tasks, USD", "<=", N12_USD, [total(items)])],
        [f"Prices of {PRICES['as_of']} in {PRICES['region']}. `bench/cost.py` lists the assumptions."],
    )


if __name__ == "__main__":
    main(measure, rounds=1)
