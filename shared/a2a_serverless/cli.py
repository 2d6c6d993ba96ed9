"""The command line: `a2a-serverless --help`."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from a2a_serverless.stack import errors, logs, places, sam, session
from a2a_serverless.stack.progress import step

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
console = Console()

EmulatorPort = Annotated[int, typer.Option(help="Port of the AWS emulator on 127.0.0.1.")]
ApiPort = Annotated[int, typer.Option(help="Port of the api on 127.0.0.1.")]
ReceiverPort = Annotated[int, typer.Option(help="Port of the webhook receiver on 127.0.0.1.")]


@app.command()
def up(emulator_port: EmulatorPort = 4566, api_port: ApiPort = 8000, receiver_port: ReceiverPort = 8010) -> None:
    """Start the stack on this machine, or bring a running one up to date."""
    running = session.up(places.find(), session.Options(emulator_port, api_port, receiver_port), console)
    console.print(f"Agents   {running.api.url}/agents")
    console.print(f"Webhooks {running.receiver.url}/")


@app.command()
def down() -> None:
    """Stop the stack. Its data is gone; its logs stay in .a2a/logs."""
    session.down(places.find(), console)


@app.command("logs")
def show_logs(part: Annotated[str, typer.Argument(help=f"One of {', '.join(logs.PARTS)}.")] = "emulator") -> None:
    """Show what a part of the stack has said so far."""
    for line in logs.read(places.find(), part):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


@app.command()
def build(
    runtime: Annotated[str, typer.Option(help="Lambda runtime to build for.")] = sam.Target.runtime,
    architecture: Annotated[str, typer.Option(help="arm64 or x86_64.")] = sam.Target.architecture,
) -> None:
    """Build the functions for AWS into .aws-sam/build, ready for `sam deploy`."""
    with step(console, f"Building the functions for {runtime} on {architecture}"):
        released = sam.release(places.find(), sam.Target(runtime, architecture))
    for path in sorted(released.glob("*.zip")):
        console.print(f"  {path.name:24} {path.stat().st_size / 1e6:5.1f} MB")


def main() -> None:
    """Run the command line; what a person can mend is said in a sentence, without a traceback."""
    try:
        app()
    except errors.StackError as error:
        Console(stderr=True).print(str(error), style="red", markup=False, soft_wrap=True)
        sys.exit(1)
