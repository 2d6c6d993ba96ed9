"""Where a text without headings changes its subject: valleys of lexical cohesion (TextTiling: Hearst, 1997).

Of the valleys, the best set is taken: deep ones, at distances that make sections of similar length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Final

from a2a_serverless.adapters.builtin.salience import PLACES, scaled, similarity

_MOST_GAPS: Final = 150
_WINDOW: Final = (4, 40)
_EVENNESS: Final = 0.35


def boundaries(term_lists: Sequence[Sequence[str]], gaps: Sequence[int], pieces: int) -> list[int]:
    """Where to cut ``term_lists`` (one list per sentence) into ``pieces``: chosen among ``gaps``, in order.

    A gap is the index of the sentence that would begin a piece. Fewer gaps than needed give fewer pieces.
    """
    gaps = _thinned(gaps)
    pieces = min(pieces, len(gaps) + 1)
    if pieces <= 1:
        return []
    window = min(max(len(term_lists) // (2 * pieces), _WINDOW[0]), _WINDOW[1])
    cohesion = [_cohesion(term_lists, gap, window) for gap in gaps]
    return _best(gaps, _depths(cohesion), pieces, len(term_lists))


def _thinned(gaps: Sequence[int]) -> Sequence[int]:
    step = -(-len(gaps) // _MOST_GAPS) or 1
    return gaps[step // 2 :: step]


def _cohesion(term_lists: Sequence[Sequence[str]], gap: int, window: int) -> float:
    before, after = term_lists[max(0, gap - window) : gap], term_lists[gap : gap + window]
    return similarity(
        scaled(Counter(term for terms in before for term in terms)),
        scaled(Counter(term for terms in after for term in terms)),
    )


def _depths(cohesion: Sequence[float]) -> list[float]:
    """How far the cohesion rises on both sides of each gap before it falls again."""
    left = _rises(cohesion)
    right = _rises(cohesion[::-1])[::-1]
    return [(peak - value) + (other - value) for peak, other, value in zip(left, right, cohesion, strict=True)]


def _rises(cohesion: Sequence[float]) -> list[float]:
    peaks: list[float] = []
    for index, value in enumerate(cohesion):
        rising = index > 0 and cohesion[index - 1] >= value
        peaks.append(peaks[-1] if rising else value)
    return peaks


def _best(gaps: Sequence[int], depths: Sequence[float], pieces: int, length: int) -> list[int]:
    """The ``pieces - 1`` gaps with the highest sum of depth, less a price for uneven pieces, by dynamic programming."""
    ideal = length / pieces

    def price(start: int, end: int) -> float:
        return _EVENNESS * ((end - start) / ideal - 1) ** 2

    ways: list[tuple[float, tuple[int, ...]]] = [
        (depth - price(0, gap), (gap,)) for gap, depth in zip(gaps, depths, strict=True)
    ]
    for _ in range(pieces - 2):
        ways = [
            max(
                ((ways[i][0] + depths[j] - price(gaps[i], gap), (*ways[i][1], gap)) for i in range(j)),
                key=lambda way: round(way[0], PLACES),
                default=(-inf, ()),
            )
            for j, gap in enumerate(gaps)
        ]
    return list(max(ways, key=lambda way: round(way[0] - price(way[1][-1] if way[1] else 0, length), PLACES))[1])
