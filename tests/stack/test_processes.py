import json
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from a2a_serverless_tools.stack import processes
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import Paths
from a2a_serverless_tools.stack.processes import Process

pytestmark = pytest.mark.enable_socket

SERVER = """
import http.server, sys
print("serving", flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
DEAF = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{SERVER}"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Paths]:
    paths = Paths(tmp_path, tmp_path / "state")
    yield paths
    for process in processes.started(paths):
        processes.stop(paths, process, seconds=0)


def serve(paths: Paths, program: str = SERVER, name: str = "server") -> Process:
    port = processes.claim_port(name, 0)
    process = processes.start(paths, name, [sys.executable, "-c", program, str(port)], os.environ, port=port)
    processes.wait_until_ready(process, "/", seconds=60)
    return process


def test_a_process_runs_until_it_is_stopped_and_is_forgotten_then(here: Paths) -> None:
    process = serve(here)
    assert processes.started(here) == [process]
    processes.stop(here, process)
    assert not processes.is_alive(process)
    assert processes.started(here) == []


def test_a_process_that_does_not_listen_is_ended_all_the_same(here: Paths) -> None:
    process = serve(here, DEAF)
    processes.stop(here, process, seconds=0)
    assert not processes.is_alive(process)


def test_the_record_of_a_process_is_equal_to_the_process(here: Paths) -> None:
    process = serve(here)
    record = json.loads((here.state / "run/server.json").read_text())
    assert Process(**record) == process


def test_a_stranger_with_the_pid_of_an_old_process_is_left_alone(here: Paths) -> None:
    stranger = serve(here)
    old = replace(stranger, born="long ago")
    processes.stop(here, old)
    assert processes.is_alive(stranger)
    processes.stop(here, stranger)


def test_the_output_of_a_process_goes_to_its_log(here: Paths) -> None:
    process = serve(here)
    assert Path(process.log).read_text().startswith("serving")


def test_a_process_that_ends_too_early_is_an_error_with_its_last_words(here: Paths) -> None:
    process = processes.start(here, "server", [sys.executable, "-c", "raise SystemExit('no room')"], os.environ, port=1)
    with pytest.raises(StackError, match="server: ended before it was ready: no room"):
        processes.wait_until_ready(process, "/", seconds=60)


def test_a_process_that_never_answers_is_an_error_after_a_while(here: Paths) -> None:
    port = processes.claim_port("server", 0)
    silent = [sys.executable, "-c", "import signal; signal.pause()"]
    process = processes.start(here, "silent", silent, os.environ, port=port)
    with pytest.raises(StackError, match="silent: not ready after 0 s"):
        processes.wait_until_ready(process, "/", seconds=0)


def test_a_port_in_use_is_an_error_that_says_what_helps() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StackError, match=f"api: port {port} on 127.0.0.1 cannot be used") as raised:
            processes.claim_port("api", port)
    assert "a2a-serverless down" in str(raised.value)


def test_port_zero_is_any_free_port_that_no_connection_is_given_meanwhile() -> None:
    assert processes.claim_port("api", 0) < 32_768
