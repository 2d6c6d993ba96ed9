"""Which sentences matter: those that share most with all the others (LexRank: Erkan and Radev, 2004).

Comparing all pairs is quadratic, so only the sentences nearest to the centre of the text take part in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import log, sqrt
from operator import mul
from typing import Final, TypeAlias

Vector: TypeAlias = "dict[str, float]"

PLACES: Final = 9
_MOST_COMPARED: Final = 120
_ROUNDS: Final = 20
_DAMPING: Final = 0.85


def vectors(term_lists: Sequence[Sequence[str]]) -> list[Vector]:
    """One vector of length 1 for each list of terms (or an empty one), terms weighed by how few lists hold them."""
    held_by = Counter(term for terms in term_lists for term in dict.fromkeys(terms))
    weights = {term: log(1 + len(term_lists) / count) for term, count in held_by.items()}
    return [scaled({term: count * weights[term] for term, count in Counter(terms).items()}) for terms in term_lists]


def scaled(vector: Mapping[str, float]) -> Vector:
    """The vector brought to length 1; an empty one stays empty."""
    length = sqrt(sum(value * value for value in vector.values()))
    return {term: value / length for term, value in vector.items()} if length else {}


def similarity(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    """The cosine of two vectors of length 1, rounded: how ``sum`` rounds depends on the Python version."""
    short, long = (left, right) if len(left) <= len(right) else (right, left)
    return round(sum(value * long[term] for term, value in short.items() if term in long), PLACES)


def centrality(of: Sequence[Vector]) -> list[float]:
    """How central each vector is among them, 0 to 1; the most central has 1 unless all are empty."""
    centre: dict[str, float] = defaultdict(float)
    for vector in of:
        for term, value in vector.items():
            centre[term] += value
    middle = scaled(centre)
    near = [similarity(vector, middle) for vector in of]
    compared = sorted(range(len(of)), key=lambda index: (-near[index], index))[:_MOST_COMPARED]
    ranks = dict(zip(compared, _lexrank([of[index] for index in compared]), strict=True))
    highest = max(ranks.values(), default=0.0) or 1.0
    return [round(ranks.get(index, 0.0) / highest, PLACES) for index in range(len(of))]


def _lexrank(of: Sequence[Vector]) -> list[float]:
    """The share of time that a reader spends at each vector who walks from similar to similar."""
    likeness = [[0.0] * len(of) for _ in of]
    for (i, left), (j, right) in combinations(enumerate(of), 2):
        likeness[i][j] = likeness[j][i] = similarity(left, right)
    totals = [sum(row) or 1.0 for row in likeness]
    walks = [[_DAMPING * value / total for value, total in zip(row, totals, strict=True)] for row in likeness]
    jump = [1 - _DAMPING if vector else 0.0 for vector in of]
    ranks = jump
    for _ in range(_ROUNDS):
        ranks = [start + sum(map(mul, row, ranks)) for start, row in zip(jump, walks, strict=True)]
    return ranks
