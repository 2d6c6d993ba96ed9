"""The commands that run the project's own stack on this machine: up, down, logs, build.

The commands import the stack's modules themselves, because they need the AWS SDK and talking to agents does not.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from a2a_serverless.cli.options import ApiPort, CliContext, EmulatorPort, Json, ReceiverPort, State, context_of
from a2a_serverless.cli.terminal import Terminal

if TYPE_CHECKING:
    from a2a_serverless.stack.local_stack import RunningStack
    from a2a_serverless.stack.paths import Paths

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "demo.md"
TAIL = 20
PAUSE_S = 1.0

Part = Annotated[
    str, typer.Argument(help="A function, or emulator, server, receiver, build, deploy.", metavar="[PART]")
]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Print new lines as they come.")]


def up(
    ctx: typer.Context,
    *,
    emulator_port: EmulatorPort = 4566,
    api_port: ApiPort = 8000,
    receiver_port: ReceiverPort = 8010,
    state: State = None,
    _json: Json = False,
) -> None:
    """Start the stack on this machine, or bring a running one up to date with the checkout."""
    from a2a_serverless.stack import local_stack

    terminal = context_of(ctx).terminal
    options = local_stack.Options(emulator_port, api_port, receiver_port)
    running = local_stack.up(find_paths(state), options, terminal.progress)
    if terminal.json:
        terminal.data(dict(_addresses(running)))
    else:
        _print_addresses(context_of(ctx), running)


def down(ctx: typer.Context, *, state: State = None, _json: Json = False) -> None:
    """Stop the stack. Its tasks are deleted; its logs stay in .a2a/logs."""
    from a2a_serverless.stack import local_stack, processes

    terminal, here = context_of(ctx).terminal, find_paths(state)
    paths = [here, demo_paths(here)]
    names = [process.name for each in paths for process in processes.started(each)]
    for each in paths:
        local_stack.down(each, terminal.progress)
    if terminal.json:
        terminal.data({"stopped": [*names]})
    elif not names:
        terminal.note("Nothing was running.")


def show_logs(
    ctx: typer.Context,
    part: Part = "",
    *,
    follow: Follow = False,
    state: State = None,
    _json: Json = False,
) -> None:
    """Show the logs of the stack: the last lines of each part, or all lines of one."""
    from a2a_serverless.stack import logs

    terminal, paths = context_of(ctx).terminal, find_paths(state)
    parts = [part] if part else [*logs.PARTS]
    said = {name: logs.read(paths, name) for name in parts}
    if terminal.json:
        terminal.data({name: [*lines] for name, lines in said.items()})
        return
    for name, lines in said.items():
        _print_log(terminal, name, lines if part else [line for line in lines if not _is_noise(line)][-TAIL:])
    if follow:
        for name, line in _follow_logs(paths, said, context_of(ctx).sleep):
            terminal.raw(f"{name:10}{line}\n")


def build(
    ctx: typer.Context,
    *,
    runtime: Annotated[str, typer.Option(help="Lambda runtime to build for.")] = "python3.13",
    architecture: Annotated[str, typer.Option(help="arm64 or x86_64.")] = "arm64",
    _json: Json = False,
) -> None:
    """Build the functions for AWS into .aws-sam/build, ready for `sam deploy`."""
    from a2a_serverless.stack import paths, sam
    from a2a_serverless.stack.progress import step

    terminal = context_of(ctx).terminal
    with step(terminal.progress, f"Building the functions for {runtime} on {architecture}"):
        released = sam.release(paths.find(), sam.Target(runtime, architecture))
    zips = sorted(released.glob("*.zip"))
    if terminal.json:
        terminal.data({path.name: path.stat().st_size for path in zips})
        return
    for path in zips:
        terminal.raw(f"  {path.name:24} {path.stat().st_size / 1e6:5.1f} MB\n")


def demo_paths(paths: "Paths") -> "Paths":
    """Returns the paths of the demo's stack, which is apart from the one of `up`."""
    from a2a_serverless.stack.paths import Paths

    return Paths(paths.root, paths.state / "demo")


def find_paths(state: str | None) -> "Paths":
    """Returns the paths of this checkout. Raises StackError when it is none, or not set up."""
    from a2a_serverless.stack import paths

    return paths.find(state=Path(state).resolve() if state else None)


def _addresses(running: "RunningStack") -> Iterator[tuple[str, str]]:
    yield "agents", f"{running.api.url}/agents"
    yield "inbox", f"{running.receiver.url}/"
    yield "webhook", f"{running.receiver.url}/webhook"
    yield "restApi", running.deployment.rest_url
    yield "emulator", running.emulator.url


def _print_addresses(cli: CliContext, running: "RunningStack") -> None:
    addresses = dict(_addresses(running))
    where = "" if running.api.port == 8000 else f" --url {running.api.url}"  # noqa: PLR2004 - the default of --url
    command = f"{cli.program} send document --file examples/demo.md --inbox {running.receiver.url}{where}"
    cli.terminal.rows(
        [
            ("Agents", addresses["agents"]),
            ("Webhooks", addresses["inbox"]),
            ("REST API", addresses["restApi"]),
            ("Try", command),
            ("Stop", "make down"),
        ]
    )


def _is_noise(line: str) -> bool:
    """True for Lambda's START and END lines; its REPORT line has all that they say."""
    return line.startswith(("START RequestId", "END RequestId"))


def _print_log(terminal: Terminal, name: str, lines: list[str]) -> None:
    terminal.out.print(f"── {name} ──", style="dim", markup=False)
    for line in lines:
        terminal.raw(f"{line}\n")


def _follow_logs(
    paths: "Paths", said: dict[str, list[str]], sleep: Callable[[float], None]
) -> Iterator[tuple[str, str]]:
    from a2a_serverless.stack import logs

    seen = {name: len(lines) for name, lines in said.items()}
    while True:
        sleep(PAUSE_S)
        for name, count in seen.items():
            lines = logs.read(paths, name)
            seen[name] = len(lines)
            yield from ((name, line) for line in lines[count:])
