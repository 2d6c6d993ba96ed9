"""The context of a command, the options that several commands share, and how a function becomes a command."""

import inspect
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from a2a_serverless.cli.terminal import Terminal, program
from a2a_serverless.client import DiscoveredAgent, HttpError, Transport, discover, over_urllib
from a2a_serverless.domain.deployed import StackName

if TYPE_CHECKING:
    from a2a_serverless.ports.keys import ApiKeyStore
    from a2a_serverless.services.delivery_admin import DeliveryAdmin, Operations
    from a2a_serverless.stack.paths import Paths

LOCAL_URL = "http://127.0.0.1:8000"
STACK = "a2a-serverless"
NOT_FOUND = 404

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Stack = Annotated[str, typer.Option(envvar="A2A_STACK", help="The CloudFormation stack.", metavar="NAME")]
Local = Annotated[bool, typer.Option("--local", help="The stack that `up` has started on this machine.")]
Url = Annotated[str, typer.Option(envvar="A2A_URL", help="The URL of the deployment.", metavar="URL")]
Agent = Annotated[str, typer.Argument(help="An agent's id, or its URL.", metavar="AGENT", show_default=False)]
TaskId = Annotated[str, typer.Argument(help="The task's id.", metavar="TASK", show_default=False)]
State = Annotated[str | None, typer.Option(envvar="A2A_STATE", help="Folder of the stack's state.", hidden=True)]


def _read_stdin(limit: int) -> bytes:
    return sys.stdin.buffer.read(limit)


def _ask_on_terminal() -> Callable[[str], bool] | None:
    return partial(typer.confirm, err=True) if sys.stdin.isatty() and sys.stderr.isatty() else None


def _wired(name: str, stack: StackName) -> Any:  # noqa: ANN401 - as the function
    """Calls a function of ``wiring.operators``, imported only now: most commands do not need the AWS SDK."""
    return getattr(import_module("a2a_serverless.wiring.operators"), name)(stack)


@dataclass(frozen=True)
class CliContext:
    """The environment of a command: terminal, stdin, transport, environment variables, clock and sleep.

    ``program`` is how a person calls this program; ``operations`` gives an operator's access to a deployed stack,
    ``api_keys`` its API keys, ``earlier_api_keys`` those that an earlier release stored in another table, and
    ``alarms`` the state of each alarm by name. ``ask`` asks a question to be answered with yes or no; None without a
    terminal.
    """

    terminal: Terminal = field(default_factory=Terminal)
    transport: Transport = over_urllib
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    stdin: Callable[[int], bytes] = _read_stdin
    sleep: Callable[[float], None] = time.sleep
    program: str = field(default_factory=program)
    operations: Callable[[StackName], "Operations"] = field(default_factory=lambda: partial(_wired, "make_operations"))
    api_keys: Callable[[StackName], "ApiKeyStore"] = field(default_factory=lambda: partial(_wired, "make_api_keys"))
    earlier_api_keys: Callable[[StackName], "ApiKeyStore"] = field(
        default_factory=lambda: partial(_wired, "make_earlier_api_keys")
    )
    alarms: Callable[[StackName], Mapping[str, str]] = field(default_factory=lambda: partial(_wired, "alarm_states"))
    clock: Callable[[], float] = time.monotonic
    ask: Callable[[str], bool] | None = field(default_factory=_ask_on_terminal)

    @property
    def headers(self) -> dict[str, str]:
        """The caller's credentials, from the environment: other users of the machine can read arguments."""
        authorization = self.environment.get("A2A_AUTHORIZATION")
        return {"Authorization": authorization} if authorization else {}


@dataclass(frozen=True)
class StackContext:
    """The stack of an operator's command: ``asked`` in the AWS account, or with ``local`` the one on this machine."""

    cli: CliContext
    asked: str
    local: bool

    @property
    def terminal(self) -> Terminal:
        return self.cli.terminal

    @cached_property
    def name(self) -> StackName:
        if not self.local:
            return StackName(self.asked)
        from a2a_serverless.stack.emulator import running_emulator

        return StackName(STACK, running_emulator(find_paths(self.cli.environment.get("A2A_STATE"))).url)

    @cached_property
    def operations(self) -> "Operations":
        return self.cli.operations(self.name)

    @property
    def admin(self) -> "DeliveryAdmin":
        return self.operations.admin


_SHARED = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option)
    for name, default, option in (("stack", STACK, Stack), ("local", False, Local), ("json", False, Json))
]


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """Returns what Typer calls for ``function``, which gets a CliContext or a StackContext first.

    It has the options of the function, and --json; for a StackContext --stack and --local, too.
    """
    first, *own = inspect.signature(function, eval_str=True).parameters.values()
    is_deployed = first.annotation is StackContext

    def run(ctx: typer.Context, **given: Any) -> None:  # noqa: ANN401 - as the function
        cli = ctx.find_object(CliContext) or CliContext()
        cli.terminal.json = given.pop("json")
        function(StackContext(cli, given.pop("stack"), given.pop("local")) if is_deployed else cli, **given)

    context = inspect.signature(run).parameters["ctx"]
    parameters = [context, *own, *(_SHARED if is_deployed else _SHARED[-1:])]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__doc__ = function.__doc__
    return run


class NoSuchAgent(Exception):
    """There is no agent at ``url``."""

    def __init__(self, agent: str, url: str) -> None:
        super().__init__(f"There is no agent at {url}." if "://" in agent else f"There is no agent {agent!r} at {url}.")
        self.url = url


def find(cli: CliContext, base_url: str, agent: str) -> DiscoveredAgent:
    """Finds an agent by its id in the deployment at ``base_url``, or by its own URL. Raises NoSuchAgent."""
    url = agent if "://" in agent else f"{base_url.rstrip('/')}/{agent}"
    try:
        return discover(url, cli.transport, cli.headers)
    except HttpError as refused:
        if refused.status == NOT_FOUND:
            raise NoSuchAgent(agent, base_url if "://" not in agent else url) from refused
        raise


def find_paths(state: str | None) -> "Paths":
    """Returns the paths of the current folder's project. Raises ProjectError or StackError."""
    from a2a_serverless.stack import paths

    return paths.find(state=Path(state).resolve() if state else None)
