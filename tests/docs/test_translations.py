"""The Chinese documents follow the English ones.

Section by section they have the same code blocks, tables, links, inline code, paragraphs and list items.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.chinese import in_chinese
from tests.docs.documents import LINK, ROOT, anchor

TRANSLATIONS = {path: ROOT / "docs" / path.name for path in sorted((ROOT / "docs/zh").glob("*.md"))}
TRANSLATIONS[ROOT / "README.zh.md"] = ROOT / "README.md"
# Headings that only the translation has. The English documents have a page for it: the glossary.
ADDED = {"quickstart.md": ["常用术语"]}
_FENCE = re.compile(r"^```\w+\n.*?^```$", re.MULTILINE | re.DOTALL)
# Inline code that only the translation has: a Chinese text for the demo.
ADDED_CODE = {"quickstart.md": {"make demo INPUT=examples/demo.zh.md"}}
_INLINE_CODE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
_ITEM = re.compile(r"^(?:- |\d+\. )", re.MULTILINE)
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
    """The documents to which links lead, with the numbers of their headings. A translation counts as its original."""
    found: Counter[tuple[str, int | None]] = Counter()
    for link in LINK.findall(prose(path)):
        file, _, fragment = link.partition("#")
        if ":" in file:
            found[link.replace(".cn/en/", ".cn/"), None] += 1  # AWS China has the same page in both languages
            continue
        target = (path.parent / file).resolve() if file else path
        place = [anchor(text) for _, text in headings(target.read_text())].index(fragment) if fragment else None
        found[name(TRANSLATIONS.get(target, target)), place] += 1
    return found


def rows(path: Path) -> list[int]:
    """The number of rows of each table."""
    return [part.count("\n") for part in re.findall(r"(?:^\|.*\n)+", prose(path), re.MULTILINE)]


def sections(path: Path) -> list[str]:
    """The prose under each heading that the original has."""
    parts = re.split(r"^#+ (.+)$", prose(path), flags=re.MULTILINE)
    added = ADDED.get(path.name, [])
    return [parts[0], *(body for title, body in zip(parts[1::2], parts[2::2], strict=True) if title not in added)]


def inline_code(text: str) -> set[str]:
    """What stands in backticks: commands, settings, fields."""
    return {" ".join(found.split()) for found in _INLINE_CODE.findall(text)}


def counts(text: str) -> tuple[int, int]:
    """The number of paragraphs, lists and tables, and the number of list items."""
    return len(re.split(r"\n\s*\n", text.strip())), len(_ITEM.findall(text))


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
def test_a_section_of_a_translation_has_the_inline_code_of_its_original(path: Path) -> None:
    translated, original = map(inline_code, sections(path)), map(inline_code, sections(TRANSLATIONS[path]))
    differ = [here ^ there for here, there in zip(translated, original, strict=True)]
    assert set().union(*differ) == ADDED_CODE.get(path.name, set())


@pytest.mark.parametrize("path", TRANSLATIONS, ids=name)
def test_a_section_of_a_translation_has_the_paragraphs_and_items_of_its_original(path: Path) -> None:
    assert list(map(counts, sections(path))) == list(map(counts, sections(TRANSLATIONS[path])))


@pytest.mark.parametrize("path", TRANSLATIONS, ids=name)
def test_a_translation_links_to_translations(path: Path) -> None:
    translated = {original: translation for translation, original in TRANSLATIONS.items()}
    targets = [
        (path.parent / link.partition("#")[0]).resolve() for link in LINK.findall(path.read_text()) if link[0] != "#"
    ]
    own = TRANSLATIONS[path]  # the link that changes the language
    assert [name(target) for target in targets if target in translated and target != own] == []


def test_a_generated_text_without_translation_is_an_error() -> None:
    with pytest.raises(ValueError, match="no translation of: A new sentence"):
        in_chinese("| `reason` | A new sentence. |")
    assert in_chinese("| `a b` | -32700 | The body is not JSON. |") == "| `a b` | -32700 | 请求体不是 JSON。 |"
