"""The files that ARCHITECTURE.md and its further pages name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "docs/change.md", "docs/internals.md", "docs/storage.md"])
def test_every_file_that_a_document_names_is_there(document: str) -> None:
    places = (ROOT, ROOT / "shared", ROOT / "shared/a2a_serverless")
    text = (ROOT / document).read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|md|yaml))`", text))
    assert named
    assert not [name for name in named if not any((place / name).exists() for place in places)]
