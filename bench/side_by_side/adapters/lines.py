"""Serves the player's orders: a line of JSON on standard input, a line of JSON on standard output."""

from __future__ import annotations

import json
import os
import signal
import sys
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def ready(address: str = "") -> None:
    """Says that the process is ready, and for a store where it is."""
    tell({"address": address})


def tell(answer: object) -> None:
    """Writes an answer."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def serve(**orders: Callable[..., Any]) -> None:
    """Answers ``[order, argument, ...]`` until the input ends; what an order raises is its answer."""
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            tell({"answer": orders[name](*arguments)})
        except Exception as error:  # noqa: BLE001 - a player has to go on
            tell({"error": f"{type(error).__name__}: {error}"[:300]})


def main(**commands: Callable[..., None]) -> None:
    """Runs the command that the arguments name. A worker that gets no orders ends with the player, too."""
    if sys.argv[1] == "worker" and "drive" in commands:
        Thread(target=_end_with_the_input, daemon=True).start()
    commands[sys.argv[1]](*sys.argv[2:])


def _end_with_the_input() -> None:
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)
