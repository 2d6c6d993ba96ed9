"""Splits English and Chinese text into sentences and terms, as far as choosing sentences needs it.

It uses rules and short word lists only. Every pattern is bounded, so it takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain, pairwise, zip_longest
from typing import Final

LONGEST: Final = 1_000
_HAN: Final = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_IS_HAN: Final = re.compile(f"[{_HAN}]")
# Look-behinds and possessive quantifiers make a long run of full stops take one pass.
_END: Final = re.compile(
    r"(?<![。！？])[。！？]++[”’」』）)\"]{0,4}(?![，、])"
    r"|(?<![.!?…])(?P<mark>[.!?…]++)[\"'”’)\]*_]{0,4}(?=\s|$)"
)
_PIECE: Final = re.compile(rf".{{1,{LONGEST}}}(?:[\s,，、;；]|\Z)|.{{1,{LONGEST}}}", re.DOTALL)
_LAST_WORD: Final = re.compile(r"[\w.]{1,12}$")
_ABBREVIATIONS: Final = (
    " mr mrs ms dr prof st mt no nos vs etc e.g i.e cf approx fig vol jan feb mar apr jun jul aug sep sept oct nov dec "
    "u.s u.k a.m p.m inc ltd co jr sr "
)
_TERM: Final = re.compile(rf"[{_HAN}]+|[^\W\d_{_HAN}][^\W_{_HAN}]*(?:['’-][^\W_{_HAN}]+)*")
_STOP_LIST: Final = (
    "a an the and or but if then so as at by for from in into of off on onto out over to up with without under about "
    "after again all also am any are be been before being below between both can cannot could did do does down during "
    "each every few had has have he her here hers him his how i it its itself just like made make many may me might "
    "more most much must my no nor not now one only other our own same she should some such than that their them "
    "there these they this those though through too two until us very was we were what when where which while who "
    "whom why will would you your because since still even ever never yet however well get got it's don't"
)
_STOPWORDS: Final = frozenset(_STOP_LIST.split())
_HAN_PARTICLES: Final = frozenset(
    "的了在是和与及或就都也很被把对从到向给让使而但并且又再还要会能可以这那它他她们我你之其所以因为"
)
_IMAGE: Final = re.compile(r"!\[[^\[\]]{0,300}\]\([^()\s]{0,1000}\)")
_LINK: Final = re.compile(r"\[([^\[\]]{0,300})\](?:\([^()\s]{0,1000}\)|\[[^\[\]]{0,100}\])")
_MARKS: Final = re.compile(r"[*~`]+|(?<!\w)_+|_+(?!\w)|\\(?=[^\w\s])")
_HAN_STOPS: Final = "，。！？；：、”’」』）】》"


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph in order; one longer than ``LONGEST`` is cut at a comma or a space."""
    found, begin = list[str](), 0
    for end in _END.finditer(text):
        if not end["mark"] or _ends(text, end):
            found.append(text[begin : end.end()])
            begin = end.end()
    pieces = (piece.strip() for sentence in (*found, text[begin:]) for piece in _PIECE.findall(sentence))
    return [piece for piece in pieces if piece]


def _ends(text: str, end: re.Match[str]) -> bool:
    """Whether a full stop ends a sentence: not after an abbreviation or an initial, nor before a small letter."""
    following = text[end.end() : end.end() + 3].lstrip(" \n\t\"'“‘(")
    if following[:1].islower():
        return False
    word = _LAST_WORD.search(text, max(0, end.start() - 13), end.start())
    if word is None or end["mark"] != ".":
        return True
    last = word.group().lstrip(".")
    return f" {last.lower()} " not in _ABBREVIATIONS and not (len(last) == 1 and last.isupper())


def terms(text: str) -> list[str]:
    """The terms of a text: words without stop words and plural endings; Chinese as pairs of characters."""
    found: list[str] = []
    for match in _TERM.finditer(text):
        found += _pairs(match.group()) if is_han(match.group()) else _words(match.group())
    return found


def _pairs(run: str) -> list[str]:
    pairs = [first + second for first, second in pairwise(run)] or [run]
    return [pair for pair in pairs if not _HAN_PARTICLES.intersection(pair)]


def _words(run: str) -> list[str]:
    word = run.lower().replace("’", "'").removesuffix("'s")
    if len(word) < 2 or word in _STOPWORDS:  # noqa: PLR2004 - a single letter
        return []
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word]  # noqa: PLR2004 - "gas"


def is_han(text: str) -> bool:
    """Whether ``text`` begins with a character of a script without spaces between words."""
    return _IS_HAN.match(text) is not None


def plain(markdown: str) -> str:
    """One line of text without Markdown: links keep their words, images are removed."""
    without_images = _IMAGE.sub("", markdown)
    return " ".join(_MARKS.sub("", _LINK.sub(r"\1", without_images)).split())


def joined(pieces: Iterable[str]) -> str:
    """The pieces as running text, with spaces between them, but not between Chinese ones."""
    found = [piece for piece in pieces if piece]
    gaps = (
        "" if left[-1] in _HAN_STOPS or (is_han(left[-1]) and is_han(right)) else " " for left, right in pairwise(found)
    )
    return "".join(chain.from_iterable(zip_longest(found, gaps, fillvalue="")))
