"""The context of a command, the options that several commands share, and how a function becomes a command."""

import inspect
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlsplit

import typer

from a2a_serverless.client import (
    Client,
    ClientRequest,
    ClientResponse,
    DiscoveredAgent,
    HttpError,
    Transport,
    agents_of,
    discover,
    open_request,
)
from a2a_serverless.client.discovery import fetch
from a2a_serverless.domain.errors import A2AError, TaskNotFound
from a2a_serverless.domain.model import JsonObject
from a2a_serverless.domain.origins import origin_of
from a2a_serverless.domain.remotes import Binding
from a2a_serverless.http_client.credentials import is_header_value, with_credentials
from a2a_serverless.http_client.transport import is_local
from a2a_serverless.protocol.v1 import MAX_PAGE_SIZE, ListTasksRequest
from a2a_serverless_tools.cli.terminal import Terminal, program
from a2a_serverless_tools.operators.deployed import StackName

if TYPE_CHECKING:
    from a2a_serverless.domain.remotes import Remote
    from a2a_serverless.store.api_keys import ApiKeyStore
    from a2a_serverless.testing.rehearsal import StoredTask
    from a2a_serverless_tools.operators.deliveries import DeliveryAdmin, Operations
    from a2a_serverless_tools.operators.schedules import ScheduleAdmin
    from a2a_serverless_tools.stack.paths import Paths

LOCAL_URL = "http://127.0.0.1:8000"
STACK = "a2a-serverless"
AUTHORIZATION = "A2A_AUTHORIZATION"
NOT_FOUND = 404
WHOLE_ID = 32  # characters: the ids of this project's deployments are not shorter
SEARCHED = 1000
SHOWN = 10


Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Stack = Annotated[str, typer.Option(envvar="A2A_STACK", help="The CloudFormation stack.", metavar="NAME")]
Local = Annotated[bool, typer.Option("--local", help="The stack that `up` has started on this machine.")]
Url = Annotated[
    str,
    typer.Option(
        envvar="A2A_URL",
        help="The URL of the deployment; by default what `dev` or `up` runs on this machine.",
        metavar="URL",
        show_default=False,
    ),
]
Agent = Annotated[str, typer.Argument(help="An agent's id, or its URL.", metavar="AGENT", show_default=False)]
TaskId = Annotated[str, typer.Argument(help="The task's id, or its beginning.", metavar="[TASK]", show_default=False)]
InBinding = Annotated[
    Binding | None,
    typer.Option(
        "--binding",
        envvar="A2A_BINDING",
        help="Talk to the agent over this binding; by default the card decides, and JSON-RPC goes first.",
        metavar="JSONRPC|HTTP+JSON",
        show_default=False,
    ),
]
Last = Annotated[bool, typer.Option("--last", help="Your task of this agent that has changed last.")]
_BINDING = inspect.Parameter("binding", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=InBinding)
_SHARED = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option)
    for name, default, option in (("stack", STACK, Stack), ("local", False, Local), ("json", False, Json))
]


def _read_stdin(limit: int) -> bytes:
    return sys.stdin.buffer.read(limit)


def _ask_on_terminal() -> Callable[[str], bool] | None:
    return partial(typer.confirm, err=True) if sys.stdin.isatty() and sys.stderr.isatty() else None


def find_local_url(environment: Mapping[str, str]) -> str:
    """Returns the URL of the agents on this machine.

    They are where ``dev`` or ``up`` of the current folder's project runs, unless A2A_API_PORT names another port than
    that; by default at port 8000.
    """
    port, url = environment.get("A2A_API_PORT"), _running_url(environment)
    if port and (url is None or port != str(urlsplit(url).port)):
        return f"http://127.0.0.1:{port}"
    return url or LOCAL_URL


def _running_url(environment: Mapping[str, str]) -> str | None:
    from a2a_serverless_tools.project import ProjectError, find_project
    from a2a_serverless_tools.stack import paths, processes

    with suppress(ProjectError, OSError, ValueError, TypeError):
        here = paths.find(find_project().root, paths.state_folder(environment))
        candidates = [*processes.started(here.dev), *processes.started(here)]
        return next((process.url for process in candidates if process.name == "api"), None)
    return None


def _wired(name: str, stack: StackName) -> Any:  # noqa: ANN401 - as the function
    """Calls a function of ``operators.operations``, imported only now: most commands do not need the AWS SDK."""
    return getattr(import_module("a2a_serverless_tools.operators.operations"), name)(stack)


def _find_mirrors() -> "list[tuple[str, Remote]]":
    from a2a_serverless_tools.project import ProjectError
    from a2a_serverless_tools.project_check import mirrors_here

    try:
        return mirrors_here()
    except ProjectError:
        return []


@dataclass(frozen=True)
class CliContext:
    """The environment of a command: terminal, stdin, transport, environment variables, clock and sleep.

    ``binding`` is that of requests to agents; None if the card decides. ``program`` is how a person calls this
    program; ``operations`` gives an operator's access to a deployed stack, ``api_keys`` its API keys, ``schedules``
    its schedules, ``alarms`` the state of each alarm by name, ``worker_environment`` the variables of its worker,
    ``worker_service`` the AWS service that runs its tasks, ``unfinished_tasks`` copies of its tasks,
    ``log_lines`` the lines of a task's log, ``error_lines`` lines of its functions that may be errors.
    ``ask`` asks a question to be answered with yes or no;
    None without a terminal. ``local_url`` is where the agents on this machine are.
    """

    terminal: Terminal = field(default_factory=Terminal)
    transport: Transport = open_request
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    stdin: Callable[[int], bytes] = _read_stdin
    sleep: Callable[[float], None] = time.sleep
    program: str = field(default_factory=program)
    operations: Callable[[StackName], "Operations"] = lambda stack: _wired("make_operations", stack)
    api_keys: Callable[[StackName], "ApiKeyStore"] = lambda stack: _wired("make_api_keys", stack)
    schedules: Callable[[StackName], "ScheduleAdmin"] = lambda stack: _wired("make_schedules", stack)
    alarms: Callable[[StackName], Mapping[str, str]] = lambda stack: _wired("alarm_states", stack)
    worker_environment: Callable[[StackName], Mapping[str, str]] = lambda stack: _wired("worker_environment", stack)
    worker_service: Callable[[StackName], str] = lambda stack: _wired("worker_service", stack)
    unfinished_tasks: "Callable[[StackName], Iterator[StoredTask]]" = lambda stack: _wired("unfinished_tasks", stack)
    log_lines: "Callable[[StackName, str], list[str]]" = lambda stack, task: _wired("task_log_lines", stack)(task)
    error_lines: "Callable[[StackName, int], list[tuple[str, str]]]" = lambda stack, s: _wired("error_lines", stack)(s)
    clock: Callable[[], float] = time.monotonic
    ask: Callable[[str], bool] | None = field(default_factory=_ask_on_terminal)
    local_url: Callable[[Mapping[str, str]], str] = find_local_url
    binding: Binding | None = None
    mirrors: "Callable[[], list[tuple[str, Remote]]]" = _find_mirrors

    def as_caller(self, url: str, variable: str = AUTHORIZATION) -> Transport:
        """A transport that sends the caller's credentials to the origin of A2A_URL, and to no other.

        If A2A_URL is not set, they belong to the deployment that the command names by ``url``.
        """
        return self.with_variable(variable, self.environment.get("A2A_URL") or self.url(url))

    def with_variable(self, variable: str, url: str) -> Transport:
        """A transport that sends the ``Authorization`` in a variable to the origin of ``url``, and to no other.

        Credentials come from the environment only: other users of the machine can read arguments. Raises WrongUsage.
        """
        value = self.environment.get(variable)
        if value and not is_header_value(value):
            raise WrongUsage(f"{variable} has a line end, or another character that no header can have.", "set it anew")
        return with_credentials(self.request, url, {"Authorization": value} if value else {})

    def url(self, address: str) -> str:
        """The URL of a deployment: ``address``, or that of this machine. Raises WrongUsage."""
        if address:
            check_url("--url", address)
        return address.rstrip("/") or self.local_url(self.environment)

    def paths(self) -> "Paths":
        """The paths of the current folder's project. Raises ProjectError or StackError."""
        from a2a_serverless_tools.stack import paths

        return paths.find(state=paths.state_folder(self.environment))

    @contextmanager
    def request(self, call: ClientRequest) -> Iterator[ClientResponse]:
        """A transport that shows on a terminal for whom it waits."""
        with ExitStack() as exits:
            with self.terminal.waiting(f"Waiting for {urlsplit(call.url).netloc}"):
                answer = exits.enter_context(self.transport(call))
            yield answer


@dataclass(frozen=True)
class StackContext:
    """The stack of an operator's command: ``stack_name`` in the AWS account; with ``local`` that on this machine."""

    cli: CliContext
    stack_name: str
    local: bool

    @property
    def terminal(self) -> Terminal:
        return self.cli.terminal

    @cached_property
    def name(self) -> StackName:
        if not self.local:
            return StackName(self.stack_name)
        from a2a_serverless_tools.stack.emulator import running_emulator

        return StackName(STACK, running_emulator(self.cli.paths()).url)

    @cached_property
    def operations(self) -> "Operations":
        with self.terminal.waiting(f"Looking for the stack {self.name.name}"):
            return self.cli.operations(self.name)

    @property
    def admin(self) -> "DeliveryAdmin":
        return self.operations.admin

    def check_terminal(self) -> None:
        """Raises BadParameter if nobody can be asked before a change that cannot be taken back."""
        if not self.cli.ask:
            raise typer.BadParameter("there is no terminal to ask on: add --yes, or --dry-run to count")

    def confirm(self, question: str) -> None:
        """Asks on the terminal; ends the command if the answer is no."""
        if not (self.cli.ask and self.cli.ask(question)):
            self.terminal.note("Nothing was changed.")
            raise typer.Exit(1)


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """Returns what Typer calls for ``function``, which gets a CliContext or a StackContext first.

    It has the options of the function, and --json; for a StackContext --stack and --local, too; and --binding if it
    talks to an agent.
    """
    first, *own = inspect.signature(function, eval_str=True).parameters.values()
    is_deployed = first.annotation is StackContext
    if {"agent", "url"} <= {parameter.name for parameter in own}:
        own = [*own, _BINDING]

    def run(ctx: typer.Context, **options: Any) -> None:  # noqa: ANN401 - as the function
        cli = replace(ctx.find_object(CliContext) or CliContext(), binding=options.pop("binding", None))
        cli.terminal.json = options.pop("json")
        function(StackContext(cli, options.pop("stack"), options.pop("local")) if is_deployed else cli, **options)

    context = inspect.signature(run).parameters["ctx"]
    parameters = [context, *own, *(_SHARED if is_deployed else _SHARED[-1:])]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


class UserError(Exception):
    """What was asked for cannot be done. ``remedy`` is what helps."""

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy = remedy


class WrongUsage(UserError):
    """An option has a wrong value."""


class EndedTask(UserError):
    """A message is for a task that has ended."""


class NoReceiver(UserError):
    """No token was registered at the receiver of ``--inbox``."""


class OtherOrigin(UserError):
    """The card of the deployment names another origin, to which the caller's credentials do not go."""

    def __init__(self, home: str, there: str) -> None:
        text = f"The card at {home} names {there} for requests, which is another origin: credentials do not go there."
        super().__init__(text, f"A2A_URL={there}, with its path, if that is your deployment")


class AmbiguousTask(UserError):
    """Several tasks have ids that begin alike."""


class NoUnfinishedTask(UserError):
    """No unfinished task has this id: it has ended, or there is none."""


def check_url(option: str, url: str) -> None:
    """Raises WrongUsage, with the URL that may be meant, if ``url`` is no URL or has no scheme."""
    check_characters(url)
    if urlsplit(url).scheme in {"http", "https"} and "://" in url:
        return
    name = url.partition("://")[2] or url
    proposal = f"{'http' if is_local(f'http://{name}') else 'https'}://{name}"
    raise WrongUsage(f"{url} is not a URL: a URL begins with http:// or https://.", f"{option} {proposal}")


def check_characters(url: str) -> None:
    """Raises WrongUsage if ``url`` has a character or a port that no URL has."""
    try:
        is_url = not re.search(r"[^!-~]", url) and urlsplit(url).port != 0
    except ValueError:
        is_url = False
    if not is_url:
        remedy = "write other characters as percent signs with two digits, a space as %20; ports end at 65535"
        raise WrongUsage(f"{url} is not a URL.", remedy)


class NoSuchAgent(Exception):
    """There is no agent at ``url``."""

    def __init__(self, agent: str, url: str) -> None:
        super().__init__(f"There is no agent at {url}." if "://" in agent else f"There is no agent {agent!r} at {url}.")
        self.url = url


def agents_at(cli: CliContext, url: str) -> list[JsonObject]:
    """Lists the agents of a deployment; of this machine if ``url`` is empty."""
    return agents_of(cli.url(url), cli.as_caller(url))


def find(cli: CliContext, url: str, agent: str) -> DiscoveredAgent:
    """Finds an agent by its id in the deployment at ``url``, or by its own URL.

    Raises NoSuchAgent, or OtherOrigin if the deployment's card leads to where the caller's credentials do not go.
    """
    base_url = cli.url(url)
    if "://" in agent:
        check_characters(agent)
    where = agent if "://" in agent else f"{base_url}/{quote(agent)}"
    try:
        remote = discover(where, cli.as_caller(url), cli.binding)
    except HttpError as refused:
        if refused.status == NOT_FOUND:
            raise NoSuchAgent(agent, base_url if "://" not in agent else where) from refused
        raise
    home, there = origin_of(cli.environment.get("A2A_URL") or base_url), origin_of(remote.client.url)
    if AUTHORIZATION in cli.environment and origin_of(where) == home != there:
        raise OtherOrigin(home, there or remote.client.url)
    return remote


def find_task(cli: CliContext, remote: DiscoveredAgent, agent: str, task: str, *, last: bool) -> str:
    """Returns the id of the task that is meant by its id, the beginning of it, or ``last``.

    An id that may be short is looked for among the caller's tasks; one that is not there is returned as it is. Raises
    BadParameter, TaskNotFound if there is no last task, and AmbiguousTask.
    """
    if last == bool(task):
        raise typer.BadParameter("name one task: by its id, the beginning of its id, or --last")
    if last:
        newest = next(remote.client.tasks(ListTasksRequest(page_size=1, history_length=0)), None)
        if newest is None:
            raise TaskNotFound(f"{agent} has no tasks of yours.")
        cli.terminal.note(f"Task {newest.id}")
        return newest.id
    return task if len(task) >= WHOLE_ID else _complete(remote, agent, task)


def _complete(remote: DiscoveredAgent, agent: str, beginning: str) -> str:
    request = ListTasksRequest(page_size=MAX_PAGE_SIZE, history_length=0)
    try:
        ids = [one.id for one in islice(remote.client.tasks(request), SEARCHED) if one.id.startswith(beginning)]
    except (A2AError, HttpError):  # an agent that lists no tasks: what is asked for then says what is wrong
        return beginning
    if len(ids) > 1 and beginning not in ids:
        lines = "".join(f"\n  {one}" for one in ids[:SHOWN])
        text = f"{len(ids)} tasks of {agent} begin with {beginning}:{lines}"
        raise AmbiguousTask(text, "more characters of the id, or --last")
    return ids[0] if len(ids) == 1 else beginning


def fetch_of_task(client: Client, task: str, what: str) -> Any:  # noqa: ANN401 - any JSON
    """Fetches a document that deployments of this project have beside the protocol's. Raises TaskNotFound."""
    address = f"{client.url}/tasks/{quote(task, safe='')}/{what}"
    try:
        return fetch(address, client.transport, {"A2A-Version": "1.0", **client.headers})
    except HttpError as refused:
        if refused.status == NOT_FOUND:
            raise TaskNotFound("The task was not found, or the agent's deployment is not of this project.") from refused
        raise
