"""The mirror of docs/mirror.md in a project: module, card and place in the settings, as the page shows them."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from tests.docs.documents import ROOT, blocks

if TYPE_CHECKING:
    from pathlib import Path

PAGE: Final = ROOT / "docs/mirror.md"
REMOTE: Final = "https://agents.example.com/weather"  # in the page


def add_mirror(project: Path, url: str, card: str) -> Path:
    """Writes the mirror of the agent at ``url`` in place of the project's agents; returns its module."""
    package = project.name.replace("-", "_")
    module = project / package / "weather.py"
    module.write_text(blocks("python", PAGE)[0].text.replace(REMOTE, url))
    module.with_suffix(".json").write_text(card)
    agents = blocks("toml", PAGE)[0].text.splitlines()[-1].replace("my_mirror", package)
    settings = project / "pyproject.toml"
    settings.write_text(re.sub("^agents = .*$", agents, settings.read_text(), flags=re.MULTILINE))
    return module


def card_command(url: str) -> list[str]:
    """The words of the page's command that prints the card of the agent at ``url``, without the program."""
    (command,) = blocks("console", PAGE)[0].commands()
    words = shlex.split(command.line.replace(REMOTE, url))
    return words[1 : words.index(">")]
