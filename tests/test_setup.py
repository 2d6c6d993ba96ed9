"""``make setup`` says what it does: nobody looks at an empty terminal for half a minute."""

import re
from pathlib import Path

MAKEFILE = (Path(__file__).parents[1] / "Makefile").read_text()
SLOW = re.compile(r"pip install|-m venv|uv venv")


def recipes(makefile: str) -> list[str]:
    """The lines below each target, joined."""
    return [found[1] for found in re.finditer(r"^[^\t\n#][^\n]*:[^=\n]*\n((?:\t[^\n]*\n)+)", makefile, re.MULTILINE)]


def test_each_slow_recipe_of_make_says_first_its_work() -> None:
    slow = [recipe for recipe in recipes(MAKEFILE) if SLOW.search(recipe)]
    assert len(slow) >= 4
    assert [recipe for recipe in slow if not recipe.startswith("\t@echo")] == []


def test_the_installation_shows_its_progress_on_a_terminal() -> None:
    setup = [recipe for recipe in recipes(MAKEFILE) if "--require-hashes" in recipe]
    assert [recipe for recipe in setup if re.search(r"pip install (?!\$\(QUIET\))", recipe)] == []
