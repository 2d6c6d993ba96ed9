"""Names for what a stretch of text is about: the phrases that it repeats and the rest of the text does not.

English candidates are runs of words without stop words (RAKE: Rose et al., 2010). Chinese is written without spaces, so
its candidates are all strings of characters that keep together: no longer string is nearly as frequent, and what
stands before and after them varies.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Final, TypeAlias

from a2a_serverless.adapters.builtin.language import HAN, stem
from a2a_serverless.adapters.builtin.stopwords import ENGLISH, HAN_CUTS, HAN_EDGES, HAN_WORDS, listed

if TYPE_CHECKING:
    from a2a_serverless.domain.writing import Language

Key: TypeAlias = "tuple[str, ...]"

_MOST_READ: Final = {"en": 40_000, "zh": 8_000}
_LONGEST_PHRASE: Final = 3
_HAN_LENGTHS: Final = range(2, 9)
_LONGEST_RUN: Final = 40
_TOKEN: Final = re.compile(rf"[^\W_{HAN}]+(?:['’\-][^\W_{HAN}]+)*|[^\s\w]|[_{HAN}]")
_LATIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9\-]{1,24}")
_HAN_RUN: Final = re.compile(rf"[{HAN}]+")
_HAN_CUT: Final = re.compile("|".join([*HAN_WORDS, f"[{''.join(sorted(HAN_CUTS))}]"]))
_WEIGHT_BY_LENGTH: Final = {1: 1.0, 2: 1.8, 3: 2.0}
_HAN_WEIGHT_BY_LENGTH: Final = {2: 1.0, 3: 1.4, 4: 1.6}
_NO_NOUN: Final = re.compile(r"(?:ly|ed|ing|ful|ous|ive|able|est)$")
_BEFORE_NOUNS: Final = frozenset(
    listed("""
    the a an of his her its their our your my this that these those in on at with by for from into onto no every each
    some any many most few several two three four five six as between under over through across against about
    """)
)
_SENTENCE_STARTS: Final = frozenset([*"\n.!?:;()\"'“”-–—*", ""])
_OPENING: Final = 1.6
_ONCE: Final = 0.3
_WEAK: Final = 0.4
_ABSORBED: Final = 0.7
_SECOND_BEST: Final = 0.4


@dataclass(frozen=True, slots=True)
class Phrase:
    """A candidate. ``key`` is its folded form, ``text`` the form in which it is written most often."""

    key: Key
    text: str
    weight: float


def names(texts: Sequence[str], language: Language) -> list[str]:
    """One name for each text: the one or two phrases that set it apart from the others. Empty when it has no words.

    Each text has one sentence in a line.
    """
    candidates = _han_phrases if language == "zh" else _english_phrases
    found = [candidates(text[: _MOST_READ[language]]) for text in texts]
    spread = Counter(phrase.key for phrases in found for phrase in phrases)
    taken: set[Key] = set()
    return [_name(_ranked(phrases, spread, len(texts)), language, taken) for phrases in found]


def _ranked(phrases: list[Phrase], spread: Counter[Key], texts: int) -> list[Phrase]:
    rare = (Phrase(each.key, each.text, each.weight * log(1 + texts / spread[each.key])) for each in phrases)
    return sorted(rare, key=lambda phrase: (-phrase.weight, phrase.text))


def _name(ranked: list[Phrase], language: Language, taken: set[Key]) -> str:
    first = next((phrase for phrase in ranked if phrase.key not in taken), None)
    if first is None:
        return ranked[0].text if ranked else ""
    taken.add(first.key)
    others = (phrase for phrase in ranked if phrase.key not in taken and not _overlap(phrase, first))
    second = next(others, None)
    if second is None or second.weight < _SECOND_BEST * first.weight:
        return _capital(first.text)
    taken.add(second.key)
    return _capital(first.text) + ("与" if language == "zh" else " and ") + second.text


def _overlap(left: Phrase, right: Phrase) -> bool:
    """Whether they share a word, or for Chinese a pair of characters."""
    return not _pieces(left).isdisjoint(_pieces(right))


def _pieces(phrase: Phrase) -> frozenset[str]:
    text = phrase.text
    if _HAN_RUN.fullmatch(text):
        return frozenset(text[i : i + 2] for i in range(len(text) - 1))
    return frozenset(phrase.key)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _english_phrases(text: str) -> list[Phrase]:
    """``text`` has a sentence in each line; what its first one names counts for more."""
    forms: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    nouns: Counter[Key] = Counter()
    for words, is_noun in _grams(text):
        forms[_key(words)][" ".join(words)] += 1
        nouns[_key(words)] += is_noun
    counts = Counter({key: seen.total() for key, seen in forms.items()})
    companions = _companions(counts)
    opening = {_key(words) for words, _ in _grams(text.partition("\n")[0])}
    return [
        Phrase(key, _usual(forms[key]), _english_weight(key, count, nouns[key], opens=key in opening))
        for key, count in counts.items()
        if count == 1 or len(key) > 1 or companions[key[0]] < _ABSORBED * count
    ]


def _grams(text: str) -> Iterator[tuple[list[str], bool]]:
    """Up to three words in a row without a stop word, and whether what stands before makes them look like a noun."""
    run: list[str] = []
    before = marker = ""
    for token in _TOKEN.findall(text):
        folded = token.lower().replace("’", "'")
        if folded in ENGLISH or len(token) == 1 or not token[0].isalpha():
            run, before = [], folded
            continue
        marker = marker if run else before
        run = [*run, token][-_LONGEST_PHRASE:]
        named = token[0].isupper() and (len(run) > 1 or before not in _SENTENCE_STARTS)
        yield from ((run[begin:], named or marker in _BEFORE_NOUNS) for begin in range(len(run)))


def _key(words: Sequence[str]) -> Key:
    return tuple(stem(word) for word in words)


def _usual(forms: Counter[str]) -> str:
    """The most frequent form; when capitals are as frequent as small letters they only began a sentence."""
    return max(forms, key=lambda form: (forms[form], form.islower(), form))


def _english_weight(key: Key, count: int, nouns: int, *, opens: bool) -> float:
    weight = count * _WEIGHT_BY_LENGTH[len(key)] * (_WEAK + nouns / count)
    for applies, factor in (
        (count == 1, _ONCE),
        (_NO_NOUN.search(key[-1]), _WEAK),
        (len(key) > 1 and key[0].endswith("ly"), _WEAK),
        (opens, _OPENING),
    ):
        weight *= factor if applies else 1.0
    return weight


def _companions(counts: Counter[Key]) -> Counter[str]:
    """For each word the count of the most frequent longer phrase around it."""
    best: Counter[str] = Counter()
    for key, count in counts.items():
        for word in key if len(key) > 1 else ():
            best[word] = max(best[word], count)
    return best


def _han_phrases(text: str) -> list[Phrase]:
    runs = [piece[:_LONGEST_RUN] for run in _HAN_RUN.findall(text) for piece in _HAN_CUT.split(run) if len(piece) > 1]
    counts = Counter(gram for run in runs for gram in _han_grams(run))
    extended = _extensions(counts)
    neighbours = _neighbours(runs, counts)
    repeated = {
        gram: count
        for gram, count in counts.items()
        if count > 1 and extended[gram] < _ABSORBED * count and min(map(len, neighbours[gram])) > 1
    }
    once = {run: 1 for run in runs if len(run) in _HAN_LENGTHS and run not in repeated}
    latin = Counter(match.group() for match in _LATIN.finditer(text))
    return [
        *(Phrase((gram,), gram, _han_weight(gram, count)) for gram, count in repeated.items()),
        *(Phrase((run,), run, _ONCE * _han_weight(run, 1)) for run in once),
        *(Phrase((word.lower(),), word, float(count)) for word, count in latin.items() if count > 1),
    ]


def _han_grams(run: str) -> Iterator[str]:
    for length in _HAN_LENGTHS:
        yield from (run[begin : begin + length] for begin in range(len(run) - length + 1))


def _han_weight(gram: str, count: int) -> float:
    weak = gram[0] in HAN_EDGES or gram[-1] in HAN_EDGES
    return count * _HAN_WEIGHT_BY_LENGTH.get(len(gram), 1.6) * (_WEAK if weak else 1.0)


def _extensions(counts: Counter[str]) -> Counter[str]:
    """For each string the count of its most frequent extension by one character."""
    best: Counter[str] = Counter()
    for gram, count in counts.items():
        for inner in (gram[:-1], gram[1:]):
            best[inner] = max(best[inner], count)
    return best


def _neighbours(runs: Sequence[str], counts: Counter[str]) -> defaultdict[str, tuple[set[str], set[str]]]:
    """The characters before and after each repeated string. Every end of a run counts as another one."""
    found: defaultdict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for number, run in enumerate(runs):
        for length in _HAN_LENGTHS:
            for begin in range(len(run) - length + 1):
                gram, end = run[begin : begin + length], begin + length
                if counts[gram] > 1:
                    found[gram][0].add(run[begin - 1] if begin else f"^{number}")
                    found[gram][1].add(run[end] if end < len(run) else f"${number}")
    return found
