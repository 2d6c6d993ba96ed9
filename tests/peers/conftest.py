"""The server of the peers, in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The base URL of the peers."""
    command = [sys.executable, "-m", "tests.peers", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own program
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
