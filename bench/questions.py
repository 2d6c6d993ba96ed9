"""Questions as people ask them: how many the site's search answers by its first or second hit (N28).

The site is built, and its search asked in a browser, in both languages. `tests/docs/test_site.py` has the questions.
Needs Node.js and Chromium.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Final

from measuring import ROOT, Report, figure, goal, main

sys.path.insert(0, str(ROOT))

from tests.browser import HERE, started
from tests.docs.test_site import QUESTIONS, served, unanswered

LANGUAGES: Final = {"": "English", "zh/": "Chinese"}
_on_stderr: Final = partial(redirect_stdout, sys.stderr)


def measure(_rounds: int) -> Report:
    """Asks each question once."""
    subprocess.run(["make", "--silent", "site"], cwd=ROOT, check=True)  # noqa: S607
    if not (HERE / "node_modules").exists():
        subprocess.run(["npm", "ci", "--silent", "--prefix", HERE], check=True)  # noqa: S607
    with tempfile.TemporaryDirectory() as profile, started(Path(profile)) as browser, served() as url, _on_stderr():
        answered = {part: len(QUESTIONS[part]) - len(unanswered(browser, url, part)) for part in QUESTIONS}
    return Report(
        "Questions to the search",
        __doc__ or "",
        [figure(LANGUAGES[part], "questions answered", [count], ours=True) for part, count in answered.items()],
        [
            goal("N28", f"questions in {LANGUAGES[part]} that are answered", ">=", len(QUESTIONS[part]), [count])
            for part, count in answered.items()
        ],
    )


if __name__ == "__main__":
    main(measure, rounds=1)
