"""The list of commands, and the handling of their errors: a message that says what to do, and an exit code.

0: done. 1: failed. 2: wrong usage. 3: the task failed, was rejected or was canceled. 4: the task waits for you.
130: interrupted.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Final

import typer

from a2a_serverless.cli import callers, cards, check, erase, operator_commands, stack, tasks, versions
from a2a_serverless.cli.errors import explain
from a2a_serverless.cli.examples import examples_of
from a2a_serverless.cli.options import CliContext, as_command

GROUPS: Final = {
    "cards": "List agents and show their cards.",
    "push": "Webhooks of a deployed stack, for its operator.",
    "keys": "Keys that sign the webhooks of a deployed stack, for its operator.",
    "erase": "Erase what a deployed stack has stored, for its operator.",
    "callers": "API keys for callers of a deployed stack.",
}
# By the panel of the help, in its order.
COMMANDS: Final[dict[str, dict[str, Callable[..., None]]]] = {
    "On this machine": {"demo": stack.demo, "up": stack.up, "down": stack.down, "logs": stack.show_logs},
    "Agents and their tasks": {
        "send": tasks.send,
        "get": tasks.get,
        "watch": tasks.watch,
        "cancel": tasks.cancel,
        "versions": versions.versions,
        "deliveries": tasks.deliveries,
        "cards list": cards.list_cards,
        "cards show": cards.show_card,
    },
    "In your account": {
        "build": stack.build,
        "check": check.check,
        "push list": operator_commands.list_pushes,
        "push show": operator_commands.show_push,
        "push redrive": operator_commands.redrive_push,
        "push pause": operator_commands.pause_push,
        "push resume": operator_commands.resume_push,
        "keys show": operator_commands.show_keys,
        "keys rotate": operator_commands.rotate_keys,
        "keys revoke": operator_commands.revoke_key,
        "erase task": erase.erase_task,
        "erase context": erase.erase_context,
        "erase owner": erase.erase_owner,
        "callers add": callers.add_caller,
        "callers list": callers.list_callers,
        "callers move": callers.move_callers,
        "callers remove": callers.remove_caller,
    },
}


def _make_app() -> typer.Typer:
    made = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help="Run agents on AWS Lambda and talk A2A to them: on this machine, or in your account.",
        epilog="Every command takes --json. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the task did not complete, "
        "4 the task waits for you.",
    )
    groups = {"": made}
    for panel, commands in COMMANDS.items():
        for name, function in commands.items():
            group, _, word = name.rpartition(" ")
            if group not in groups:
                groups[group] = typer.Typer(no_args_is_help=True, help=GROUPS[group])
                made.add_typer(groups[group], name=group, rich_help_panel=panel)
            shown_in = None if group else panel
            groups[group].command(word, epilog=examples_of(name), rich_help_panel=shown_in)(as_command(function))
    return made


app: Final = _make_app()


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
