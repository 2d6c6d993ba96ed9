"""The command that runs the tasks of a deployed stack in a process of its own, in place of its worker function."""

import os
import sys
from typing import Annotated

import typer

from a2a_serverless_tools.cli.options import StackContext, WrongUsage

LAMBDA = "lambda.amazonaws.com"

TasksAtOnce = Annotated[int, typer.Option(help="Tasks that run at the same time at most.", min=1, max=1000)]
DrainSeconds = Annotated[
    int,
    typer.Option(
        help="Seconds that running tasks may go on after SIGTERM, before they are handed over.", min=0, max=86_400
    ),
]
Health = Annotated[
    str, typer.Option(help="Answer GET with 200 or 503 at this address.", metavar="HOST:PORT", show_default=False)
]
Name = Annotated[
    str,
    typer.Option(
        help="A name of this process alone. When it starts again after a kill, it goes on with its tasks at once.",
        metavar="NAME",
        show_default=False,
    ),
]
PrintEnvironment = Annotated[
    bool, typer.Option("--print-environment", help="Only print the variables that the process needs in a container.")
]


def work(
    stack: StackContext,
    *,
    tasks_at_once: TasksAtOnce = 50,
    drain_seconds: DrainSeconds = 0,
    health: Health = "",
    name: Name = "",
    print_environment: PrintEnvironment = False,
) -> None:
    """Run a stack's tasks in this process, instead of its function, with the agents of the current folder's project.

    The stack must be deployed with the constant WorkerService, so that Lambda runs none. SIGTERM and Ctrl+C hand the
    running tasks over to the next worker.
    """
    from a2a_serverless.settings import SettingsError, read

    overrides = {"TASKS_AT_ONCE": str(tasks_at_once), "DRAIN_SECONDS": str(drain_seconds)}
    if health:  # without it an image may have an address of its own
        overrides["HEALTH_ADDRESS"] = health
    if name:  # the same
        overrides["WORKER_NAME"] = name
    try:
        read(overrides)
    except SettingsError as error:
        raise WrongUsage(f"{error}.", "see a2a-serverless work --help") from None
    with stack.terminal.waiting(f"Looking for the stack {stack.name.name}"):
        environment = {**stack.cli.worker_environment(stack.name), **overrides}
        service = stack.cli.worker_service(stack.name)
    if service == LAMBDA:
        stack.terminal.note("Lambda runs tasks of this stack, too: set the constant WorkerService and deploy it.")
    if print_environment:
        stack.terminal.result({**environment}, "".join(f"{name}={value}\n" for name, value in environment.items()))
        return
    from a2a_serverless.agent_loader import MANIFEST, write_manifest
    from a2a_serverless_tools.project import read_project
    from a2a_serverless_tools.project_check import check_project
    from a2a_serverless_tools.stack.build import code_of
    from a2a_serverless_tools.stack.emulator import aws_environment

    paths = stack.cli.paths()
    project = read_project(paths.root)
    manifest = paths.state / MANIFEST
    manifest.parent.mkdir(parents=True, exist_ok=True)
    write_manifest(manifest, check_project(project).agents, code_of(project))
    if stack.name.emulator:
        environment |= aws_environment(stack.name.emulator)
    os.environ.update(environment | {"AGENTS_FILE": str(manifest)})
    sys.path.insert(0, str(project.source))
    from a2a_serverless.aws.queue_worker import main

    raise typer.Exit(main(os.environ))
