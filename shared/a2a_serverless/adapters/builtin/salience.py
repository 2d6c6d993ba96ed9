"""Which sentences matter: those that share most with all the others (LexRank: Erkan and Radev, 2004).

Comparing all pairs is quadratic, so only the sentences nearest to the centre of the text take part in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import log, sqrt
from typing import Final, TypeAlias

Vector: TypeAlias = "dict[str, float]"

_MOST_COMPARED: Final = 240
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
    """The cosine of two vectors of length 1."""
    short, long = (left, right) if len(left) <= len(right) else (right, left)
    return sum(value * long[term] for term, value in short.items() if term in long)


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
    return [ranks.get(index, 0.0) / highest for index in range(len(of))]


def _lexrank(of: Sequence[Vector]) -> list[float]:
    links = [_links(vector, of) for vector in of]
    totals = [sum(row.values()) or 1.0 for row in links]
    ranks = [1.0 if vector else 0.0 for vector in of]
    for _ in range(_ROUNDS):
        received = [1 - _DAMPING if vector else 0.0 for vector in of]
        for index, row in enumerate(links):
            share = _DAMPING * ranks[index] / totals[index]
            for other, weight in row.items():
                received[other] += share * weight
        ranks = received
    return ranks


def _links(vector: Vector, of: Sequence[Vector]) -> dict[int, float]:
    weights = ((index, similarity(vector, other)) for index, other in enumerate(of) if other is not vector)
    return {index: weight for index, weight in weights if weight > 0}
