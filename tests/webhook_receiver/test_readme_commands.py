"""The README's receivers of one's own are started and get a message's webhooks, by the commands that it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection
from typing import IO, TYPE_CHECKING

import pytest

from a2a_serverless_tools.stack import processes
from tests.conformance.live import serving
from tests.docs.documents import ROOT, blocks
from tests.echo import Writer
from tests.stack.local import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.enable_socket

FOLDER = ROOT / "webhook_receiver"
README = FOLDER / "README.md"
FASTAPI, SEND, NODE = (
    next(block.text for block in blocks("sh", README) if part in block.text)
    for part in ("uvicorn main:app", "--webhook ", "node examples/node")
)
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("A2A_")},
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "PYTHONUNBUFFERED": "1",
}


def port_of(block: str) -> str:
    found = re.search(r"127\.0\.0\.1:(\d+)/webhook", block)
    assert found
    return found[1]


@contextmanager
def started(block: str, folder: Path) -> Iterator[IO[str]]:
    """What the receiver of a block says, once it listens; the block's last command is the receiver."""
    *before, last = block.splitlines()
    line = "\n".join([*before, re.sub(r"^(PORT=\d+ )?", r"\1exec ", last)])
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(["bash", "-c", line], cwd=folder, env=ENVIRONMENT, text=True, **pipes) as process:  # type: ignore[call-overload]  # noqa: S603, S607
        try:
            eventually(lambda: listens(int(port_of(block))))
            yield process.stdout
        finally:
            process.terminate()


def listens(port: int) -> bool:
    try:
        create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("block", "says"), [(FASTAPI, " completed"), (NODE, "accepted task=")], ids=["fastapi", "node"]
)
def test_a_receiver_of_ones_own_gets_the_webhooks_of_a_message(block: str, says: str, tmp_path: Path) -> None:
    if block is NODE and not shutil.which("npm"):
        pytest.skip("JAVASCRIPT RECEIVER NOT TESTED: no npm")
    (tmp_path / "main.py").write_text(blocks("python", README)[0].text)
    for part in ("examples/node", "javascript"):
        shutil.copytree(FOLDER / part, tmp_path / part, ignore=shutil.ignore_patterns("node_modules"))
    port = str(processes.claim_port("RECEIVER", 0))
    with serving([Writer(seconds=0).agent]) as url:
        mine = block.replace("http://127.0.0.1:8000", url).replace(port_of(block), port)
        send = f"A2A_URL={url} {SEND}".replace(port_of(SEND), port).replace("send document", "send echo")
        with started(mine, tmp_path) as output:
            sent = subprocess.run(["bash", "-c", send], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)  # noqa: S603, S607, PLW1510
            assert sent.returncode == 0, sent.stderr
            assert any(line.rstrip().endswith(says) or line.startswith(says) for line in output)
