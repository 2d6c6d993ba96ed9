"""A function in this process: its ``app.py``, as Lambda starts it."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, cast
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.adapters.invocations import Handler

FUNCTIONS = Path(__file__).parents[2] / "functions"


def start_function(name: str, environment: Mapping[str, str]) -> Handler:
    """The handler of a function that starts with this environment, which is added to the process's own."""
    with patch.dict(os.environ, environment):
        return cast("Handler", runpy.run_path(str(FUNCTIONS / name / "app.py"))["handler"])
