"""Takes HTML out of a document that is meant to be Markdown: what it says stays, tags, comments and scripts go.

A document that we hand out carries no markup of a stranger's that a page might run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,})")
_UNSEEN: Final = re.compile(r"<!--|<(script|style|template|iframe|object)\b[^<>]{0,4000}>?", re.IGNORECASE)
_HEADING: Final = re.compile(r"<h([1-6])\b[^<>]{0,1000}>([^<>]{1,300})</h\1>", re.IGNORECASE)
_TAG: Final = re.compile(
    r"</?(?:a|abbr|article|aside|audio|b|big|blockquote|body|br|button|canvas|center|cite|code|col|dd|del|details|dfn|"
    r"div|dl|dt|em|embed|figcaption|figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd|label|"
    r"li|link|main|mark|meta|nav|object|ol|option|p|path|picture|pre|q|s|samp|script|section|select|small|source|span|"
    r"strike|strong|style|sub|summary|sup|svg|table|tbody|td|template|textarea|tfoot|th|thead|time|title|tr|u|ul|var|"
    r"video)(?:[\s/][^<>]{0,4000})?>",
    re.IGNORECASE,
)


def without_html(lines: list[str]) -> list[str]:
    """The lines without HTML outside of fenced code. A line that held nothing else becomes an empty one."""
    kept: list[str] = []
    for is_code, run in _runs(lines):
        kept += run if is_code or not any("<" in line for line in run) else _cleaned("\n".join(run)).split("\n")
    return kept


def _runs(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """The lines in runs of prose and of fenced code (fences included), in order."""
    run: list[str] = []
    fence = ""
    for line in lines:
        mark = _FENCE.match(line)
        if mark and not fence:
            yield False, run
            run, fence = [line], mark.group(1)[:3]
        elif mark and mark.group(1).startswith(fence) and not line.strip().strip(fence[0]):
            yield True, [*run, line]
            run, fence = [], ""
        else:
            run.append(line)
    yield bool(fence), run


def _cleaned(text: str) -> str:
    return _TAG.sub("", _HEADING.sub(_as_markdown, "".join(_seen(text))))


def _as_markdown(heading: re.Match[str]) -> str:
    return f"\n\n{'#' * int(heading.group(1))} {' '.join(heading.group(2).split())}\n\n"


def _seen(text: str) -> Iterator[str]:
    """The text without comments and without elements that a reader never sees."""
    at = 0
    while opening := _UNSEEN.search(text, at):
        yield text[at : opening.start()]
        end = _closed(text, opening)
        if end is None:
            yield text[opening.end() :]
            return
        at = end
    yield text[at:]


def _closed(text: str, opening: re.Match[str]) -> int | None:
    """Where the comment or element ends that ``opening`` begins; None when nothing closes it.

    The first ``>`` behind the first closing tag decides, so the text is read once, however many tags never end.
    """
    closing = re.compile(f"</{opening.group(1)}" if opening.group(1) else "--(?=>)", re.IGNORECASE)
    found = closing.search(text, opening.end())
    end = text.find(">", found.end()) if found else -1
    return end + 1 if end >= 0 else None
