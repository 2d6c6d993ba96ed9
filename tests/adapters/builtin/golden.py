"""The texts whose outlines, documents and summaries are kept in tests/data/writing, and how they are made.

After an intended change: ``python -m tests.adapters.builtin.golden`` writes them again; the diff is the review.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Final

from a2a_serverless.adapters.builtin.text import BuiltinText
from a2a_serverless.domain.writing import outline_to_json

ROOT: Final = Path(__file__).parents[3]
KEPT: Final = ROOT / "tests/data/writing"
SOURCES: Final = {
    "lighthouses": ROOT / "examples/demo.md",
    "sails": ROOT / "examples/demo.zh.md",
    "news": KEPT / "news.txt",
    "dialog": KEPT / "dialog.txt",
    "readme": KEPT / "readme.md",
}


async def written(source: str) -> dict[str, str]:
    """The three things that are made of a text, by the ending of the file that keeps each."""
    model = BuiltinText()
    outline = await model.outline(source)
    sections = [await model.section(outline, section, source) for section in outline.sections]
    document = "".join([await model.opening(outline, source), *sections])
    return {
        "outline.json": json.dumps(outline_to_json(outline), ensure_ascii=False, indent=2) + "\n",
        "document.md": document,
        "summary.txt": await model.summary(document) + "\n",
    }


def write() -> None:
    """Replaces what is kept."""
    for name, path in SOURCES.items():
        for ending, text in asyncio.run(written(path.read_text(encoding="utf-8"))).items():
            (KEPT / f"{name}.{ending}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
