"""A shell in which the command line is typed, with a deployment in the same process behind it."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from a2a_serverless_tools.cli.app import run
from a2a_serverless_tools.cli.options import CliContext
from a2a_serverless_tools.cli.terminal import Terminal
from tests.client.deployment import BASE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.client import Transport
    from a2a_serverless.domain.remotes import Remote
    from a2a_serverless.store.api_keys import ApiKeyStore
    from a2a_serverless_tools.operators.deliveries import Operations
    from a2a_serverless_tools.operators.deployed import StackName
    from a2a_serverless_tools.operators.schedules import ScheduleAdmin
    from tests.client.deployment import Deployment


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str


class Shell:
    """``screen``: stdout and stderr are a terminal without colours, 100 columns wide; else a pipe."""

    def __init__(self, deployment: Deployment, *, screen: bool = False, transport: Transport | None = None) -> None:
        self.deployment = deployment
        self.screen = screen
        self.transport = transport or deployment.transport
        self.environment: Mapping[str, str] = {}
        self.stdin = b""
        self.callers: Callable[[StackName], ApiKeyStore] | None = None
        self.alarms: Callable[[StackName], Mapping[str, str]] | None = None
        self.schedules: Callable[[StackName], ScheduleAdmin] | None = None
        self.operations: Callable[[StackName], Operations] | None = None
        self.mirrors: list[tuple[str, Remote]] = []
        self.worker_environment: Callable[[StackName], Mapping[str, str]] | None = None
        self.worker_service: Callable[[StackName], str] | None = None
        self.log_lines: Callable[[StackName, str], list[str]] | None = None
        self.error_lines: Callable[[StackName, int], list[tuple[str, str]]] | None = None
        self.local_url: Callable[[Mapping[str, str]], str] = lambda _: BASE

    def run(self, *arguments: str) -> Done:
        out, err = self._console(), self._console()
        world = CliContext(
            Terminal(out, err),
            self.transport,
            self.environment,
            lambda limit: self.stdin[:limit],
            self._sleep,
            "a2a-serverless",
            clock=lambda: self.deployment.world.clock.now() / 1000,
            local_url=self.local_url,
            mirrors=lambda: self.mirrors,
        )
        if self.callers:
            world = replace(world, api_keys=self.callers)
        if self.alarms:
            world = replace(world, alarms=self.alarms)
        if self.schedules:
            world = replace(world, schedules=self.schedules)
        if self.operations:
            world = replace(world, operations=self.operations)
        if self.worker_environment and self.worker_service:
            world = replace(world, worker_environment=self.worker_environment, worker_service=self.worker_service)
        if self.log_lines:
            world = replace(world, log_lines=self.log_lines)
        if self.error_lines:
            world = replace(world, error_lines=self.error_lines)
        with pytest.raises(SystemExit) as ended:
            run(arguments, world)
        code = ended.value.code
        assert isinstance(code, int)
        return Done(code, _written(out), _written(err))

    def _console(self) -> Console:
        return Console(
            file=io.StringIO(),
            force_terminal=self.screen,
            force_interactive=False,
            color_system=None,
            width=100,
            highlight=False,
            _environ={},
        )

    def _sleep(self, seconds: float) -> None:
        self.deployment.world.wait(int(seconds * 1000))


def _written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
