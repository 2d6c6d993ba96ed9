"""The project's documents, and the fenced blocks in them. docs/site/hook.py builds the site with it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "webhook_receiver/README.md"], key=str)
_BLOCK = re.compile(
    r"(?:^<!-- needs (?P<needs>[\w ]+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block. ``needs`` is what no test can have: AWS, Docker."""

    path: Path
    language: str
    text: str
    needs: str | None

    def commands(self) -> Iterator[Command]:
        """The command lines, if it is a console block."""
        return commands(self.text)


@dataclass(frozen=True)
class Command:
    """A command, perhaps of several lines in quotes, and the lines that are shown below it; ``...`` stands for any."""

    line: str
    shown: list[str]


def commands(text: str) -> Iterator[Command]:
    """The command lines of a console block, each with what the document shows of its output."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        ends = (end for end in range(1, len(lines)) if not _goes_on("\n".join(lines[:end])))
        end = next(ends, len(lines))
        yield Command("\n".join(lines[:end]), lines[end:])


def _goes_on(line: str) -> bool:
    return line.endswith(("\\", "|")) or line.count("'") % 2 == 1


def diagram_name(block: str) -> str:
    """The name of the picture of a diagram, which changes with the diagram."""
    return f"diagram-{hashlib.sha256(block.encode()).hexdigest()[:12]}.svg"


def blocks(language: str, path: Path | None = None) -> list[Block]:
    """The blocks of a language, in all documents or in one. A block that two documents share counts once."""
    found = [
        Block(document, language, block["text"], block["needs"])
        for document in ([path] if path else DOCUMENTS)
        for block in _BLOCK.finditer(document.read_text())
        if block["language"] == language
    ]
    return list({(one.text, one.needs): one for one in found}.values())
