"""The commands for a project and its stack on this machine: init, demo, up, down, logs, build, eject.

The commands import the stack's modules themselves, because they need the AWS SDK and talking to agents does not.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from a2a_serverless_tools.cli.dev import example_message, send_command
from a2a_serverless_tools.cli.files import media_type_of, read_file
from a2a_serverless_tools.cli.options import CliContext
from a2a_serverless_tools.cli.task_logs import Level
from a2a_serverless_tools.operators.deployed import StackName, StackNotFound

if TYPE_CHECKING:
    from a2a_serverless_tools.stack.build import Changes
    from a2a_serverless_tools.stack.paths import Paths

TAIL = 20
PAUSE_S = 1.0
NOISE = ("START RequestId", "END RequestId")  # Lambda's REPORT line has all that these say

Folder = Annotated[
    Path, typer.Argument(help="Such as my-agents: the project's name; its package is my_agents.", show_default=False)
]
FrameworkName = Literal["a2a-sdk", "adk", "langgraph", "openai-agents", "pydantic-ai", "strands"]
Framework = Annotated[
    FrameworkName | None,
    typer.Option(
        "--from", metavar="FRAMEWORK", help=f"The framework of its agent: {', '.join(get_args(FrameworkName))}."
    ),
]
Input = Annotated[
    Path | None,
    typer.Argument(envvar="INPUT", help="A text or Markdown file; examples/demo.md by default.", show_default=False),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the documents and pictures.", metavar="FOLDER")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait for the webhooks.", min=1)]
EmulatorPort = Annotated[int, typer.Option(envvar="A2A_EMULATOR_PORT", help="Port of the AWS emulator on 127.0.0.1.")]
ApiPort = Annotated[
    int, typer.Option("--api-port", "--port", envvar="A2A_API_PORT", help="Port of the api on 127.0.0.1.")
]
ReceiverPort = Annotated[int, typer.Option(envvar="A2A_RECEIVER_PORT", help="Port of the webhook receiver.")]
Part = Annotated[
    str,
    typer.Argument(help="A function, or emulator, server, receiver, build, deploy, dev.", metavar="[PART]"),
]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Print new lines as they come.")]
OfTask = Annotated[
    str, typer.Option("--task", help="Only the lines of this task; the beginning of its id.", metavar="TASK")
]
Least = Annotated[Level, typer.Option(help="With --task: lines of this level and above.")]
LogStack = Annotated[str, typer.Option("--stack", help="With --task or --errors: a stack in AWS.", metavar="NAME")]
Errors = Annotated[bool, typer.Option("--errors", help="Only the errors of all functions, counted by their cause.")]
ErrorsSince = Annotated[str, typer.Option("--since", help="With --errors: 1h (ago), or a timestamp.", metavar="WHEN")]
Runtime = Annotated[str, typer.Option(help="Lambda runtime to build for.")]
Architecture = Annotated[str, typer.Option(help="arm64 or x86_64.")]
Diff = Annotated[
    bool, typer.Option("--diff", help="Show what a deployment would change since the last build, and keep that build.")
]


def demo(  # noqa: PLR0913 - the options of a command
    cli: CliContext,
    source: Input = None,
    *,
    out: Out = Path("out"),
    timeout: Timeout = 120,
    emulator_port: EmulatorPort = 0,
    api_port: ApiPort = 0,
    receiver_port: ReceiverPort = 0,
) -> None:
    """Run a chain of agents on a fresh stack on this machine, and follow it by signed webhooks.

    Then an agent makes a picture and a refinement of it. The demo starts all that it needs, stops it at the end, and
    saves the results in out/. Its ports are those of `up` where they are free, else any. Its agents are in the
    repository, so it runs with a checkout only.
    """
    from a2a_serverless_tools.stack.library import FILES
    from a2a_serverless_tools.stack.paths import find_samples, state_folder

    path = source or FILES / "examples/demo.md"
    text = read_file(path)
    from a2a_serverless_tools.cli.demo import DemoInput, run_demo
    from a2a_serverless_tools.cli.demo_run import DemoRun

    ports = emulator_port, api_port, receiver_port
    run = DemoRun(cli, find_samples(state_folder(cli.environment)), out, timeout, ports)
    report = run_demo(run, DemoInput(path, text, media_type_of(path)))
    if cli.terminal.json:
        cli.terminal.data(report)
    else:
        cli.terminal.out.print("Done. Results:", style="bold", highlight=False)
        cli.terminal.raw("".join(f"  {place}\n" for place in run.saved))


def init(cli: CliContext, folder: Folder, *, framework: Framework = None) -> None:
    """Make a project for agents of your own, in a new folder.

    With --from its agent is one of that framework, beside a script that answers until you name a model. The library's
    wheels are copied into the project. No command asks a package index for them, and uv.lock has their digests and
    those of all that they need. Commit both.
    """
    from a2a_serverless_tools.stack.new_project import create, lock

    with cli.terminal.waiting("Making the project"):
        files = create(folder, framework=framework or "")
    with cli.terminal.waiting("Locking what the project needs"):
        why = lock(folder)
    names = [path.relative_to(folder.parent).as_posix() for path in files] + ([] if why else [f"{folder.name}/uv.lock"])
    message = 'shop "a coat"' if framework else 'tailor "A coat, please."'
    commands = [
        f"cd {folder}",
        "uv run pytest",
        "uv run a2a-serverless dev",
        f"uv run a2a-serverless send {message}",
        "uv run a2a-serverless up",
        "uv run a2a-serverless build",
    ]
    cli.terminal.result(
        {"folder": f"{folder}", "files": [*names], "next": [*commands]}, "".join(f"{one}\n" for one in names)
    )
    if why:
        cli.terminal.note(f"uv.lock is not there yet, and `uv lock` writes it: {why}")
    commands[3] += " # in a second terminal, while dev runs"
    cli.terminal.note("Next:\n" + "\n".join(f"  {command}" for command in commands))


def up(
    cli: CliContext,
    *,
    emulator_port: EmulatorPort = 4566,
    api_port: ApiPort = 8000,
    receiver_port: ReceiverPort = 8010,
) -> None:
    """Start the stack on this machine, or bring a running one up to date with the project."""
    from a2a_serverless.agent_loader import MANIFEST, load_agents
    from a2a_serverless_tools.stack import local_stack

    options = local_stack.Options(emulator_port, api_port, receiver_port)
    running = local_stack.up(cli.paths(), options, cli.terminal.progress, lambda stack: _rehearse(cli, stack))
    agents, inbox, rest_api = f"{running.api.url}/agents", f"{running.receiver.url}/", running.deployment.rest_url
    agent, message = "document", "--file examples/demo.md"
    if not Path("examples/demo.md").is_file():
        agent, message = example_message(load_agents(running.build.path / MANIFEST)[0])
    command = send_command(cli, agent, message, running.api.url, running.receiver.url)
    cli.terminal.result(
        {
            "agents": agents,
            "console": f"{running.api.url}/",
            "inbox": inbox,
            "webhook": f"{inbox}webhook",
            "restApi": rest_api,
            "emulator": running.emulator.url,
        },
        [
            ("Console", f"{running.api.url}/"),
            ("Agents", agents),
            ("Webhooks", inbox),
            ("REST API", rest_api),
            ("Try", command),
            ("Stop", f"{cli.program} down"),
        ],
    )


def _rehearse(cli: CliContext, stack: StackName) -> None:
    """Says which tasks of the running stack the new code does not fit."""
    from a2a_serverless_tools.cli.rehearse import of_stack, summary_of, texts_of

    try:
        rehearsals = [*of_stack(cli, stack)]
    except StackNotFound:  # it was not deployed yet
        return
    if any(rehearsal.verdict.is_red for rehearsal in rehearsals):
        for text in (*texts_of(rehearsals), summary_of(rehearsals)):
            cli.terminal.note(text)


def down(cli: CliContext) -> None:
    """Stop the stack. Its tasks are deleted; its logs stay in .a2a/logs."""
    from a2a_serverless_tools.stack import local_stack, processes

    here = cli.paths()
    names = [process.name for paths in (here, here.demo) for process in processes.started(paths)]
    for paths in (here, here.demo):
        local_stack.down(paths, cli.terminal.progress)
    cli.terminal.result({"stopped": [*names]}, "")
    if not names:
        cli.terminal.note("Nothing was running.")


def show_logs(  # noqa: PLR0913 - the options of a command
    cli: CliContext,
    part: Part = "",
    *,
    task: OfTask = "",
    level: Least = "INFO",
    errors: Errors = False,
    since: ErrorsSince = "1h",
    stack: LogStack = "",
    follow: Follow = False,
) -> None:
    """Show logs of the stack, or else of `dev`: the last lines of each part, all of one, those of a task or the errors.

    The lines of a task are what its runs have logged and printed: in `dev`, on the stack of this machine, or, with
    --stack, in AWS (by a query of CloudWatch Logs Insights, which costs by the size of the logs; so without --follow).
    """
    from a2a_serverless_tools.stack import logs

    if stack and (follow or not (task or errors)):
        raise typer.BadParameter(
            "--stack needs --task or --errors, and no --follow: each query of the logs in AWS costs"
        )
    if errors:
        from a2a_serverless_tools.cli.task_logs import show_errors

        show_errors(cli, since, stack)
        return
    if task:
        from a2a_serverless_tools.cli.task_logs import show_task

        show_task(cli, task, level, stack, follow=follow)
        return
    paths = cli.paths()
    output = {part: logs.read(paths, part)} if part else logs.read_all(paths)
    if cli.terminal.json:
        cli.terminal.data({name: [*lines] for name, lines in output.items()})
        return
    for name, lines in output.items():
        cli.terminal.out.print(f"── {name} ──", style="dim", markup=False)
        excerpt = lines if part else [line for line in lines if not line.startswith(NOISE)][-TAIL:]
        cli.terminal.raw("".join(f"{line}\n" for line in excerpt))
    if follow:
        for name, line in _follow_logs(paths, output, cli.sleep):
            cli.terminal.raw(f"{name:10}{line}\n")


def build(
    cli: CliContext, *, runtime: Runtime = "python3.13", architecture: Architecture = "arm64", diff: Diff = False
) -> None:
    """Build template and functions for AWS into .aws-sam/build, ready for `sam deploy`.

    The template is the library's, with the settings of pyproject.toml. The functions are compiled with the runtime's
    Python. On a terminal the command offers to install it where it is missing.
    """
    from a2a_serverless_tools.stack import environments, paths
    from a2a_serverless_tools.stack.build import CONTAINER, compare, functions_near_limit, release
    from a2a_serverless_tools.stack.interpreters import ensure_interpreter
    from a2a_serverless_tools.stack.progress import step
    from a2a_serverless_tools.stack.targets import Target

    here = paths.find()
    ensure_interpreter(here, runtime, cli.ask, cli.terminal.progress)
    environments.ensure(here, cli.terminal.progress)
    target = Target(runtime, architecture)
    with step(cli.terminal.progress, f"Building the functions for {runtime} on {architecture}"):
        changes, released = (compare(here, target), None) if diff else (None, release(here, target))
    if released is None:
        _show(cli, changes)
        return
    sizes = {path.name: path.stat().st_size for path in sorted(released.glob("*.zip"))}
    cli.terminal.result({**sizes}, "".join(f"  {name:24} {size / 1e6:5.1f} MB\n" for name, size in sizes.items()))
    for one in functions_near_limit(released):
        cli.terminal.note(f"{one}. Larger functions need {CONTAINER}.")


def _show(cli: CliContext, changes: "Changes | None") -> None:
    if changes is None:
        cli.terminal.result({"lastBuild": False, "template": "", "functions": []}, "")
        cli.terminal.note("There is no last build in .aws-sam/build: all would be new.")
        return
    cli.terminal.result(
        {"lastBuild": True, "template": changes.template, "functions": [*changes.functions]}, changes.template
    )
    if changes.functions:
        cli.terminal.note(f"Functions with other code: {', '.join(changes.functions)}")
    elif not changes.template:
        cli.terminal.note("Nothing changes.")


def eject(cli: CliContext) -> None:
    """Copy the library's template, functions and events into the project, to change them there.

    From then on builds use these files. A new version of the library does not change them, so you bring its changes
    into them yourself. Settings in pyproject.toml do the same without that.
    """
    from a2a_serverless_tools.project import find_project
    from a2a_serverless_tools.stack import new_project

    project = find_project()
    with cli.terminal.waiting("Copying the template"):
        files = new_project.eject(project)
    names = [path.relative_to(project.root).as_posix() for path in files]
    cli.terminal.result({"folder": f"{project.root}", "files": [*names]}, "".join(f"{one}\n" for one in names))
    cli.terminal.note("These files are yours now: a new version of the library does not change them.")


def _follow_logs(
    paths: "Paths", output: dict[str, list[str]], sleep: Callable[[float], None]
) -> Iterator[tuple[str, str]]:
    from a2a_serverless_tools.stack import logs

    counts = {name: len(lines) for name, lines in output.items()}
    while True:
        sleep(PAUSE_S)
        for name, count in counts.items():
            lines = logs.read(paths, name)
            counts[name] = len(lines)
            yield from ((name, line) for line in lines[count:])
