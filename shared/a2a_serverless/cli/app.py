"""The list of commands, and the handling of their errors: a message that says what to do, and an exit code.

0: done. 1: failed. 2: wrong usage. 3: the task failed, was rejected or was canceled. 4: the task waits for you.
130: interrupted.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from a2a_serverless.cli import callers, cards, check, erase, operator_commands, stack, tasks
from a2a_serverless.cli.errors import explain
from a2a_serverless.cli.examples import EXAMPLES
from a2a_serverless.cli.input import media_type_of, read_file
from a2a_serverless.cli.options import CliContext, Json, State, context_of
from a2a_serverless.cli.versions import versions

Input = Annotated[
    Path | None,
    typer.Argument(envvar="INPUT", help="A text or Markdown file; examples/demo.md by default.", show_default=False),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the documents and pictures.", metavar="FOLDER")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait for the webhooks.", min=1)]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Run agents on AWS Lambda and talk A2A to them: on this machine, or in your account.",
    epilog="Every command takes --json. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the task did not complete, "
    "4 the task waits for you.",
)
cards_app = typer.Typer(no_args_is_help=True, help="List agents and show their cards.")
callers_app = typer.Typer(no_args_is_help=True, help="API keys for callers of a deployed stack.")
push_app = typer.Typer(no_args_is_help=True, help="Webhooks of a deployed stack, for its operator.")
erase_app = typer.Typer(no_args_is_help=True, help="Erase what a deployed stack has stored, for its operator.")
keys_app = typer.Typer(no_args_is_help=True, help="Keys that sign the webhooks of a deployed stack, for its operator.")


def demo(
    ctx: typer.Context,
    source: Input = None,
    *,
    out: Out = Path("out"),
    timeout: Timeout = 120,
    state: State = None,
    _json: Json = False,
) -> None:
    """Run a chain of agents on a fresh stack on this machine, and follow it by signed webhooks.

    Then an agent makes a picture and a refinement of it. The demo starts all that it needs, stops it at the end, and
    saves the results in out/.
    """
    path = source or stack.EXAMPLE
    text = read_file(path)
    from a2a_serverless.cli.demo import DemoInput, made_in, run_demo
    from a2a_serverless.cli.demo_run import DemoRun

    cli, paths = context_of(ctx), stack.demo_paths(stack.find_paths(state))
    report = run_demo(DemoRun(cli, paths, out, timeout), DemoInput(path, text, media_type_of(path)))
    if cli.terminal.json:
        cli.terminal.data(report)
    else:
        cli.terminal.out.print("Done. Results:", style="bold", highlight=False)
        for made in made_in(report):
            cli.terminal.raw(f"  {made}\n")


HERE = "On this machine"
AGENTS = "Agents and their tasks"
ACCOUNT = "In your account"
app.command("demo", epilog=EXAMPLES["demo"], rich_help_panel=HERE)(demo)
app.command("up", epilog=EXAMPLES["up"], rich_help_panel=HERE)(stack.up)
app.command("down", epilog=EXAMPLES["down"], rich_help_panel=HERE)(stack.down)
app.command("logs", epilog=EXAMPLES["logs"], rich_help_panel=HERE)(stack.show_logs)
app.command("send", epilog=EXAMPLES["send"], rich_help_panel=AGENTS)(tasks.send)
app.command("get", epilog=EXAMPLES["get"], rich_help_panel=AGENTS)(tasks.get)
app.command("watch", epilog=EXAMPLES["watch"], rich_help_panel=AGENTS)(tasks.watch)
app.command("cancel", epilog=EXAMPLES["cancel"], rich_help_panel=AGENTS)(tasks.cancel)
app.command("versions", epilog=EXAMPLES["versions"], rich_help_panel=AGENTS)(versions)
app.command("deliveries", epilog=EXAMPLES["deliveries"], rich_help_panel=AGENTS)(tasks.deliveries)
cards_app.command("list", epilog=EXAMPLES["cards list"])(cards.list_cards)
cards_app.command("show", epilog=EXAMPLES["cards show"])(cards.show_card)
app.add_typer(cards_app, name="cards", rich_help_panel=AGENTS)
app.command("build", epilog=EXAMPLES["build"], rich_help_panel=ACCOUNT)(stack.build)
app.command("check", epilog=EXAMPLES["check"], rich_help_panel=ACCOUNT)(check.check)
push_app.command("list", epilog=EXAMPLES["push list"])(operator_commands.list_pushes)
push_app.command("show", epilog=EXAMPLES["push show"])(operator_commands.show_push)
push_app.command("redrive", epilog=EXAMPLES["push redrive"])(operator_commands.redrive_push)
push_app.command("pause", epilog=EXAMPLES["push pause"])(operator_commands.pause_push)
push_app.command("resume", epilog=EXAMPLES["push resume"])(operator_commands.resume_push)
app.add_typer(push_app, name="push", rich_help_panel=ACCOUNT)
keys_app.command("show", epilog=EXAMPLES["keys show"])(operator_commands.show_keys)
keys_app.command("rotate", epilog=EXAMPLES["keys rotate"])(operator_commands.rotate_keys)
keys_app.command("revoke", epilog=EXAMPLES["keys revoke"])(operator_commands.revoke_key)
app.add_typer(keys_app, name="keys", rich_help_panel=ACCOUNT)
erase_app.command("task", epilog=EXAMPLES["erase task"])(erase.erase_task)
erase_app.command("context", epilog=EXAMPLES["erase context"])(erase.erase_context)
erase_app.command("owner", epilog=EXAMPLES["erase owner"])(erase.erase_owner)
app.add_typer(erase_app, name="erase", rich_help_panel=ACCOUNT)
callers_app.command("add", epilog=EXAMPLES["callers add"])(callers.add_caller)
callers_app.command("list", epilog=EXAMPLES["callers list"])(callers.list_callers)
callers_app.command("move", epilog=EXAMPLES["callers move"])(callers.move_callers)
callers_app.command("remove", epilog=EXAMPLES["callers remove"])(callers.remove_caller)
app.add_typer(callers_app, name="callers", rich_help_panel=ACCOUNT)


def run(arguments: Sequence[str] | None = None, cli: CliContext | None = None) -> None:
    """Run a command line; always ends with SystemExit."""
    cli = cli or CliContext()
    try:
        app(arguments, obj=cli)
    except Exception as error:
        explained = explain(error, cli)
        if explained is None:
            raise
        cli.terminal.fail(explained)
        sys.exit(1)


def main() -> None:
    """Run the program with the arguments of the process."""
    run()
