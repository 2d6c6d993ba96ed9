"""The Chinese documents say what the English ones say: the same headings, code blocks, tables and links, in one order."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.documents import LINK, ROOT, anchor

TRANSLATIONS = {path: ROOT / "docs" / path.name for path in sorted((ROOT / "docs/zh").glob("*.md"))}
TRANSLATIONS[ROOT / "README.zh.md"] = ROOT / "README.md"
# Headings that only the translation has. The English documents have a page for it: the glossary.
ADDED = {"quickstart.md": ["常用术语"]}
_FENCE = re.compile(r"^```\w+\n.*?^```$", re.MULTILINE | re.DOTALL)
_DRAWN = re.compile(r"<!-- drawn: .*?<!-- end -->", re.DOTALL)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(path: Path) -> str:
    """A document without its code blocks and generated parts, which other tests compare."""
    return _FENCE.sub("", _DRAWN.sub("", path.read_text()))


def headings(text: str) -> list[tuple[str, str]]:
    """The level and the text of each heading outside of code."""
    return re.findall(r"^(#+) (.+)$", _FENCE.sub("", text), re.MULTILINE)


def places(path: Path) -> Counter[tuple[str, int | None]]:
    """The documents, and the numbers of the headings in them, to which links lead; a translation counts as its original."""
    found: Counter[tuple[str, int | None]] = Counter()
    for link in LINK.findall(prose(path)):
        file, _, fragment = link.partition("#")
        if ":" in file:
            found[link, None] += 1
            continue
        target = (path.parent / file).resolve() if file else path
        place = [anchor(text) for _, text in headings(target.read_text())].index(fragment) if fragment else None
        found[name(TRANSLATIONS.get(target, target)), place] += 1
    return found


def rows(path: Path) -> list[int]:
    """The number of rows of each table."""
    return [part.count("\n") for part in re.findall(r"(?:^\|.*\n)+", prose(path), re.MULTILINE)]


@pytest.mark.parametrize("path", TRANSLATIONS, ids=name)
def test_a_translation_has_the_code_of_its_original(path: Path) -> None:
    assert _FENCE.findall(path.read_text()) == _FENCE.findall(TRANSLATIONS[path].read_text())


@pytest.mark.parametrize("path", TRANSLATIONS, ids=name)
def test_a_translation_has_the_headings_of_its_original(path: Path) -> None:
    translated = [level for level, text in headings(prose(path)) if text not in ADDED.get(path.name, [])]
    assert translated == [level for level, _ in headings(prose(TRANSLATIONS[path]))]


@pytest.mark.parametrize("path", TRANSLATIONS, ids=name)
def test_a_translation_has_the_tables_of_its_original(path: Path) -> None:
    added = {"quickstart.md": 1}.get(path.name, 0)
    assert rows(path)[: len(rows(path)) - added] == rows(TRANSLATIONS[path])


@pytest.mark.parametrize("path", TRANSLATIONS, ids=name)
def test_a_translation_has_the_links_of_its_original(path: Path) -> None:
    translated, original = places(path), places(TRANSLATIONS[path])
    assert (translated - original, original - translated) == (Counter(), Counter())


@pytest.mark.parametrize("path", TRANSLATIONS, ids=name)
def test_a_translation_links_to_translations(path: Path) -> None:
    translated = {original: translation for translation, original in TRANSLATIONS.items()}
    targets = [(path.parent / link.partition("#")[0]).resolve() for link in LINK.findall(prose(path)) if link[0] != "#"]
    own = TRANSLATIONS[path]  # the link that changes the language
    assert [name(target) for target in targets if target in translated and target != own] == []
