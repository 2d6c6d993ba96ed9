"""What ARCHITECTURE.md draws and names is what the code has."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def test_every_file_that_it_names_is_there() -> None:
    package = ROOT / "shared/a2a_serverless"
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|md|yaml))`", TEXT))
    assert named
    assert not [name for name in named if not (ROOT / name).exists() and not (package / name).exists()]
