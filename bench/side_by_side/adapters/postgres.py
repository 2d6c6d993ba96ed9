"""PostgreSQL of one play: a cluster of its own, on a port of its own, which ends with the input."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import lines

USER = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root


def serve() -> None:
    """Makes and starts the cluster; its address is a URL of its database."""
    folder = Path(os.environ["FOLDER"]) / "postgres"
    folder.mkdir()
    if USER:
        shutil.chown(folder, USER)
    programs = Path(os.environ["POSTGRES"]).parent
    words = ["-D", str(folder), "-U", "bench", "--auth=trust", "--no-sync", "--encoding=UTF8"]
    subprocess.run([programs / "initdb", *words], check=True, stdout=sys.stderr, user=USER, cwd="/")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["-D", str(folder), "-p", str(port), "-h", "127.0.0.1", "-k", str(folder), "-F"]
    with subprocess.Popen([programs / "postgres", *words], stdout=sys.stderr, user=USER, cwd="/") as process:
        wait(port)
        lines.ready(f"postgresql://bench@127.0.0.1:{port}/postgres")
        lines.serve()
        process.terminate()


def wait(port: int) -> None:
    """Returns when the server takes connections."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
