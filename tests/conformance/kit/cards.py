"""``python -m tests.conformance.kit.cards v1|v0_3``: publishes cards with the members of one version only.

It is the rotator of a deployment, in whose environment it runs.
"""

from __future__ import annotations

import runpy
import sys
from dataclasses import replace
from pathlib import Path

from a2a_serverless.services.key_rotation import ensure_ring

ROTATOR = Path(__file__).parents[3] / "functions/rotator/app.py"


def main() -> None:
    """Publishes the cards of the deployment's agents again."""
    rotation = runpy.run_path(str(ROTATOR))["rotation"]()
    ensure_ring(replace(rotation, publisher=replace(rotation.publisher, shape=sys.argv[1])))


if __name__ == "__main__":
    main()
