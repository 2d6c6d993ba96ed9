"""A page in a real browser. Its tests are skipped, and say so, where there is no Node, no Chromium or no ``npm ci``."""

import base64
import json
import os
import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

HERE = Path(__file__).parent / "webhook_receiver/browser"
NODE = shutil.which("node")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")

NEEDED = [
    pytest.mark.integration,
    pytest.mark.enable_socket,
    pytest.mark.skipif(NODE is None, reason="BROWSER TEST NOT RUN: no node"),
    pytest.mark.skipif(CHROMIUM is None, reason="BROWSER TEST NOT RUN: no chromium"),
    pytest.mark.skipif(
        not (HERE / "node_modules").exists(),
        reason="BROWSER TEST NOT RUN: npm ci --prefix tests/webhook_receiver/browser",
    ),
]


@dataclass
class Browser:
    """The page under test. Every method is one command to the browser."""

    commands: IO[str]
    answers: IO[str]

    def do(self, command: str) -> Any:
        self.commands.write(command + "\n")
        self.commands.flush()
        answer = json.loads(self.answers.readline())
        assert "error" not in answer, answer
        return answer["value"]


@contextmanager
def started(profile: Path) -> Iterator[Browser]:
    """A browser that shows nothing yet."""
    assert NODE
    assert CHROMIUM
    pictures = os.environ.get("PICTURES", "")
    arguments = [NODE, "inbox.mjs", CHROMIUM, str(profile), pictures]
    process = subprocess.Popen(arguments, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert process.stdin
    assert process.stdout
    with process:
        yield Browser(process.stdin, process.stdout)
        process.stdin.close()


def png(width: int, height: int, level: int = 9) -> str:
    """A picture of a sea at dusk, in base64, compressed at ``level``."""
    rows = b"".join(
        b"\x00" + b"".join(bytes((30 + 150 * y // height, 80 + 60 * x // width, 140)) for x in range(width))
        for y in range(height)
    )
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows, level)),
        (b"IEND", b""),
    )
    framed = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(framed)).decode()
