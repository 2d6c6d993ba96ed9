"""Which units of a text to keep: its key points, a shorter version of it, a digest of a few sentences.

What was chosen stays in reading order, and nothing is kept without what it leans on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.builtin.fitness import LONGEST_QUOTE, announces, fitness, leans
from a2a_serverless.adapters.builtin.language import terms
from a2a_serverless.adapters.builtin.markdown import plain
from a2a_serverless.adapters.builtin.salience import Vector, centrality, scaled, similarity, vectors

if TYPE_CHECKING:
    from a2a_serverless.adapters.builtin.structure import Unit

_KEPT_WHOLE: Final = 12
_MOST_KEPT: Final = 30
_KEPT_SHARE: Final = 0.6
_MOST_POINTS: Final = 3
_UNITS_PER_POINT: Final = 3
_MOST_CHOSEN: Final = 50
_LONGEST_EXHIBIT: Final = 8_000
_LONGEST_ROW: Final = 4
_REPETITION: Final = 0.7
_LEAST_WEIGHT: Final = 0.3
_PARAGRAPH_BEGINS: Final = 1.25
_TEXT_BEGINS: Final = 1.6


def key_points(units: Sequence[Unit]) -> tuple[str, ...]:
    """The one to three units that say most of what the others say, without Markdown."""
    of = vectors([unit.terms for unit in units])
    count = max(1, min(_MOST_POINTS, sum(unit.is_prose for unit in units) // _UNITS_PER_POINT + 1))
    found = [units[index].words for index in _distinct(of, _placed(units, of), count)]
    return tuple(map(_cut, found or _columns(units)))


def _columns(units: Sequence[Unit]) -> list[str]:
    """What the first table lists, when there is nothing else to say."""
    heads = (unit.text.partition("\n")[0].split("|") for unit in units if unit.kind == "table")
    cells = [cell for cell in map(plain, next(heads, [])) if cell]
    return [" | ".join(cells)] if cells else []


def digest(units: Sequence[Unit], count: int, title: str) -> list[Unit]:
    """At most ``count`` units that say most about all of them and about ``title``, none of which repeats another."""
    of = vectors([unit.terms for unit in units])
    about = scaled(dict.fromkeys(terms(title), 1.0))
    weights = [weight * (1 + similarity(vector, about)) for weight, vector in zip(_placed(units, of), of, strict=True)]
    return [units[index] for index in _distinct(of, weights, count)]


def shortened(units: Sequence[Unit]) -> list[Unit]:
    """All units of a short part; of a long one the more central ones, with all that they need to be understood."""
    prose = [index for index, unit in enumerate(units) if unit.is_prose]
    if len(prose) <= _KEPT_WHOLE:
        return [unit for unit in units if len(unit.text) <= _LONGEST_EXHIBIT]
    weights = _weights(units, vectors([unit.terms for unit in units]))
    count = min(max(ceil(_KEPT_SHARE * len(prose)), _KEPT_WHOLE), _MOST_KEPT)
    best = set(sorted(prose, key=lambda index: (-weights[index], index))[:count])
    return [units[index] for index in _with_headings(units, _with_company(units, best))]


def _with_company(units: Sequence[Unit], chosen: set[int]) -> set[int]:
    """Adds what a chosen unit leans on and the exhibits that stand with it; leaves out announcements of nothing."""
    leaning = {i - 1 for i in chosen if i and leans(units[i]) and units[i - 1].block == units[i].block}
    steps = {i for group in _ordered_lists(units) if not group.isdisjoint(chosen) for i in group}
    kept = chosen | leaning | steps
    kept |= {i for i, unit in enumerate(units) if _is_exhibit(unit) and not _around(units, i).isdisjoint(kept)}
    announcing = {index for index, unit in enumerate(units) if unit.kind == "sentence" and announces(unit)}
    reached = _reached(units, kept)
    announced = {index for index in announcing if index + 1 in reached}
    return (kept - announcing) | announced


def _ordered_lists(units: Sequence[Unit]) -> list[set[int]]:
    """The indexes of numbered lists: one step alone is of no use."""
    lists: dict[int, set[int]] = {}
    for index, unit in enumerate(units):
        if unit.kind == "item" and unit.text.lstrip()[:1].isdigit():
            lists.setdefault(unit.block, set()).add(index)
    return [*lists.values()]


def _is_exhibit(unit: Unit) -> bool:
    return not unit.is_prose and unit.kind != "heading" and len(unit.text) <= _LONGEST_EXHIBIT


def _around(units: Sequence[Unit], index: int) -> set[int]:
    """The prose right before and right after a row of a few exhibits."""
    first, last = max(index - _LONGEST_ROW, 0), min(index + _LONGEST_ROW, len(units) - 1)
    before = next((i for i in range(index - 1, first - 1, -1) if not _is_exhibit(units[i])), index)
    after = next((i for i in range(index + 1, last + 1) if not _is_exhibit(units[i])), index)
    return {i for i in (before, after) if units[i].is_prose}


def _reached(units: Sequence[Unit], kept: set[int]) -> set[int]:
    """The units that are kept, or that a kept one follows in the same block."""
    reached: set[int] = set()
    for index in range(len(units) - 1, -1, -1):
        if index in kept or (index + 1 in reached and units[index + 1].block == units[index].block):
            reached.add(index)
    return reached


def _with_headings(units: Sequence[Unit], kept: set[int]) -> Iterator[int]:
    """The chosen units and the headings above them; a heading above nothing goes."""
    open_headings: list[int] = []
    for index, unit in enumerate(units):
        if unit.kind == "heading":
            open_headings = [other for other in open_headings if units[other].level < unit.level] + [index]
        elif index in kept:
            yield from open_headings
            open_headings = []
            yield index


def _weights(units: Sequence[Unit], of: Sequence[Vector]) -> list[float]:
    """How well each unit stands for all, 0 or more. Only prose has weight."""
    return [
        (_LEAST_WEIGHT + weight) * fitness(unit) if unit.is_prose else 0.0
        for unit, weight in zip(units, centrality(of), strict=True)
    ]


def _placed(units: Sequence[Unit], of: Sequence[Vector]) -> list[float]:
    """The weights, raised where writers say what they are about: where the text begins, and each paragraph."""
    prose = [index for index, unit in enumerate(units) if unit.is_prose]
    begins = {units[index].block: index for index in reversed(prose)}
    weights = _weights(units, of)
    for place, factor in ((begins.values(), _PARAGRAPH_BEGINS), (prose[:1], _TEXT_BEGINS)):
        for index in place:
            weights[index] *= factor
    return weights


def _distinct(of: Sequence[Vector], weights: Sequence[float], count: int) -> list[int]:
    """The ``count`` heaviest, in reading order, each weighed again by how much it repeats one chosen before (MMR)."""
    count = min(count, _MOST_CHOSEN)
    heavy = sorted((i for i, weight in enumerate(weights) if weight > 0), key=lambda i: (-weights[i], i))
    left, chosen = heavy[: 4 * count + 20], list[int]()
    while left and len(chosen) < count:
        best = max(left, key=lambda i: weights[i] * (1 - _REPETITION * _nearest(of[i], [of[j] for j in chosen])))
        left.remove(best)
        chosen.append(best)
    return sorted(chosen)


def _nearest(vector: Vector, others: Sequence[Vector]) -> float:
    return max((similarity(vector, other) for other in others), default=0.0)


def _cut(words: str) -> str:
    if len(words) <= LONGEST_QUOTE:
        return words
    return words[:LONGEST_QUOTE].rsplit(" ", 1)[0].rstrip(" ,;:，；：、") + "…"
