"""The command that prints the variables of a worker in a container."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from a2a_serverless_tools.cli.app import run
from a2a_serverless_tools.cli.options import CliContext
from a2a_serverless_tools.cli.terminal import Terminal


def printed(*arguments: str) -> list[str]:
    """The lines that ``work --print-environment`` prints for a worker that has one variable."""
    out = io.StringIO()
    terminal = Terminal(Console(file=out), Console(file=io.StringIO()))
    context = CliContext(terminal, worker_environment=lambda _: {"TABLE_NAME": "table"})
    with pytest.raises(SystemExit) as ended:
        run(["work", "--stack", "garden", "--print-environment", *arguments], context)
    assert ended.value.code == 0
    return out.getvalue().splitlines()


@pytest.mark.parametrize(
    ("arguments", "addresses"), [((), []), (("--health", "0.0.0.0:80"), ["HEALTH_ADDRESS=0.0.0.0:80"])]
)
def test_without_an_address_of_its_own_the_health_s_address_is_left_to_the_image(
    arguments: tuple[str, ...], addresses: list[str]
) -> None:
    lines = printed(*arguments)
    assert [line for line in lines if line.startswith("HEALTH_ADDRESS")] == addresses
    assert {"TABLE_NAME=table", "TASKS_AT_ONCE=50", "DRAIN_SECONDS=0"} <= set(lines)
