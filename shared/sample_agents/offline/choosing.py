"""Chooses key sentences: those that share most terms with the rest of the text, without repeating each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import log
from typing import Final

from sample_agents.offline.sentences import is_han, plain, terms

_LONGEST_POINT: Final = 280
_FEW_TERMS: Final = 4
_CANDIDATES: Final = 40
_REPEATS: Final = 0.7
# A sentence that begins like this continues the one before it.
_LEANS: Final = re.compile(
    r"[\"'“‘*_]{0,3}(?:(?:It|This|That|These|Those|They|He|She|Its|Their|His|Her|However|But|And|Or|So|Yet|Then|Thus|"
    r"Hence|Also|Such|Instead|Another|Both|Finally|Besides|Meanwhile|Still|Later|For example|As a result|After that|"
    r"Few of|Some of|Most of)\b|[它他她这那此其但]|然而|因此|所以|于是|而|并且|同时|例如|比如|另外|不过|随后|然后|最后)"
)


def best(units: Sequence[str], count: int, about: str = "") -> list[int]:
    """The indexes of at most ``count`` units that best represent all of them and ``about``, in reading order."""
    of = [frozenset(terms(plain(unit))) for unit in units]
    wanted = frozenset(terms(about))
    number = Counter(term for each in of for term in each)
    weight = {term: log(1 + times) + (2.0 if term in wanted else 0.0) for term, times in number.items()}
    worth = [
        _worth(unit, each, weight) * (1.4 if place == 0 else 1.0)
        for place, (unit, each) in enumerate(zip(units, of, strict=True))
    ]
    heavy = sorted((place for place in range(len(units)) if worth[place] > 0), key=lambda place: -worth[place])
    return sorted(_distinct(heavy[: count + _CANDIDATES], of, worth, count))


def _worth(unit: str, of: frozenset[str], weight: dict[str, float]) -> float:
    """How well a unit represents the others when it is read alone; 0 or more."""
    said = plain(unit)
    worth = sum(weight[term] for term in sorted(of)) / (len(of) + 3)
    for flaw, price in (
        (_LEANS.match(said), 0.5),
        (said.endswith((":", "：")), 0.1),
        (said.endswith(("?", "？")), 0.6),
        (len(said) > _LONGEST_POINT, 0.5),
        (len(of) < _FEW_TERMS, 0.5),
    ):
        worth *= price if flaw else 1.0
    return worth


def _distinct(heavy: list[int], of: Sequence[frozenset[str]], worth: Sequence[float], count: int) -> list[int]:
    """The best units; each is rated again by how much it repeats of those already chosen (MMR)."""
    chosen: list[int] = []
    left = {place: worth[place] for place in heavy}
    while left and len(chosen) < count:
        place = max(left, key=lambda each: (left[each], -each))
        del left[place]
        chosen.append(place)
        left = {
            other: min(weight, worth[other] * (1 - _REPEATS * _shared(of[other], of[place])))
            for other, weight in left.items()
        }
    return chosen


def _shared(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / (min(len(first), len(second)) or 1)


def point(unit: str) -> str:
    """A unit as one line without Markdown, cut if it is long."""
    said = plain(unit)
    if len(said) <= _LONGEST_POINT:
        return said
    cut = said[:_LONGEST_POINT]
    return (cut if is_han(cut) else cut.rpartition(" ")[0] or cut).rstrip(" ,;:，；：、") + "…"
