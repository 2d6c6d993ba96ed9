"""MkDocs: pages from documents outside of docs/, links between them, the list of decisions, diagrams, copied commands.

The site is built twice: in English, and below zh/ in Chinese. An address is the place of a page in the whole site, such
as zh/index.md; the same page is index.md in its build.
"""

from __future__ import annotations

import html
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

import jieba  # type: ignore[import-not-found] # in an environment of its own
from mkdocs.structure.files import File  # type: ignore[import-not-found]

from tests.docs.documents import commands, diagram_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mkdocs.config.defaults import MkDocsConfig  # type: ignore[import-not-found]
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[2]
# Documents outside of docs/, and their addresses.
ELSEWHERE = {
    "README.md": "index.md",
    "README.zh.md": "zh/index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "webhook_receiver/README.md": "receiver.md",
    "webhook_receiver/javascript/README.md": "receiver-javascript.md",
    "bench/results.md": "measured.md",
    **{
        f"bench/results/{plot.name}": f"pictures/{plot.name}" for plot in sorted((ROOT / "bench/results").glob("*.svg"))
    },
}
# Pages for people who change the project, which the search does not find.
NOT_SEARCHED = ("adr/", "internals.md", "requirements.md", "evidence.md")
# Pages that most users look for, and pages about the project itself.
BOOSTS = {
    **dict.fromkeys(("webhooks.md", "deploy.md", "access.md", "api.md", "agents.md"), 2),
    **dict.fromkeys(
        ("call-from.md", "clients.md", "conformance.md", "foreign.md", "isolation.md", "guarantees.md"), 0.3
    ),
    **dict.fromkeys(("command-options.md",), 0.6),
    **dict.fromkeys(("zh/access.md", "zh/waiting.md", "zh/deploy.md"), 0.5),  # there are few others in Chinese
    "errors.md": 0.5,  # a short page with a word of most questions
    **dict.fromkeys(("changes.md", "contributing.md", "change.md", "measured.md", "deviations.md"), 0.1),
}
# Words of users for which a page has other ones.
WORDS = {
    "access.md": ["delete", "login", "erase"],
    "approval.md": ["human in the loop"],
    "operate.md": ["restore"],
    "scale.md": ["quota", "rate limit", "limit of an owner"],
}
# The parts of the menu that have Chinese pages.
CHINESE = {"Tutorials": "教程", "How-to": "指南", "Concepts": "概念", "Reference": "参考"}
LANGUAGES = {"en": ("English", ""), "zh": ("中文", "zh/")}  # their names and places in the site
SMALLEST = 10  # the pixels of letters that can be read
_SOURCES = {address: source for source, address in ELSEWHERE.items()}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^( *)```(\w*).*?^\1```$", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r'<div class="language-console highlight">(.*?)</div>', re.DOTALL)
_CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)
_CODE = re.compile(r"(?<=<code>)[^<]+")
_BREAK = re.compile(r"([/_.:,=-]+)(?=[\w/])|(?<=[a-z])(?=[A-Z])")
_CHINESE_LINE = re.compile(r"(?<=[，。；：、！？）])\n *(?=[^\W\d_]|[\[`“（])")
_COMMENT = re.compile(r"""^((?:'[^']*'|"[^"]*"|[^'"])*?) +# .*$""")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds documents that the menu does not name to its last part. The Chinese menu has the English one's pages."""
    jieba.setLogLevel("WARNING")
    if _part(config):
        parts = {CHINESE.get(name): _pages(entries) for part in config.nav for name, entries in part.items()}
        there = {name: [page for page in parts[name] if _source(f"zh/{page}").exists()] for name in parts if name}
        titles = {"index.md": {"概览": "index.md"}}
        config.nav = [{name: [titles.get(page, page) for page in pages]} for name, pages in there.items() if pages]
    named = str(config.nav)
    (last,) = config.nav[-1].values()
    last += [page.name for page in sorted(Path(config.docs_dir).glob("*.md")) if page.name not in named]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the documents that are not in docs/, and the list of decisions."""
    part = _part(config)
    for source, address in ELSEWHERE.items():
        if address.startswith("zh/") == bool(part):
            files.append(File.generated(config, address.removeprefix(part), abs_src_path=str(ROOT / source)))
    if not part:
        files.append(File.generated(config, "adr/index.md", content=_decisions()))
        assert all(_source(page).exists() for page in (*BOOSTS, *WORDS))  # noqa: S101 - a page that has gone
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites what GitHub shows in another way: links, lists, diagrams."""
    here = _part(config) + page.file.src_uri
    page.meta["search"] = (
        {"exclude": True}
        if here.startswith(NOT_SEARCHED)
        else {"boost": BOOSTS.get(here, BOOSTS.get(page.file.src_uri, 1))}
    )
    page.meta["tags"] = WORDS.get(here, [])
    pieces, at = [], 0
    for fence in _FENCE.finditer(markdown):
        pieces += [_prose(markdown[at : fence.start()], here, files), _fence(fence, here)]
        at = fence.end()
    return "".join([*pieces, _prose(markdown[at:], here, files)])


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lets the button of a console block copy its commands only, and long names in tables break between their words."""
    del page, config, files
    content = _CELL.sub(lambda cell: _CODE.sub(lambda code: _BREAK.sub(r"\1<wbr>", code[0]), cell[0]), content)
    return _CONSOLE.sub(_with_commands, content)


def on_page_context(context: object, page: Page, config: MkDocsConfig, nav: object) -> None:
    """Names the page in each language, or the first page of a language that does not have it."""
    del context, nav
    pages = {
        language: part + (page.file.src_uri if _source(part + page.file.src_uri).exists() else "index.md")
        for language, (_, part) in LANGUAGES.items()
    }
    config.extra["alternate"] = [
        {"lang": language, "name": LANGUAGES[language][0], "link": _near(address, _part(config))}
        for language, address in pages.items()
    ]


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Names the search, which the theme leaves without a name for screen readers."""
    del page
    name = "搜索" if _part(config) else "Search"
    return output.replace(
        'data-md-component="search" role="dialog"', f'data-md-component="search" role="dialog" aria-label="{name}"'
    )


def _part(config: MkDocsConfig) -> str:
    return LANGUAGES[config.theme["language"]][1]


def _source(address: str) -> Path:
    """The document of an address; it may not exist."""
    return ROOT / _SOURCES.get(address, f"docs/{address}")


def _near(address: str, here: str) -> str:
    """The relative link from a page to a page or a file."""
    return re.sub(r"\.md$", ".html", posixpath.relpath(address, posixpath.dirname(here) or "."))


def _pages(entries: object) -> list[str]:
    """The pages of a part of the menu."""
    if isinstance(entries, str):
        return [entries]
    inside = entries.values() if isinstance(entries, dict) else entries
    return [page for entry in cast("Iterable[object]", inside) for page in _pages(entry)]


def _prose(text: str, here: str, files: Files) -> str:
    text = _CHINESE_LINE.sub("", _spaced_lists(text))  # no space where a Chinese line ends
    return _LINK.sub(lambda found: _link(found, here, files), text)


def _link(found: re.Match[str], here: str, files: Files) -> str:
    """A link as it is in the site. A file of the repository that is no page is named and not linked."""
    mark, label, address = found.groups()
    if re.match(r"[a-z]+:|#", address):
        return found[0]
    path, sharp, anchor = address.partition("#")
    folder = _source(here).relative_to(ROOT).parent
    target = posixpath.normpath(posixpath.join(folder, path))
    address = ELSEWHERE.get(target) or target.removeprefix("docs/")
    address = "adr/index.md" if address == "adr" else address
    source = _source(address)
    if mark and address.endswith(".svg") and source.is_file():
        return _drawing(label, _near(address, here), source)
    if address.startswith("zh/") != here.startswith("zh/") and source.is_file():  # the other build has it
        near = _near(address, here)
        return f'<img alt="{label}" src="{near}">' if mark else f'<a href="{near}{sharp}{anchor}">{label}</a>'
    if files.get_file_from_path(address.removeprefix("zh/")) is None:
        return label if (ROOT / target).exists() else found[0]
    return f"{mark}[{label}]({posixpath.relpath(address, posixpath.dirname(here) or '.')}{sharp}{anchor})"


def _spaced_lists(text: str) -> str:
    """Python-Markdown wants an empty line before a list, and four spaces before what belongs to an item."""
    lines: list[str] = []
    for line in text.split("\n"):
        is_item = re.match(r" {0,3}(?:[-*]|\d+\.) ", line)
        before = lines[-1] if lines else ""
        if is_item and before.strip() and not re.match(r" *(?:[-*]|\d+\.) | {2,}", before):
            lines.append("")
        lines.append(re.sub(r"^ {2,3}(?=\S)", "    ", line))
    return "\n".join(lines)


def _fence(found: re.Match[str], here: str) -> str:
    """A fenced block; a diagram is its picture, if `make pictures` has drawn it as it is now."""
    drawn = ROOT / "docs/pictures" / diagram_name(found[0])
    if found[2] == "mermaid" and drawn.exists():
        return _drawing(
            "A diagram; its text is in the source of this page", _near(f"pictures/{drawn.name}", here), drawn
        )
    indent = "    " if found[1] else ""
    return "\n".join(indent + line.removeprefix(found[1]) for line in found[0].split("\n"))


def _drawing(label: str, near: str, path: Path) -> str:
    """A drawing that gets no smaller than its text can be read; else it is moved within its column."""
    sizes = (r"\bwidth=['\"](\d+)", r"font-size[:=]['\"]?(\d+)")
    width, letters = (int(re.findall(size, path.read_text())[0]) for size in sizes)
    label = html.escape(label)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{label}">'
        f'<img class="drawing" alt="{label}" src="{near}" style="min-width: {-(-width * SMALLEST // letters)}px"></div>'
    )


def _with_commands(found: re.Match[str]) -> str:
    """A console block with its commands as what is copied: no prompts, no output, no comments."""
    text = html.unescape(re.sub(r"<[^>]+>", "", found[1]))
    lines = [_COMMENT.sub(r"\1", command.line) for command in commands(text)]
    copied = html.escape("\n".join(lines)).replace("\n", "&#10;")
    return found[0].replace("<div ", f'<div data-copy="{copied}" ', 1)


def _decisions() -> str:
    titles = [
        (path.name, path.read_text().split("\n", 1)[0].lstrip("# "))
        for path in sorted((ROOT / "docs/adr").glob("0*.md"))
    ]
    return "# Decisions\n\n" + "\n".join(f"- [{title}]({name})" for name, title in titles) + "\n"
