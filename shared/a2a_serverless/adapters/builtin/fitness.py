"""How well a sentence can be read alone, away from the text around it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from a2a_serverless.adapters.builtin.structure import Unit

LONGEST_QUOTE: Final = 280
_LETTERS: Final = 0.55
_FEW_TERMS: Final = 5
_VERY_FEW_TERMS: Final = 4
_LEANING: Final = re.compile(
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


def leans(unit: Unit) -> bool:
    """Whether it goes on from the sentence before it ("However, ...", "It ...")."""
    return _LEANING.match(unit.words) is not None


def announces(unit: Unit) -> bool:
    """Whether it only leads up to what follows."""
    return unit.words.endswith((":", "："))


def fitness(unit: Unit) -> float:
    """From 0 (says nothing alone) to 1. Every flaw has its price."""
    said = unit.said
    if not said or announces(unit):
        return 0.0
    worth = 1.0
    for flaw, price in (
        (_LEANING.match(said), 0.6),
        (_PERSON.search(said) and not _NAME.search(said), 0.6),
        (not _ENDED.search(said[-12:]), 0.6),
        (said.endswith(("?", "？")), 0.75),
        (said[0].islower(), 0.6),
        (len(said) > LONGEST_QUOTE, 0.5),
        (sum(map(str.isalpha, said)) < _LETTERS * len(said), 0.3),
        (len(set(unit.terms)) < _FEW_TERMS, 0.5),
        (len(set(unit.terms)) < _VERY_FEW_TERMS, 0.5),
        (unit.kind in {"item", "quote"}, 0.85),
    ):
        worth *= price if flaw else 1.0
    return worth
