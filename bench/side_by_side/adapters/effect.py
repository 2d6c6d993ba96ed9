"""The one effect of all workflows: a POST that says which process it comes from."""

from __future__ import annotations

import json
import os
import urllib.request


def effect(run: str, name: str, address: str = "") -> str:
    """Has the effect and returns its name. ``address`` is where an event that the workflow waits for may be sent."""
    body = json.dumps({"pid": os.getpid(), "address": address}).encode()
    with urllib.request.urlopen(f"{os.environ['EFFECTS']}/{run}/{name}", body, timeout=600) as answer:  # noqa: S310
        return str(answer.read().decode())
