"""MkDocs: pages from documents outside of docs/, links between them, the list of decisions, drawn diagrams."""

from __future__ import annotations

import hashlib
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File  # type: ignore[import-not-found] # in an environment of its own

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig  # type: ignore[import-not-found]
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[2]
# Documents of the repository, and the pages that they are.
ELSEWHERE = {
    "README.md": "index.md",
    "README.zh.md": "zh/index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "webhook_receiver/README.md": "receiver.md",
    "bench/results.md": "measured.md",
    **{
        f"bench/results/{plot.name}": f"pictures/{plot.name}" for plot in sorted((ROOT / "bench/results").glob("*.svg"))
    },
}
# Pages for people who change the project, which the search does not find.
NOT_SEARCHED = ("adr/", "internals.md", "requirements.md", "evidence.md")
_SOURCES = {page: source for source, page in ELSEWHERE.items()}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^( *)```(\w*).*?^\1```$", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds documents that the menu does not name to its last part."""
    named = str(config.nav)
    config.nav[-1]["Project"] += [page.name for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in named]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the documents that are not in docs/, and the list of decisions."""
    for source, page in ELSEWHERE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    files.append(File.generated(config, "adr/index.md", content=_decisions()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites what GitHub shows in another way: links, lists, diagrams."""
    del config
    here = page.file.src_uri
    if here.startswith(NOT_SEARCHED):
        page.meta["search"] = {"exclude": True}
    source = _SOURCES.get(here, f"docs/{here}")
    pieces, at = [], 0
    for fence in _FENCE.finditer(markdown):
        pieces += [_prose(markdown[at : fence.start()], source, here, files), _fence(fence, here)]
        at = fence.end()
    return "".join([*pieces, _prose(markdown[at:], source, here, files)])


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Names the search, which the theme leaves without a name for screen readers."""
    del page, config
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )


def _prose(text: str, source: str, here: str, files: Files) -> str:
    return _LINK.sub(lambda found: _link(found, source, here, files), _spaced_lists(text))


def _link(found: re.Match[str], source: str, here: str, files: Files) -> str:
    """A link as it is in the site. A file of the repository that is no page is named and not linked."""
    mark, label, address = found.groups()
    if re.match(r"[a-z]+:|#", address):
        return found[0]
    path, _, anchor = address.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    uri = ELSEWHERE.get(target) or target.removeprefix("docs/")
    uri = "adr/index.md" if uri == "adr" else uri
    if files.get_file_from_path(uri) is None:
        return label if (ROOT / target).exists() else found[0]
    near = posixpath.relpath(uri, posixpath.dirname(here) or ".")
    return f"{mark}[{label}]({near}{'#' if anchor else ''}{anchor})"


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
    drawn = ROOT / f"docs/pictures/diagram-{hashlib.sha256(found[0].encode()).hexdigest()[:12]}.svg"
    if found[2] == "mermaid" and drawn.exists():
        near = posixpath.relpath(f"pictures/{drawn.name}", posixpath.dirname(here) or ".")
        picture = f"![A diagram; its text is in the source of this page]({near}){{ .diagram }}"
        wide = '<div class="wide" tabindex="0" role="region" aria-label="Diagram" markdown>'
        return f"{wide}\n\n{picture}\n\n</div>"
    indent = "    " if found[1] else ""
    return "\n".join(indent + line.removeprefix(found[1]) for line in found[0].split("\n"))


def _decisions() -> str:
    titles = [
        (path.name, path.read_text().split("\n", 1)[0].lstrip("# "))
        for path in sorted((ROOT / "docs/adr").glob("0*.md"))
    ]
    return "# Decisions\n\n" + "\n".join(f"- [{title}]({name})" for name, title in titles) + "\n"
