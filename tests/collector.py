"""An OpenTelemetry collector: a real HTTP server that decodes what it gets."""

from __future__ import annotations

import gzip
import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SECONDS = 60
EXPORTER = "opentelemetry.exporter.otlp.proto.http"
NO_EXPORTER = "the extra otel is not installed"


def has_exporter(module: str = EXPORTER, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the extra ``otel`` is installed. In CI it has to be: raises ModuleNotFoundError."""
    try:
        import_module(module)
    except ModuleNotFoundError:
        if "CI" in environment:
            raise
        return False
    return True


@dataclass
class Collector:
    """What was exported to ``url``. It answers with ``status`` when ``answers`` is set."""

    url: str
    spans: list[Any] = field(default_factory=list)
    services: set[str] = field(default_factory=set)
    headers: list[dict[str, str]] = field(default_factory=list)
    status: int = 200
    answers: threading.Event = field(default_factory=threading.Event)

    def find(self, name: str) -> Any:
        """The only span of this name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def tree(self) -> dict[str, str]:
        """The name of each span's parent, by its own; "" is a root."""
        names = {span.span_id: span.name for span in self.spans}
        return {span.name: names.get(span.parent_span_id, "") for span in self.spans}


@contextmanager
def collecting() -> Iterator[Collector]:
    """Runs a collector on 127.0.0.1."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    collector.answers.set()
    _Handler.collectors[server.server_address[1]] = collector
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    try:
        yield collector
    finally:
        collector.answers.set()
        server.shutdown()
        thread.join()
        server.server_close()


def exports() -> list[threading.Thread]:
    """The exports that are under way."""
    return [one for one in threading.enumerate() if one.name == "spans"]


def wait_for_exports() -> None:
    for thread in exports():
        thread.join(SECONDS)
        assert not thread.is_alive()


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


class _Handler(BaseHTTPRequestHandler):
    collectors: dict[int, Collector] = {}  # noqa: RUF012 - by port

    def do_POST(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        collector = self.collectors[self.server.server_address[1]]  # type: ignore[index]
        body = self.rfile.read(int(self.headers["content-length"]))
        collector.answers.wait(SECONDS)
        if collector.status == 200:
            assert self.path == "/v1/traces"
            found = ExportTraceServiceRequest.FromString(gzip.decompress(body))
            for resource in found.resource_spans:
                collector.services |= {
                    one.value.string_value for one in resource.resource.attributes if one.key == "service.name"
                }
                for scope in resource.scope_spans:
                    collector.spans.extend(scope.spans)
            collector.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(collector.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Writes nothing."""
