"""Reads a document, Markdown or plain text, into blocks: what may be kept, dropped or moved as a whole.

It is no renderer. It looks for what arranging needs (headings, paragraphs, lists, tables, code, quotes), takes anything
else for a paragraph and therefore never fails; every line is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from a2a_serverless.adapters.builtin.html import without_html
from a2a_serverless.adapters.builtin.language import HAN, is_han

Kind: TypeAlias = Literal["heading", "paragraph", "turn", "list", "code", "table", "quote"]

FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,})")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-{2,})$")
_RULE: Final = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_BULLET: Final = re.compile(r"[ \t]*(?:([-*+•·‣◦▪●–])[ \t]+|\(?(\d{1,3})[.)][ \t]+|(\d{1,2})、[ \t]*)(?=\S)")
_CHECK_BOX: Final = re.compile(r"\[[ xX]\][ \t]+")
_DELIMITER: Final = re.compile(r"\|?[ \t]*:?-+:?(?:[ \t]*\|[ \t]*:?-+:?)*[ \t]*\|?")
_QUOTE: Final = re.compile(r" {0,3}>")
_CODE_INDENT: Final = re.compile(r"(?: {4}|\t)")
_DEFINITION: Final = re.compile(r" {0,3}\[([^\]^][^\]]*)\]:\s+<?(\S+?)>?(?:\s+[\"'(].*)?$")
_USE: Final = re.compile(r"\[([^\[\]]{1,400})\]\[([^\[\]]{0,100})\]")
_TO_ANCHOR: Final = re.compile(r"\[([^\[\]]{1,400})\]\(#[^()\s]{0,400}\)")
_CONTENTS_LINE: Final = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+[*_]*\[[^\]]*\]\(#[^)]*\)[*_]*$")
_FRONT_FIELD: Final = re.compile(r"([A-Za-z][\w-]*)[ \t]*:(.*)$")
_FRONT_LINES: Final = 60
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ufeff\ufffc\ufffe\uffff\ud800-\udfff]")
_IMAGE: Final = re.compile(
    r"\[!\[[^\[\]]{0,300}\](?:\([^()]{0,1200}\)|\[[^\[\]]{0,100}\])\](?:\([^()]{0,1200}\)|\[[^\[\]]{0,100}\])"
    r"|!\[[^\[\]]{0,300}\](?:\([^()]{0,1200}\)|\[[^\[\]]{0,100}\])"
)
_LINK: Final = re.compile(r"\[([^\[\]]{0,400})\](?:\([^()\s]{0,1200}(?:\s[^()]{0,200})?\)|\[[^\[\]]{0,100}\])")
_ADDRESS: Final = re.compile(r"<(https?://[^\s<>]{1,2000}|[^\s<>@]{1,100}@[^\s<>@]{1,100})>")
# What is marked holds no mark of its own kind, so that a stray one is given up at the next.
_MARKED: Final = re.compile(
    r"(?P<code>(`{1,3})(?P<verbatim>[^`\n]{1,400})\2)"
    r"|(\*{1,3}|~~)(?=\S)(?P<strong>[^*~\n]{1,400})(?<=\S)\4"
    r"|(?<!\w)(_{1,3})(?=\S)(?P<soft>[^_\n]{1,400})(?<=\S)\6(?!\w)"
)
_BOLD: Final = re.compile(r"\*\*(?=\S)([^*\n]{1,400})(?<=\S)\*\*")
_MARKUP: Final = re.compile(r"[*_~`\[\\<!]")
_ESCAPE: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPEAKER: Final = re.compile(rf"[\w{HAN}][\w .·'’-]{{0,30}}[:：]\s*\S")
_ENDED: Final = re.compile(r"[.!?…。！？；;:：][\"'”’」』）)\]*_]*$")
_BARE_CODE: Final = re.compile(r"[\[{]$")
_LONG_LINE: Final = 120
_MOST_LINES: Final = 0.7
_FEW_LINES: Final = 0.5
_MOST_BLANK_LINES: Final = 3


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document. ``text`` is Markdown; a list also has its items, each with all that hangs below it.

    A turn is a paragraph of a dialog: the speaker's name, a colon, and what was said.
    """

    kind: Kind
    text: str
    level: int = 0
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """What was read. ``title`` is the one that the front matter gives, if any."""

    title: str | None
    blocks: tuple[Block, ...]


def read(source: str) -> Document:
    """The blocks of ``source`` in order. Comments, HTML tags, pictures and rules are left out."""
    lines = _CONTROL.sub("", source.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    title, lines = _front_matter([line.rstrip() for line in lines])
    return Document(title, tuple(_BlockReader(without_html(lines)).blocks()))


def plain(markdown: str) -> str:
    """One line of text without Markdown: links keep their words, pictures go."""
    text = markdown
    if _MARKUP.search(text):
        text = _ADDRESS.sub(r"\1", _LINK.sub(r"\1", _IMAGE.sub("", text)))
        text = _ESCAPE.sub(r"\1", _BOLD.sub(r"\1", _unmarked(text)))
    return " ".join(text.split())


def _unmarked(text: str) -> str:
    return _MARKED.sub(lambda mark: mark["verbatim"] or _unmarked(mark["strong"] or mark["soft"]), text)


def item_text(item: str) -> str:
    """A list item without its bullet, number or check box."""
    return _CHECK_BOX.sub("", _BULLET.sub("", item, count=1))


def running(pieces: Iterable[str]) -> str:
    """Pieces of running text as one: with spaces, but not between Chinese characters or after their punctuation."""
    found = [piece for piece in pieces if piece]
    gaps = ["" if _tight(left, right) else " " for left, right in pairwise(found)]
    return "".join(piece + gap for piece, gap in zip(found, [*gaps, ""], strict=False))


def _tight(left: str, right: str) -> bool:
    if left[-1] in "，。！？；：、）」』”’》】":
        return True
    return is_han(left[-1]) and (is_han(right[0]) or right[0] in "，。！？；：、（「『“‘《【")


def _front_matter(lines: list[str]) -> tuple[str | None, list[str]]:
    ends = [number for number, line in enumerate(lines[:_FRONT_LINES]) if line in {"---", "..."}]
    if ends[:1] != [0] or len(ends) == 1:
        return None, lines
    fields = [match for line in lines[1 : ends[1]] if (match := _FRONT_FIELD.match(line))]
    if not fields:
        return None, lines
    titles = [field.group(2).strip().strip("\"'") for field in fields if field.group(1).lower() == "title"]
    return (titles[0] or None) if titles else None, lines[ends[1] + 1 :]


class _BlockReader:
    """Walks the lines once; every ``_take`` method consumes the block that begins at the current line."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        definitions = (_DEFINITION.match(line) for line in lines)
        self._addresses = {match.group(1).casefold(): match.group(2) for match in definitions if match}

    def blocks(self) -> Iterator[Block]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.strip() or _RULE.match(line) or _DEFINITION.match(line):
                self._at += 1
            else:
                yield from self._take(line)

    def _take(self, line: str) -> Iterator[Block]:
        if FENCE.match(line):
            yield Block("code", "\n".join(self._fenced()))
        elif _BARE_CODE.match(line):
            yield Block("code", "\n".join(self._bare_code()))
        elif _HEADING.match(line):
            yield from self._take_heading(line)
        elif _QUOTE.match(line):
            yield Block("quote", "\n".join(text.strip() for text in self._while(_QUOTE.match)))
        elif _BULLET.match(line):
            yield from self._take_list(_indent(line))
        elif self._at_table():
            yield Block("table", "\n".join(text.strip() for text in self._while(lambda text: "|" in text)))
        elif _CODE_INDENT.match(line):
            yield from self._take_indented()
        else:
            yield from self._take_paragraph()

    def _while(self, wanted: Callable[[str], object]) -> list[str]:
        start = self._at
        while self._at < len(self._lines) and wanted(self._lines[self._at]):
            self._at += 1
        return self._lines[start : self._at]

    def _take_heading(self, line: str) -> Iterator[Block]:
        self._at += 1
        marks, text = _split_heading(line)
        yield from _heading(text, len(marks))

    def _fenced(self) -> list[str]:
        """A closed block of code, even when the source forgot to close it, moved to the left margin of its fence."""
        opening = self._lines[self._at]
        margin, fence = _indent(opening), opening.strip()[:3]
        self._at += 1
        body = self._while(lambda line: not line.strip().startswith(fence) or bool(line.strip().strip(fence[0])))
        self._at += 1
        return [opening[margin:], *(line[min(margin, _indent(line)) :] for line in body), fence]

    def _bare_code(self) -> list[str]:
        """JSON that was pasted without a fence: up to the bracket below the one that opened it, or an empty line."""
        lines = self._while(lambda line: line.strip() and line not in {"}", "]"})
        closing = self._lines[self._at : self._at + 1]
        self._at += len(closing)
        return ["```", *lines, *filter(None, closing), "```"]

    def _take_list(self, margin: int) -> Iterator[Block]:
        first = self._at
        items: list[list[str]] = []
        while self._at < len(self._lines) and self._in_list(margin):
            line = self._lines[self._at]
            if FENCE.match(line) and items:
                indent = " " * (_indent(line) - margin)
                items[-1] += [indent + text for text in self._fenced()]
                continue
            if _BULLET.match(line) and _indent(line) <= margin + 1:
                items.append([])
            items[-1].append(self._linked(_bulleted(line, margin)))
            self._at += 1
        texts = tuple("\n".join(item).rstrip() for item in items)
        if not _is_contents(self._lines[first : self._at]):
            yield Block("list", "\n".join(texts), items=texts)

    def _in_list(self, margin: int) -> bool:
        line = self._lines[self._at]
        if line.strip():
            hangs = _indent(line) > margin + 1 or bool(_BULLET.match(line) and not _RULE.match(line))
            return hangs or not self._interrupts(line)
        ahead = self._lines[self._at + 1 : self._at + 1 + _MOST_BLANK_LINES]
        following = next((text for text in ahead if text.strip()), "")
        return bool(_BULLET.match(following) and not _RULE.match(following)) or _indent(following) > margin + 1

    def _at_table(self) -> bool:
        line, following = self._lines[self._at], "".join(self._lines[self._at + 1 : self._at + 2])
        return "|" in line and "|" in following and _DELIMITER.fullmatch(following.strip()) is not None

    def _interrupts(self, line: str) -> bool:
        """Whether ``line`` begins a block of its own although a paragraph runs right above it."""
        return any(mark.match(line) for mark in (FENCE, _HEADING, _QUOTE, _RULE, _BARE_CODE))

    def _take_indented(self) -> Iterator[Block]:
        lines = self._while(lambda line: not line.strip() or _CODE_INDENT.match(line))
        text = "\n".join(line[min(4, _indent(line)) :] for line in lines).strip("\n")
        if _reads_like_prose(lines):
            yield from _BlockReader([line.strip() for line in lines]).blocks()
        elif text.strip():
            yield Block("code", f"```\n{text}\n```")

    def _take_paragraph(self) -> Iterator[Block]:
        first = self._at
        lines = self._while(lambda line: self._at == first or self._in_paragraph(line))
        underline = _UNDERLINE.match("".join(self._lines[self._at : self._at + 1]))
        if underline and len(lines) == 1:
            self._at += 1
            yield from _heading(lines[0], 1 if underline.group(1).startswith("=") else 2)
        else:
            texts = [self._linked(_IMAGE.sub("", line)).strip() for line in lines]
            yield from _paragraphs([text for text in texts if text])

    def _in_paragraph(self, line: str) -> bool:
        if not line.strip() or self._interrupts(line) or _UNDERLINE.match(line) or self._at_table():
            return False
        bullet = _BULLET.match(line)
        return bullet is None or bool(bullet.group(2) and bullet.group(2) != "1")

    def _linked(self, text: str) -> str:
        """Links that still lead somewhere when the text moves: with their address, without those into the same page."""
        text = _TO_ANCHOR.sub(r"\1", text)
        return _USE.sub(self._link, text) if self._addresses else text

    def _link(self, use: re.Match[str]) -> str:
        address = self._addresses.get((use.group(2) or use.group(1)).casefold())
        return f"[{use.group(1)}]({address})" if address else use.group()


def _is_contents(lines: list[str]) -> bool:
    """Whether a list is a table of contents: nothing but links into the same page."""
    return all(_CONTENTS_LINE.match(line) for line in lines if line.strip())


def _split_heading(line: str) -> tuple[str, str]:
    text = line.strip()
    marks = text[: len(text) - len(text.lstrip("#"))]
    text = text[len(marks) :]
    open_end = text.rstrip("#")
    return marks, (open_end if open_end[-1:].isspace() else text).strip()


def _heading(text: str, level: int) -> Iterator[Block]:
    words = plain(text)
    if any(character.isalnum() for character in words):
        yield Block("heading", words, level)


def _bulleted(line: str, margin: int) -> str:
    """A line of a list moved to its margin, its bullet or number written as Markdown has it."""
    text = line[min(margin, _indent(line)) :]
    bullet = _BULLET.match(text)
    if not bullet:
        return text
    number = bullet.group(2) or bullet.group(3)
    return " " * _indent(text) + (f"{number}. " if number else "- ") + text[bullet.end() :]


def _paragraphs(lines: list[str]) -> Iterator[Block]:
    if _apart(lines):
        yield from (Block("paragraph", line) for line in lines)
    elif lines:
        yield Block("paragraph", running(line.removesuffix("\\").rstrip() for line in lines))


def _apart(lines: list[str]) -> bool:
    """Whether each line is a paragraph: a dialog, a list without bullets, Chinese text without blank lines.

    Wrapped text has lines of nearly one length that end anywhere; text with a line for each sentence has short ones.
    """
    body = lines[:-1]
    if not body:
        return False
    if sum(1 for line in lines if _SPEAKER.match(line)) >= _MOST_LINES * len(lines):
        return True
    ended = sum(1 for line in body if _ENDED.search(line[-20:]) or line.endswith((",", "，", "、"))) / len(body)
    if ended >= _MOST_LINES:
        return sum(map(_width, body)) / len(body) >= _LONG_LINE
    longest = max(map(_width, lines))
    return ended < _FEW_LINES and sum(1 for line in body if _width(line) >= 0.6 * longest) < 0.6 * len(body)


def _width(line: str) -> int:
    if line.isascii():
        return len(line)
    return sum(2 if character >= "\u1100" else 1 for character in line)


def _reads_like_prose(lines: list[str]) -> bool:
    return any(_ENDED.search(line[-20:]) or is_han(line.strip()[:1]) for line in lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t\u3000"))
