"""What ARCHITECTURE.md draws and names is what the code has."""

import re
from pathlib import Path

from a2a_serverless.domain.states import NEXT, TERMINAL

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def test_the_state_diagram_is_the_transition_table() -> None:
    drawn = set(re.findall(r"^  (\S+) --> (\S+)$", TEXT, re.MULTILINE))
    named = {before: before.value.replace("-", "_") if before else "[*]" for before in NEXT}
    table = {(named[before], named[after]) for before, later in NEXT.items() for after in later if before is not after}
    assert drawn == table | {(named[state], "[*]") for state in TERMINAL}


def test_every_file_that_it_names_is_there() -> None:
    package = ROOT / "shared/a2a_serverless"
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|md|yaml))`", TEXT))
    assert named
    assert not [name for name in named if not (ROOT / name).exists() and not (package / name).exists()]
