"""A stand-in for Docker's daemon at a Unix socket: it has every image, and refuses to make a container."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any

from tests.stack.projects import write_program

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGE = {"Id": "sha256:1", "Os": "linux", "Architecture": "amd64", "RepoTags": [], "RepoDigests": []}
REFUSAL = "there are no containers here"


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True


class DockerDaemon:
    """``environment`` leads Docker's clients, also the command ``docker``, to this daemon.

    ``gateway`` is the address of its bridge. ``asked`` are the containers that it was asked for, ``mounted`` the names
    of the files in their functions.
    """

    def __init__(self, folder: Path, gateway: str) -> None:
        self.environment = {"DOCKER_HOST": f"unix://{folder}/docker.sock", "PATH": f"{folder}:/usr/bin:/bin"}
        self.asked: list[dict[str, Any]] = []
        self.mounted: list[set[str]] = []
        write_program(folder / "docker", f"#!/bin/sh\necho '{json.dumps({'Gateway': gateway})}'\n")

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        if method == "POST" and path.endswith("/containers/create"):
            container = json.loads(body)
            self.asked.append(container)
            (function,) = [one for one in container["HostConfig"]["Binds"] if ":/var/task:" in one]
            self.mounted.append({one.name for one in Path(function.partition(":")[0]).iterdir()})
            return 500, {"message": REFUSAL}
        return 200, IMAGE if "/images/" in path else {"ApiVersion": "1.44", "Os": "linux", "Arch": "amd64"}


@contextmanager
def docker_daemon(*, gateway: str) -> Iterator[DockerDaemon]:
    """A daemon while the block runs."""
    with TemporaryDirectory() as folder:  # a socket's path has at most 107 characters
        daemon = DockerDaemon(Path(folder), gateway)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, answer = daemon.answer(self.command, self.path, body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Api-Version", "1.44")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_DELETE = do_HEAD = do_GET  # noqa: N815 - their names in http.server

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with _Server(f"{folder}/docker.sock", Handler) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            yield daemon
            server.shutdown()
