"""English and Chinese as far as arranging needs them: where sentences end, and which terms carry the subject.

Rules and word lists only: nothing is learned, downloaded or random, so the same text gives the same answer anywhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from a2a_serverless.adapters.builtin.stopwords import ENGLISH, HAN_CUTS, listed

HAN: Final = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
LONGEST_SENTENCE: Final = 1_000

_CLOSERS: Final = r"[\"'”’」』）)】》〉\]*_~`]*"
# The look-behinds and possessive repeats keep long runs of full stops linear.
_STOP: Final = re.compile(
    rf"(?<![。！？；｡])(?P<han>[。！？；｡]++{_CLOSERS})(?![。！？；，、：.!?,])"
    rf"|(?<![.!?…؟۔।])(?P<mark>[.!?…؟۔।]++){_CLOSERS}(?=\s|$)"
)
_KEPT_WHOLE: Final = re.compile(
    r"`[^`\n]{1,400}`|\[[^\[\]\n]{1,400}\]\([^()\s]{0,800}\)|\*\*[^*\n]{1,120}\*\*"
    r"|\([^()\n]{1,200}\)|（[^（）\n]{1,200}）"
)
_OPENS: Final = re.compile(r"\s+[\"'“‘「『（(\[*_~`【《]*(\S)")
_LONGEST_LAST_WORD: Final = 24
_LAST_WORD: Final = re.compile(rf"[^\s(\[\"“]{{0,{_LONGEST_LAST_WORD}}}$")
_NEXT_WORD: Final = re.compile(r"\s+[\"'“‘(\[*_]*([A-Z][a-z']*)\b")
_HONORIFICS: Final = frozenset(listed("Mr Mrs Ms Dr Prof Capt Col Gen Lt Sgt Rev Hon Gov Sen Rep Mt Messrs Mme"))
_NEVER_LAST: Final = frozenset(listed("vs e.g i.e cf approx ca viz al"))
_BEFORE_NUMBER: Final = frozenset(
    listed("no nos p pp fig figs eq sec ch vol art jan feb mar apr jun jul aug sep sept oct nov dec est")
)
_SOMETIMES_LAST: Final = frozenset(
    listed("etc a.m p.m st ave blvd dept u.s u.k u.n e.u d.c ph.d b.c a.d inc ltd co corp jr sr m.d p.s")
)
_STARTERS: Final = frozenset(
    listed("""
    The A An In On At It He She They We I You But And Or So This That These Those However If When While After Before For
    From With As By To There Then Its Their His Her Our Most Many Some All No Not Yet Since Although What Why How Who
    Where Because Today Now Later Once Each Every Both One Two Unlike Until Even Such Instead
    """)
)
_NUMBER_NEXT: Final = re.compile(r"\s+[(\[]?\d")
_BREATH: Final = re.compile(r"[,，、:：;]\s*|\s+")
_TERM: Final = re.compile(rf"[{HAN}]+|[^\W_{HAN}]+(?:['’\-][^\W_{HAN}]+)*")
_HAN_START: Final = re.compile(rf"[{HAN}]")
_SHORTEST_STEM: Final = 4
_LONG_CLAUSE: Final = 60


def sentences(text: str) -> list[str]:
    """The sentences of one paragraph, in order and unchanged but for the white space around them.

    Full stops inside abbreviations, initials, numbers, URLs, code spans, links and brackets end nothing. What has no
    end within ``LONGEST_SENTENCE`` characters is cut at a comma or a space.
    """
    return [piece for sentence in _split(text) for piece in _pieces(sentence) if piece]


def terms(text: str) -> list[str]:
    """What carries meaning: words but for stop words, without plural endings; Chinese as pairs of characters."""
    found: list[str] = []
    for match in _TERM.finditer(text):
        run = match.group()
        found.extend(_pairs(run) if _HAN_START.match(run) else _words(run))
    return found


def stem(word: str) -> str:
    """The word in lower case without possessive and plural endings, so that "Lighthouse's" meets "lighthouses"."""
    word = word.lower().replace("’", "'").removesuffix("'s").rstrip("'")
    if len(word) < _SHORTEST_STEM or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word.removesuffix("s")


def is_han(character: str) -> bool:
    """Whether words are written together without spaces around this character."""
    return bool(_HAN_START.match(character))


def _split(text: str) -> Iterator[str]:
    spans = [match.span() for match in _KEPT_WHOLE.finditer(text)]
    starts = [start for start, _ in spans]
    begin = 0
    for stop in _STOP.finditer(text):
        place = bisect_right(starts, stop.start()) - 1
        inside = place >= 0 and _inside(text, stop, spans[place], begin)
        if not inside and (_ends_clause(stop, begin) if stop.group("han") else _ends_here(text, stop, begin)):
            yield text[begin : stop.end()].strip()
            begin = stop.end()
    yield text[begin:].strip()


def _inside(text: str, stop: re.Match[str], span: tuple[int, int], begin: int) -> bool:
    """Whether a full stop belongs to what is kept whole; so does the last one of an aside in mid-sentence."""
    start, end = span
    aside = text[start] in "(（" and start - begin > 1
    return stop.end() < end or (aside and stop.end() == end)


def _ends_clause(stop: re.Match[str], begin: int) -> bool:
    """A Chinese semicolon joins two halves of a thought; it ends only what is long enough already."""
    return stop.group("han")[0] != "；" or stop.end() - begin >= _LONG_CLAUSE


def _ends_here(text: str, stop: re.Match[str], begin: int) -> bool:
    follower = _OPENS.match(text, stop.end())
    if follower is None or stop.group("mark") != ".":
        return follower is None or not follower.group(1).islower()
    if follower.group(1).islower():
        return False
    # No match begins earlier (``$`` also matches before a newline), and a search from ``begin`` would be quadratic.
    earliest = max(begin, stop.start() - _LONGEST_LAST_WORD - 1)
    last = _LAST_WORD.search(text, earliest, stop.start())
    return last is None or _may_be_last(
        last.group().lstrip("*_`'‘"), text, stop.end(), at_start=last.start() <= begin + 1
    )


def _may_be_last(word: str, text: str, end: int, *, at_start: bool) -> bool:
    lower = word.lower()
    if word in _HONORIFICS or lower in _NEVER_LAST or (at_start and word.isdigit()):
        return False
    if lower in _BEFORE_NUMBER and _NUMBER_NEXT.match(text, end):
        return False
    initial = len(word) == 1 and word.isalpha() and word.isupper()
    if initial or lower in _SOMETIMES_LAST or re.fullmatch(r"(?:[A-Za-z]\.)+[A-Za-z]", word):
        follower = _NEXT_WORD.match(text, end)
        return follower is None or follower.group(1) in _STARTERS
    return True


def _pieces(sentence: str) -> Iterator[str]:
    begin = 0
    while len(sentence) - begin > LONGEST_SENTENCE:
        limit = begin + LONGEST_SENTENCE
        breaths = [match.end() for match in _BREATH.finditer(sentence, begin + LONGEST_SENTENCE // 2, limit)]
        end = breaths[-1] if breaths else limit
        yield sentence[begin:end].strip()
        begin = end
    yield sentence[begin:].strip()


def _words(run: str) -> list[str]:
    word = run.lower().replace("’", "'")
    return [] if word in ENGLISH or len(word) == 1 else [stem(word)]


def _pairs(run: str) -> list[str]:
    pairs = [run[i : i + 2] for i in range(len(run) - 1)] or [run]
    return [pair for pair in pairs if not HAN_CUTS.intersection(pair)]
