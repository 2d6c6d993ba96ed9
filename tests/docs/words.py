"""How many words a reader of docs/ may have to read: ``python -m tests.docs.words`` by page and kind.

Counted is the text outside of code blocks, comments and generated parts, tables included: everything between two spaces
that has a letter or a digit; two Chinese characters are a word. A page's kind is the part of the site's menu in which
it stands.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Left out: decisions, records of requirements and evidence, the inside, and pages that the code writes.
LEFT_OUT = ("adr/*.md", "requirements.md", "evidence.md", "internals.md", "python.md", "command-options.md")
KINDS = ("Tutorials", "How-to", "Concepts", "Reference", "中文")
_CODE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_CHINESE = re.compile("[\u4e00-\u9fff]")
_NOT_READ = re.compile(r"<!-- drawn: .*?<!-- end -->|<!--.*?-->", re.DOTALL)


class _Menu(yaml.SafeLoader):
    """Reads MkDocs' settings, without the objects of Python that they name."""


_Menu.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def pages() -> list[Path]:
    """The pages that are counted."""
    return [path for path in sorted(DOCS.rglob("*.md")) if not any(map(path.relative_to(DOCS).match, LEFT_OUT))]


def words(text: str) -> int:
    """The number of words in a document."""
    return words_with_code(_CODE.sub(" ", text))


def words_with_code(text: str) -> int:
    """The number of words in a document, code blocks included."""
    rest, characters = _CHINESE.subn(" ", _NOT_READ.sub(" ", text))
    return sum(any(map(str.isalnum, word)) for word in rest.split()) + characters // 2


def kinds() -> dict[str, str]:
    """The kind of each page that the menu names, by its path in docs/."""
    menu = yaml.load((DOCS / "site/mkdocs.yml").read_text(), _Menu)["nav"]  # noqa: S506 - a safe loader
    return {page: kind for part in menu for kind, entries in part.items() for page in _named(entries)}


def _named(entries: Any) -> list[str]:
    """The pages of a part of the menu."""
    if isinstance(entries, str):
        return [entries]
    inside = entries.values() if isinstance(entries, dict) else entries
    return [page for entry in inside for page in _named(entry)]


def count() -> dict[str, dict[str, int]]:
    """The words of each page, by kind."""
    kind_of = kinds()
    counted: dict[str, dict[str, int]] = {}
    for path in pages():
        page = path.relative_to(DOCS).as_posix()
        kind = "中文" if page.startswith("zh/") else kind_of.get(page, "none")
        counted.setdefault(kind, {})[page] = words(path.read_text())
    return counted


def main(arguments: list[str]) -> None:
    """Prints the counts."""
    parser = argparse.ArgumentParser(prog="python -m tests.docs.words", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args(arguments).json
    counted = count()
    sums = {kind: sum(of.values()) for kind, of in counted.items()}
    total, with_code = sum(sums.values()), sum(words_with_code(path.read_text()) for path in pages())
    if as_json:
        shown = {"total": total, "with_code": with_code, "kinds": sums, "pages": counted}
        print(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    for kind, of in counted.items():
        print(f"{sums[kind]:6} {kind}")
        for page, number in Counter(of).most_common():
            print(f"{number:13} {page}")
    print(f"{total:6} words in {len(pages())} pages ({with_code} with the code in them)")


if __name__ == "__main__":
    main(sys.argv[1:])
