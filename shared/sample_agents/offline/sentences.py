"""Splits English and Chinese text into sentences, and chooses key sentences.

It uses rules and a short word list only. Every pattern is bounded, so it takes linear time.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HAN: Final = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
# Look-behinds and possessive quantifiers make a long run of full stops take one pass.
_END: Final = re.compile(
    r"(?<![。！？])[。！？]++[”’」』）)\"]{0,4}(?![，、])"
    r"|(?<![.!?…])(?<!\b[A-Z])(?<!\b(?:Dr|Mr|Ms|St|No))(?<!\be\.g|\bi\.e)[.!?…]++[\"'”’)\]*_]{0,4}(?=\s{1,4}[^a-z\s]|\s*$)"
)
_TERM: Final = re.compile(rf"[{_HAN}]+|[^\W\d_{_HAN}]{{4,40}}")
_STOP_LIST: Final = (
    "about after again also been before being between both cannot could does down each even every from have here into "
    "just like made make many more most much never once only other over same should some such than that their them "
    "then there these they this those though through under until very were what when where which while whom will with "
    "without would your"
)
_STOPWORDS: Final = frozenset(_STOP_LIST.split())
_HAN_PARTICLES: Final = frozenset(
    "的了在是和与及或就都也很被把对从到向给让使而但并且又再还要会能可以这那它他她们我你之其"
)
# A sentence that begins like this continues the one before it.
_LEANS: Final = re.compile(
    r"(?:It|This|That|These|They|He|She|But|And|So|Yet|Then|However)\b|[它他她这那此其但]|然而|因此|所以"
)
_LINK: Final = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,1000}\)")
_MARKS: Final = re.compile(r"[*~`]+|(?<!\w)_+|_+(?!\w)|\\(?=[^\w\s])")
_GAP: Final = re.compile(rf"(?<=[，。！？；：、」』）】》]) | (?=[{_HAN}])(?<=[{_HAN}] )")


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph in order."""
    ends = [end.end() for end in _END.finditer(text)]
    return [sentence for begin, end in pairwise([0, *ends, len(text)]) if (sentence := text[begin:end].strip())]


def terms(text: str) -> frozenset[str]:
    """The terms of a text: long words but stop words, without plural endings; Chinese as pairs of characters."""
    runs = _TERM.findall(text.lower())
    pairs = (first + second for run in runs if is_han(run) for first, second in pairwise(run))
    words = (run.removesuffix("s") for run in runs if not is_han(run) and run not in _STOPWORDS)
    return frozenset([*words, *(pair for pair in pairs if not _HAN_PARTICLES.intersection(pair))])


def best(units: Sequence[str], count: int) -> list[str]:
    """At most ``count`` units, in order: those that share most terms with the others and can be read alone."""
    of = [terms(unit) for unit in units]
    number = Counter(term for each in of for term in each)

    def worth(place: int) -> float:
        unit, terms_of = units[place], of[place]
        leans = _LEANS.match(unit) or unit.endswith(("?", "？"))
        share = 2.0 if place == 0 else 0.5 if leans else 1.0
        return share * sum(log(1 + number[term]) for term in sorted(terms_of)) / (len(terms_of) + 3)

    places = sorted(range(len(units)), key=worth, reverse=True)[:count]
    return [units[place] for place in sorted(places)]


def is_han(text: str) -> bool:
    """Whether ``text`` begins with a character of a script without spaces between words."""
    return re.match(f"[{_HAN}]", text) is not None


def plain(markdown: str) -> str:
    """One line of text without Markdown: links keep their words."""
    return " ".join(_MARKS.sub("", _LINK.sub(r"\1", markdown)).split())


def joined(pieces: Iterable[str]) -> str:
    """The pieces as running text, with spaces between them, but not between Chinese ones."""
    return _GAP.sub("", " ".join(pieces))
