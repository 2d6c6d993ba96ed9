"""Records the corpus from today's code: ``python -m tests.baseline.record [SCENARIO...]``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from a2a_serverless_tools.stack import paths
from tests.baseline.scenarios import NAMES, play
from tests.baseline.talk import listening
from tests.stack.local import running_stack

CORPUS: Final = Path(__file__).parent / "corpus"


def main(wanted: list[str]) -> None:
    """Plays the scenarios against a stack of their own and writes what they saw."""
    with TemporaryDirectory() as state, running_stack(paths.find(state=Path(state))) as stack, listening() as hook:
        for name in wanted or NAMES:
            sys.stderr.write(f"{name}\n")
            text = json.dumps(play(name, stack.running.api.url, hook), indent=1, ensure_ascii=False)
            (CORPUS / f"{name.replace(' ', '.')}.json").write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
