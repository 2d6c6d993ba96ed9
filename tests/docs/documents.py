"""The project's documents, and the fenced blocks in them. docs/site/hook.py builds the site with it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
RECEIVERS = [ROOT / "webhook_receiver/README.md", ROOT / "webhook_receiver/javascript/README.md"]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *RECEIVERS], key=str)
TUTORIALS = sorted((ROOT / "docs").glob("tutorial-*.md"))  # tests/journeys/test_tutorials.py plays each one whole
QUESTION = "Your turn: "
_ID = "[0-9a-f]{8}-[0-9a-f-]{27}"
ELISION = "..."
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
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


def check_shown(shown: Iterable[str], said: Iterable[str]) -> None:
    """Each line that a document shows must be among those that a command said, in their order."""
    rest = iter([skeleton(line) for line in said])
    for line in map(skeleton, shown):
        assert line == ELISION or any(matches(line, other) for other in rest), f"not said: {line}"


def task_of(said: str) -> str | None:
    """The id of the task that a command has named."""
    found = re.search(f"^(?:Task )?({_ID})$", said, re.MULTILINE)
    return found and found[1]


def skeleton(line: str) -> str:
    """A line without what differs from run to run: times, counts, ids, ports, and remarks behind a step."""
    line = re.sub(r"\s+\S{8}\s+[0-9a-f]{8}\s+verified$", " verified", line)
    line = re.sub(r"^(✓ .*?) \(.*$", r"\1", line)
    line = re.sub(_ID, "ID", line)
    line = re.sub(r"\S+/(a2a-serverless .*)$", r".venv/bin/\1", line)
    line = re.sub(r"(a2a-serverless .*) --url \S+$", r"\1", line)
    line = re.sub(r"={3,}|[━╌]+", "", line)
    return " ".join(re.sub(r"\+?\d[\d.,]*( m?s\b)?", "N", line).split())


def matches(shown: str, said: str) -> bool:
    """Whether a line is the one that is shown, where that may be cut at ``…``."""
    before, cut, after = shown.partition("…")
    return said.startswith(before.rstrip()) and said.endswith(after) if cut else shown == said


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


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
