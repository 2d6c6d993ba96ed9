import io
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from a2a_serverless.client import HttpError
from a2a_serverless.domain.errors import TaskNotFound
from a2a_serverless_tools.cli.demo_run import DemoRun, attribute_failure, keep_logs, options_of, running_stack
from a2a_serverless_tools.cli.options import CliContext
from a2a_serverless_tools.cli.terminal import Terminal
from a2a_serverless_tools.local.server import listen
from a2a_serverless_tools.project import ProjectError
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import Paths
from a2a_serverless_tools.stack.processes import claim_port
from tests.stack.local import LocalStack


def demo_run(folder: Path) -> DemoRun:
    terminal = Terminal(Console(file=io.StringIO(), width=100, color_system=None))
    return DemoRun(CliContext(terminal), Paths(folder, folder / "state"), folder / "out", 1)


def told(at: DemoRun) -> str:
    assert isinstance(at.console.file, io.StringIO)
    return at.console.file.getvalue()


def test_a_step_of_the_demo_prints_its_remarks(tmp_path: Path) -> None:
    at = demo_run(tmp_path)
    with at.step("card", "Reading the card") as remarks:
        remarks += ["Writer", "1.0"]
    assert "✓ Reading the card (Writer, 1.0, " in told(at)


@pytest.mark.parametrize("error", [HttpError(503, "later"), TaskNotFound(), OSError("no space")])
def test_an_error_within_a_part_of_the_demo_names_that_part(error: Exception) -> None:
    with pytest.raises(StackError) as failed, attribute_failure("send"):
        raise error
    assert (failed.value.part, failed.value.why) == ("send", str(error))


def test_a_bug_of_the_demo_is_raised_and_no_fault_of_a_part(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), demo_run(tmp_path).step("send", "Sending"):
        raise ZeroDivisionError


@pytest.mark.enable_socket
def test_the_demo_uses_the_ports_that_it_is_given_and_no_others(tmp_path: Path) -> None:
    ports = claim_port("test", 0), claim_port("test", 0), claim_port("test", 0)
    run = replace(demo_run(tmp_path), ports=ports)
    options = options_of(run)
    assert (options.emulator_port, options.api_port, options.receiver_port) == ports
    with listen(ports[1]), pytest.raises(StackError, match=f"api: port {ports[1]} "):
        options_of(run)


@pytest.mark.enable_socket
def test_a_stack_that_cannot_start_leaves_no_log_and_no_signal_handler(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ProjectError, match=r"pyproject\.toml cannot be read"), running_stack(demo_run(tmp_path)):
        pytest.fail("it stands without a project")
    assert signal.getsignal(signal.SIGTERM) == before
    assert keep_logs(Paths(tmp_path, tmp_path / "state")) is None


@pytest.mark.enable_socket
@pytest.mark.integration
def test_the_functions_logs_outlive_the_emulator(stack: LocalStack) -> None:
    path = keep_logs(stack.paths)
    assert path
    assert "[rotator] " in (stack.paths.root / path).read_text()
