"""Which units of a text to keep: its key points, a shorter version of it, a digest of a few sentences.

What was chosen stays in reading order, and nothing is kept without what it leans on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.builtin.language import terms
from a2a_serverless.adapters.builtin.salience import Vector, centrality, scaled, similarity, vectors

if TYPE_CHECKING:
    from a2a_serverless.adapters.builtin.structure import Unit

_KEPT_WHOLE: Final = 12
_MOST_KEPT: Final = 30
_KEPT_SHARE: Final = 0.6
_MOST_POINTS: Final = 3
_UNITS_PER_POINT: Final = 3
_LONGEST_POINT: Final = 280
_LONGEST_EXHIBIT: Final = 8_000
_REPETITION: Final = 0.7
_LEANS: Final = re.compile(
    r"(?:[*_\"'“]*(?:It|This|These|That|Those|They|He|She|Its|Their|His|Her|Him|Them|However|But|And|Or|So|Yet|Therefore|Thus|"
    r"Hence|Also|Then|Such|Instead|Otherwise|Moreover|Furthermore|Besides|Meanwhile|Nevertheless|Still|Both|Neither|Another|"
    r"In addition|As a result|For example|For instance|In other words|On the other hand|By contrast|After that|"
    r"To do so|In this|In that|At that|With this|Similarly|Likewise|Consequently|Finally|Second|Third)\b|"
    r"[“\"]?(?:它|他|她|这|那|此|其|但|然而|因此|所以|于是|而|并且|同时|例如|比如|另外|不过|否则|随后|然后|最后|可是|反之|由此|"
    r"除此|同样|再|又|也|还|接着|之后|后来|从此|结果|总之|换句话说))"
)
_ENDED: Final = re.compile(r"[.!?…。！？；;][\"'”’」』）)\]*_`]*$")
_PERSON: Final = re.compile(r"\b(?:he|she|his|her|him)\b")
_NAME: Final = re.compile(r"(?<=[a-z,] )[A-Z][a-z]")
_LEAST_WEIGHT: Final = 0.3
_PLACES: Final = {(False, False): 1.0, (True, False): 1.25, (True, True): 2.0}
_LETTERS: Final = 0.55
_FEW_TERMS: Final = 5


def key_points(units: Sequence[Unit]) -> tuple[str, ...]:
    """The one to three units that say most of what the others say, without Markdown."""
    count = max(1, min(_MOST_POINTS, sum(unit.is_prose for unit in units) // _UNITS_PER_POINT + 1))
    return tuple(_cut(units[index].words) for index in sorted(_distinct(units, _placed(units), count)))


def digest(units: Sequence[Unit], count: int, title: str) -> list[Unit]:
    """The ``count`` units that say most about all of them and about ``title``, none of which repeats another."""
    of = _vectors(units)
    about = scaled(dict.fromkeys(terms(title), 1.0))
    weights = [weight * (1 + similarity(vector, about)) for weight, vector in zip(_placed(units), of, strict=True)]
    return [units[index] for index in sorted(_distinct(units, weights, count))]


def shortened(units: Sequence[Unit]) -> list[Unit]:
    """All units of a short part; of a long one the more central ones, with all that they need to be understood."""
    prose = sum(unit.is_prose for unit in units)
    if prose <= _KEPT_WHOLE:
        return [unit for unit in units if len(unit.text) <= _LONGEST_EXHIBIT]
    weights = _weights(units)
    count = min(max(ceil(_KEPT_SHARE * prose), _KEPT_WHOLE), _MOST_KEPT)
    best = set(sorted((i for i, unit in enumerate(units) if unit.is_prose), key=lambda i: (-weights[i], i))[:count])
    return [units[index] for index in sorted(_with_headings(units, _with_company(units, best)))]


def _with_company(units: Sequence[Unit], chosen: set[int]) -> set[int]:
    """Adds what a chosen unit leans on and the exhibits that stand with it; leaves out announcements of nothing."""
    leaning = {i - 1 for i in chosen if i and _LEANS.match(units[i].text) and units[i - 1].block == units[i].block}
    kept = chosen | leaning
    for index, unit in enumerate(units):
        if not unit.is_prose and unit.kind != "heading" and index - 1 in kept and len(unit.text) <= _LONGEST_EXHIBIT:
            kept.add(index)
    announcing = {index for index, unit in enumerate(units) if unit.kind == "sentence" and _announces(unit)}
    announced = {index for index in announcing if _next_block(units, index) & kept}
    return (kept - announcing) | announced


def _next_block(units: Sequence[Unit], index: int) -> set[int]:
    following = index + 1
    if following == len(units):
        return set()
    end = following
    while end < len(units) and units[end].block == units[following].block:
        end += 1
    return set(range(following, end))


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


def _announces(unit: Unit) -> bool:
    return unit.words.endswith((":", "："))


def _weights(units: Sequence[Unit]) -> list[float]:
    """How well each unit stands for all, 0 or more. Only prose has weight."""
    return [
        (_LEAST_WEIGHT + weight) * _fitness(unit) if unit.is_prose else 0.0
        for unit, weight in zip(units, centrality(_vectors(units)), strict=True)
    ]


def _placed(units: Sequence[Unit]) -> list[float]:
    """The weights, raised where writers say what they are about: where the text begins, and each paragraph."""
    prose = [index for index, unit in enumerate(units) if unit.is_prose]
    begins = {units[index].block: index for index in reversed(prose)}
    places = [_PLACES[index == begins.get(unit.block), index == prose[0]] for index, unit in enumerate(units)]
    return (
        [weight * place for weight, place in zip(_weights(units), places, strict=True)] if prose else [0.0] * len(units)
    )


def _vectors(units: Sequence[Unit]) -> list[Vector]:
    return vectors([terms(unit.words) if unit.is_prose else [] for unit in units])


def _fitness(unit: Unit) -> float:
    """How well a unit can be read alone."""
    words = unit.words
    if not words or _announces(unit):
        return 0.0
    fitness = 1.0 if _ENDED.search(words[-12:]) else 0.6
    letters = sum(character.isalpha() for character in words) / len(words)
    for flaw, price in (
        (_LEANS.match(words), 0.6),
        (_PERSON.search(words) and not _NAME.search(words), 0.6),
        (words.endswith(("?", "？")), 0.75),
        (len(words) > _LONGEST_POINT, 0.5),
        (letters < _LETTERS, 0.3),
        (len(dict.fromkeys(terms(words))) < _FEW_TERMS, 0.5),
        (unit.kind == "item", 0.85),
    ):
        fitness *= price if flaw else 1.0
    return fitness


def _distinct(units: Sequence[Unit], weights: Sequence[float], count: int) -> list[int]:
    """The ``count`` heaviest units, each weighed again by how much it repeats one chosen before (MMR)."""
    of = _vectors(units)
    best = sorted((i for i, weight in enumerate(weights) if weight > 0), key=lambda i: (-weights[i], i))[
        : 8 * count + 20
    ]
    chosen: list[int] = []
    while best and len(chosen) < count:
        heaviest = max(best, key=lambda i: weights[i] * (1 - _REPETITION * _nearest(of[i], [of[j] for j in chosen])))
        best.remove(heaviest)
        chosen.append(heaviest)
    return chosen


def _nearest(vector: Vector, others: Sequence[Vector]) -> float:
    return max((similarity(vector, other) for other in others), default=0.0)


def _cut(words: str) -> str:
    return (
        words if len(words) <= _LONGEST_POINT else words[:_LONGEST_POINT].rsplit(" ", 1)[0].rstrip(" ,;:，；：、") + "…"
    )
