"""Invalid settings of the rotator and of traces, and what is imported when."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from a2a_serverless.adapters.aws import Aws
from a2a_serverless.aws.api_dependencies import make_dependencies
from a2a_serverless.aws.process import make_tracer, uncollected
from a2a_serverless.domain.spans import TraceSpan
from a2a_serverless.ports.tracing import NULL_TRACER
from a2a_serverless.settings import SettingsError
from tests.adapters.clouds import cloud, session
from tests.collector import NO_EXPORTER, has_exporter, wait_for_exports
from tests.contexts import Context
from tests.functions.start import start_function
from tests.loggers import kept_loggers
from tests.manifests import manifest_of_samples

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
REFUSED = [
    ({"JWKS_MAX_AGE_SECONDS": "never"}, "JWKS_MAX_AGE_SECONDS must be a whole number from 1 to 86400, not 'never'"),
    ({}, "PUBLIC_TABLE_NAME is not set"),
]
CONTEXT = Context()
needs_exporter = pytest.mark.skipif(not has_exporter(), reason=NO_EXPORTER)


@pytest.fixture(autouse=True)
def _loggers() -> Iterator[None]:
    with kept_loggers():
        yield


class CloudFormation(BaseHTTPRequestHandler):
    """The end of a presigned URL, to which the rotator PUTs its answers."""

    answers: ClassVar[list[tuple[str, Any]]] = []

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.answers.append((self.path, json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def cloudformation() -> Iterator[str]:
    CloudFormation.answers.clear()
    with HTTPServer(("127.0.0.1", 0), CloudFormation) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/answer"
        server.shutdown()
        thread.join()


@pytest.mark.enable_socket
@pytest.mark.parametrize("kind", ["Create", "Update"])
@pytest.mark.parametrize(("environment", "why"), REFUSED)
def test_cloudformation_is_told_at_once_which_setting_the_rotator_refuses(
    environment: dict[str, str], why: str, kind: str, cloudformation: str
) -> None:
    rotator = start_function("rotator", environment)
    request = {"StackId": "s", "RequestId": "r", "LogicalResourceId": "KeyRing", "ResponseURL": cloudformation}
    rotator(request | {"RequestType": kind}, CONTEXT)
    ((path, answer),) = CloudFormation.answers
    assert (path, answer["Status"], answer["Reason"]) == ("/answer", "FAILED", f"SettingsError: {why}")
    rotator(request | {"RequestType": "Delete"}, CONTEXT)
    assert CloudFormation.answers[-1][1]["Status"] == "SUCCESS", "or the stack could not be rolled back or deleted"


@pytest.mark.parametrize("event", [{}, {"command": "rotate"}, {"command": "show"}, {"source": "aws.events"}])
def test_a_misconfigured_rotator_fails_for_each_event_with_the_same_words(event: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="JWKS_MAX_AGE_SECONDS"):
        start_function("rotator", {"JWKS_MAX_AGE_SECONDS": "never"})(event, CONTEXT)


NAMES = ("TABLE_NAME", "BLOBS_BUCKET", "SEALING_KEY_ID", "WORK_QUEUE_URL", "WORK_DEAD_LETTERS_URL")
ACCOUNT = {"AWS_DEFAULT_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
WORKER = {**dict.fromkeys(NAMES, "some"), **ACCOUNT}


def test_a_worker_that_does_not_know_its_deployment_s_address_makes_no_address_without_a_host() -> None:
    worker = WORKER | {"AGENTS_FILE": str(manifest_of_samples())}
    assert start_function("worker", worker | {"PUBLIC_BASE_URL": "https://agents.example.com"})({}, CONTEXT)
    with pytest.raises(SettingsError, match="PUBLIC_BASE_URL is not set"):
        start_function("worker", worker)


@pytest.mark.parametrize(("environment", "stream_ms"), [({}, 180_000), ({"STREAM_SECONDS": "600"}, 600_000)])
def test_a_stream_is_open_as_long_as_the_setting_says(environment: dict[str, str], stream_ms: int) -> None:
    names = dict.fromkeys(("ACCESS_TABLE_NAME", "DELIVERY_QUEUE_URL", "PUBLIC_TABLE_NAME"), "some")
    api = WORKER | names | {"AGENTS_FILE": str(manifest_of_samples())} | environment
    assert make_dependencies(api, Aws(session())).stream_ms == stream_ms


LIBRARY = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}  # an agent's own libraries read it, too
COLLECTOR = LIBRARY | {"OPEN_TELEMETRY": "on"}
OPEN = COLLECTOR | {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.example:9"}


@pytest.mark.parametrize(
    "environment",
    [
        {},
        LIBRARY,
        {"OPEN_TELEMETRY": "on"},
        COLLECTOR | {"OTEL_TRACES_SAMPLER_ARG": "many"},
        OPEN | {"OTEL_EXPORTER_OTLP_HEADERS": "x-key=k"},
        OPEN | {"OTEL_HEADERS_SECRET": "otel"},
    ],
)
def test_a_function_without_a_collector_or_with_a_wrong_setting_of_it_records_nothing(
    environment: dict[str, str],
) -> None:
    assert make_tracer(environment) is NULL_TRACER


TOLD_TASK = """
import sys
import a2a_serverless.http.app
from tests.echo import Writer
from tests.world import World

world = World([Writer(seconds=0).agent])
world.send("hello")
world.settle()
print(len(world.receiver.posts) > 1, "a2a_serverless.domain.spans" in sys.modules)
"""


def test_a_function_that_records_no_spans_imports_no_telemetry() -> None:
    done = subprocess.run([sys.executable, "-c", TOLD_TASK], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - our own interpreter
    assert done.stdout.split() == ["True", "False"]


NEEDED = """
import sys
import a2a_serverless.store.task_log
import a2a_serverless.aws.api_dependencies

print(*(name for name in sys.argv[1:] if f"a2a_serverless.{name}" in sys.modules))
"""
SELDOM_NEEDED = (
    "adapters.egress",
    "adapters.kms",
    "domain.notifications",
    "protocol.error_bodies",
    "services.callbacks",
    "services.listing",
    "services.webhooks",
)


def test_a_cold_start_of_the_api_imports_nothing_that_most_sends_do_not_need() -> None:
    command = [sys.executable, "-c", NEEDED, *SELDOM_NEEDED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - our own interpreter
    assert done.stdout.split() == []


def test_without_the_exporter_tests_of_spans_are_skipped_and_fail_in_ci() -> None:
    assert not has_exporter("no_such_module", {})
    with pytest.raises(ModuleNotFoundError):
        has_exporter("no_such_module", {"CI": "1"})


def test_garbage_is_collected_again_when_a_function_has_started() -> None:
    try:
        with uncollected():
            assert not gc.isenabled()
        assert gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()


@needs_exporter
def test_headers_that_are_no_headers_are_in_the_log_without_their_text(caplog: pytest.LogCaptureFixture) -> None:
    tracer = make_tracer(COLLECTOR | {"OTEL_EXPORTER_OTLP_HEADERS": "confidential"})
    tracer.record(TraceSpan("a", f"00-{'a' * 32}-{'b' * 16}-01", "", 1, 2))
    tracer.flush()
    wait_for_exports()
    (why,) = [record for record in caplog.records if record.message == "spans cannot be exported"]
    assert vars(why)["error"] == "ValueError"
    assert "confidential" not in str([vars(record) for record in caplog.records])


@needs_exporter
def test_headers_that_aws_refuses_cost_spans_and_not_the_start_of_a_function(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with cloud("secretsmanager"):
        tracer = make_tracer(COLLECTOR | {"OTEL_HEADERS_SECRET": "nowhere"})
        tracer.record(TraceSpan("a", f"00-{'a' * 32}-{'b' * 16}-01", "", 1, 2))
        assert (tracer.is_on, caplog.records) == (True, [])
        tracer.flush()
        wait_for_exports()
    (why,) = [record for record in caplog.records if record.message == "spans cannot be exported"]
    assert vars(why)["error"].startswith("GetParameterError")
