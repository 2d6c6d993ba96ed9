"""A package index on this machine, with empty wheels; on it somebody else has taken this project's names."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

from a2a_serverless_tools.stack.library import CHECKOUT, DISTRIBUTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LOCKED = re.compile(r"^([\w.-]+)==([\w.+]+)", re.MULTILINE)
TAKEN = dict.fromkeys(DISTRIBUTIONS, ("0.1.99", "99.0"))


def locked() -> dict[str, list[str]]:
    """The packages of this checkout's environment with their versions."""
    return {name: [version] for name, version in LOCKED.findall((CHECKOUT / "requirements/dev.txt").read_text())}


def empty_wheel(name: str, version: str) -> bytes:
    """A wheel without a module."""
    info, content = f"{name.replace('-', '_')}-{version}.dist-info", io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for file, text in (
            ("METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"),
            ("WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
            ("RECORD", ""),
        ):
            archive.writestr(zipfile.ZipInfo(f"{info}/{file}"), text)
    return content.getvalue()


class Index:
    """The packages, and the names that were asked for. The content of ``changed`` packages is another."""

    def __init__(self, versions: Mapping[str, Sequence[str]]) -> None:
        self.versions = versions
        self.asked: list[str] = []
        self.changed: set[str] = set()
        self.url = ""

    def answer(self, path: str) -> bytes | None:
        """The page of a package or one of its wheels; None for anything else."""
        match path.strip("/").split("/"):
            case ["simple", name] if name in self.versions:
                self.asked.append(name)
                return "".join(self._links(name)).encode()
            case ["files", name, version, _]:
                return self._wheel(name, version)
        return None

    def _wheel(self, name: str, version: str) -> bytes:
        return empty_wheel(name, version) + (b"changed" if name in self.changed else b"")

    def _links(self, name: str) -> Iterator[str]:
        for version in self.versions[name]:
            file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
            digest = hashlib.sha256(self._wheel(name, version)).hexdigest()
            yield f'<a href="/files/{name}/{version}/{file}#sha256={digest}">{file}</a>\n'


@contextmanager
def serving(versions: Mapping[str, Sequence[str]]) -> Iterator[Index]:
    """An index that answers on 127.0.0.1 while the block runs."""
    index = Index(versions)

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(index.answer(self.path))

        def do_GET(self) -> None:
            content = index.answer(self.path)
            self._answer(content)
            self.wfile.write(content or b"")

        def _answer(self, content: bytes | None) -> None:
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Type", "application/zip" if self.path.endswith(".whl") else "text/html")
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the method's name for it
            """Shows nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    index.url = f"http://127.0.0.1:{server.server_address[1]}/simple"
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
