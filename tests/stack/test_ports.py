"""The ports of a local run: all are checked before the build, and the error has a command with free ones."""

from __future__ import annotations

import io
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from a2a_serverless_tools.stack import local_stack, processes
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import CHECKOUT, find
from a2a_serverless_tools.stack.ports import check_ports, find_user

pytestmark = pytest.mark.enable_socket

LISTEN = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"


def test_all_ports_in_use_are_named_with_a_command_that_has_free_ones() -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        emulator, api = first.getsockname()[1], second.getsockname()[1]
        with pytest.raises(StackError) as raised:
            check_ports({"emulator": emulator, "api": api, "receiver": 0})
        said = str(raised.value)
        assert f"in use on 127.0.0.1: {emulator} (emulator), {api} (api)" in said
        assert f"end `dev` by Ctrl-C or run `a2a-serverless down` in {Path.cwd()}" in said
        options = dict(re.findall(r"--(\w+)-port (\d+)", said))
        assert options.keys() == {"emulator", "api"}
        check_ports({part: int(port) for part, port in options.items()})


def test_the_check_of_ports_accepts_free_ports() -> None:
    check_ports({"api": processes.claim_port("api", 0), "receiver": 0})


@pytest.mark.linux
def test_a_busy_port_is_traced_to_the_folder_of_its_process(tmp_path: Path) -> None:
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", LISTEN], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        assert find_user(int(other.stdout.readline())) == tmp_path
        other.communicate("\n")


def test_up_names_a_busy_port_before_it_builds(tmp_path: Path) -> None:
    said = io.StringIO()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = local_stack.Options(0, taken.getsockname()[1], 0)
        with pytest.raises(StackError, match="in use"):
            local_stack.up(find(CHECKOUT, tmp_path), options, Console(file=said))
    assert said.getvalue() == ""


def test_the_own_ports_of_a_running_stack_are_not_in_its_way(tmp_path: Path) -> None:
    here = find(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as own:
        processes.announce(here, "api", own.getsockname()[1], "")
        options = local_stack.Options(processes.claim_port("emulator", 0), own.getsockname()[1], 0)
        check_ports(local_stack.needed_ports(options, processes.started(here)))
