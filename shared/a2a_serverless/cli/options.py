"""The options that several commands share, and the context that every command gets."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from a2a_serverless.cli.terminal import Terminal, program
from a2a_serverless.client import DiscoveredAgent, HttpError, Transport, discover, over_urllib

if TYPE_CHECKING:
    from a2a_serverless.domain.deployed import StackName
    from a2a_serverless.ports.keys import ApiKeyStore
    from a2a_serverless.services.delivery_admin import Operations

LOCAL_URL = "http://127.0.0.1:8000"
NOT_FOUND = 404


def _read_stdin(limit: int) -> bytes:
    return sys.stdin.buffer.read(limit)


def _api_keys(stack: "StackName") -> "ApiKeyStore":
    from a2a_serverless.wiring.operators import make_api_keys

    return make_api_keys(stack)


def _earlier_api_keys(stack: "StackName") -> "ApiKeyStore":
    from a2a_serverless.wiring.operators import make_earlier_api_keys

    return make_earlier_api_keys(stack)


def _operations(stack: "StackName") -> "Operations":
    from a2a_serverless.wiring.operators import make_operations

    return make_operations(stack)


def _alarms(stack: "StackName") -> Mapping[str, str]:
    from a2a_serverless.wiring.operators import alarm_states

    return alarm_states(stack)


@dataclass(frozen=True)
class CliContext:
    """The environment of a command: terminal, stdin, transport, environment variables, clock and sleep.

    ``program`` is how a person calls this program; ``operations`` gives an operator's access to a deployed stack,
    ``api_keys`` its API keys, ``earlier_api_keys`` those that an earlier release stored in another table, and
    ``alarms`` the state of each alarm by name.
    """

    terminal: Terminal = field(default_factory=Terminal)
    transport: Transport = over_urllib
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    stdin: Callable[[int], bytes] = _read_stdin
    sleep: Callable[[float], None] = time.sleep
    program: str = field(default_factory=program)
    operations: "Callable[[StackName], Operations]" = _operations
    api_keys: "Callable[[StackName], ApiKeyStore]" = _api_keys
    earlier_api_keys: "Callable[[StackName], ApiKeyStore]" = _earlier_api_keys
    alarms: "Callable[[StackName], Mapping[str, str]]" = _alarms
    clock: Callable[[], float] = time.monotonic

    @property
    def headers(self) -> dict[str, str]:
        """The caller's credentials, from the environment: other users of the machine can read arguments."""
        authorization = self.environment.get("A2A_AUTHORIZATION")
        return {"Authorization": authorization} if authorization else {}


class NoSuchAgent(Exception):
    """There is no agent at ``url``."""

    def __init__(self, agent: str, url: str) -> None:
        super().__init__(f"There is no agent at {url}." if "://" in agent else f"There is no agent {agent!r} at {url}.")
        self.url = url


def context_of(ctx: typer.Context) -> CliContext:
    """Returns the context that a command was started with."""
    return ctx.find_object(CliContext) or CliContext()


def find(cli: CliContext, base_url: str, agent: str) -> DiscoveredAgent:
    """Finds an agent by its id in the deployment at ``base_url``, or by its own URL. Raises NoSuchAgent."""
    url = agent if "://" in agent else f"{base_url.rstrip('/')}/{agent}"
    try:
        return discover(url, cli.transport, cli.headers)
    except HttpError as refused:
        if refused.status == NOT_FOUND:
            raise NoSuchAgent(agent, base_url if "://" not in agent else url) from refused
        raise


def _set_json(ctx: typer.Context, value: bool) -> bool:  # noqa: FBT001 - Typer calls it
    context_of(ctx).terminal.json = value
    return value


Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.", callback=_set_json)]
Url = Annotated[str, typer.Option(envvar="A2A_URL", help="The URL of the deployment.", metavar="URL")]
Agent = Annotated[str, typer.Argument(help="An agent's id, or its URL.", metavar="AGENT", show_default=False)]
TaskId = Annotated[str, typer.Argument(help="The task's id.", metavar="TASK", show_default=False)]
State = Annotated[str | None, typer.Option(envvar="A2A_STATE", help="Folder of the stack's state.", hidden=True)]
EmulatorPort = Annotated[int, typer.Option(envvar="A2A_EMULATOR_PORT", help="Port of the AWS emulator on 127.0.0.1.")]
ApiPort = Annotated[int, typer.Option(envvar="A2A_API_PORT", help="Port of the api on 127.0.0.1.")]
ReceiverPort = Annotated[int, typer.Option(envvar="A2A_RECEIVER_PORT", help="Port of the webhook receiver.")]
