"""The list of commands, and the handling of their errors: a message that says what to do, and an exit code.

0: done. 1: failed. 2: wrong usage. 3: the task failed, was rejected or was canceled. 4: the task waits for you.
130: interrupted.

Only the module of the command that is called is imported: a shell that completes a word must not wait for the others.
"""

from __future__ import annotations

import ast
import os
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer.completion import completion_init  # type: ignore[attr-defined] # imported there

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from a2a_serverless_tools.cli.options import CliContext

COMPLETE: Final = "_A2A_SERVERLESS_COMPLETE"
VERSION: Final = "--version"
GROUPS: Final = {
    "tasks": "List tasks, retry failed ones; for operators: why tasks of all owners do not end.",
    "cards": "List and search agents, show their cards.",
    "push": "Webhooks of a deployed stack, for its operator.",
    "keys": "Keys that sign the webhooks of a deployed stack, for its operator.",
    "erase": "Erase what a deployed stack has stored, for its operator.",
    "schedules": "Schedules of a deployed stack, for its operator.",
    "callers": "API keys for callers of a deployed stack.",
}
# By the panel of the help, in its order: each command's module and function.
COMMANDS: Final[dict[str, dict[str, str]]] = {
    "On this machine": {
        "init": "stack.init",
        "dev": "dev.dev",
        "demo": "stack.demo",
        "up": "stack.up",
        "down": "stack.down",
        "logs": "stack.show_logs",
    },
    "Agents and their tasks": {
        "send": "tasks.send",
        "get": "tasks.get",
        "watch": "tasks.watch",
        "cancel": "tasks.cancel",
        "tasks list": "listing.list_tasks",
        "tasks retry": "tasks.retry",
        "deliveries": "tasks.deliveries",
        "trace": "trace.trace",
        "cards list": "cards.list_cards",
        "cards search": "cards.search_cards",
        "cards show": "cards.show_card",
        "cards refresh": "mirror_cards.refresh_cards",
    },
    "In your account": {
        "build": "stack.build",
        "eject": "stack.eject",
        "rehearse": "rehearse.rehearse",
        "check": "check.check",
        "work": "work.work",
        "tasks stuck": "stuck.list_stuck_tasks",
        "tasks show": "stuck.show_stuck_task",
        "queues": "stuck.show_queues",
        "pause": "pauses.pause",
        "resume": "pauses.resume",
        "push list": "operator_commands.list_pushes",
        "push show": "operator_commands.show_push",
        "push redrive": "operator_commands.redrive_push",
        "push pause": "operator_commands.pause_push",
        "push resume": "operator_commands.resume_push",
        "schedules list": "schedules.show_schedules",
        "schedules pause": "schedules.pause_schedule",
        "schedules resume": "schedules.resume_schedule",
        "schedules run": "schedules.run_schedule",
        "keys show": "operator_commands.show_keys",
        "keys rotate": "operator_commands.rotate_keys",
        "keys revoke": "operator_commands.revoke_key",
        "erase task": "erase.erase_task",
        "erase context": "erase.erase_context",
        "erase owner": "erase.erase_owner",
        "restore": "restore.restore",
        "callers add": "callers.add_caller",
        "callers list": "callers.list_callers",
        "callers remove": "callers.remove_caller",
    },
}

# The examples at the end of each command's help. A test parses each of them.
_LINES: Final = """\
init my-agents # A folder with one agent, its test, and the deployment's settings
init my-shop --from langgraph # The agent is a LangGraph graph; no model is needed yet
dev # The agents of pyproject.toml: agents on 8000, webhook receiver and its inbox on 8010
dev --port 9000 --receiver-port 9010 # A second project beside the first; `up` has these options, too
dev --json # For programs: one JSON document per line
demo # A chain of agents on examples/demo.md, and a picture
demo notes.md # On a text of yours
demo --port 9000 --receiver-port 9010 --emulator-port 5566 # On these ports: A2A_API_PORT and so on set them, too
demo --json # For scripts: the result as JSON
up # Emulator on 4566, api on 8000, webhook receiver on 8010
up --emulator-port 5566 --port 9000 --receiver-port 9010 # Beside another stack
down # Stops what up has started, and what a killed demo has left
logs # The last lines of each log
logs worker # The whole log of the worker
logs notifier --follow # And new lines as they come
logs --errors --stack my-agents # What goes wrong in its functions, and where
logs --task 3f9a1c --follow # What the runs of a task log and print, in `dev` or on this stack
logs --task TASK --level WARNING --stack my-agents # In AWS
send document "The history of lighthouses" # Follow it to its end, print the document
send document --file notes.md --out out # Save the document in out/
send document "Compare these" --file a.md --file b.pdf # A text and files
send document --data '{"topic": "lighthouses"}' --budget usd=0.5 # A JSON value; it may spend half a dollar
send document --file notes.md --no-wait # Start the task and print its id
send document --last "Shorter, please" # Answer the question of the last task
send document --file notes.md --inbox http://127.0.0.1:8010 # Send webhooks to the local receiver
send https://agents.example.com/document --file notes.md # An agent anywhere
get document TASK # Its state
get document 3f9a1c # The beginning of the id is enough
get document --last # The task that has changed last
get document TASK --text # Only its result, for a pipe
get document TASK --json # The whole task
watch document TASK # Until it ends or needs you
watch document TASK --json # One event per line
cancel document TASK # It ends as canceled
tasks list # The newest tasks of all agents
tasks list document --state input-required # Those of an agent that wait for an answer
tasks list --context CONTEXT --limit 100 # Those of a conversation
tasks retry document TASK # A new task goes on from the step that failed
tasks retry document TASK --from outline # From this step on; `trace` shows the names
tasks retry document --last --no-wait # Only start it, and print its id
trace document TASK # Bars: queue, runs, steps, calls, waits, artifacts, webhooks
trace document TASK --json # For programs
deliveries document TASK # Each webhook of the task, each attempt
cards list # The agents on this machine
cards list --url https://agents.example.com # Those of a deployment
cards search --tag writing # The agents with this tag, or with a skill of this id
cards search picture --url https://agents.example.com/catalog.json # By a word, in any AI Catalog
cards show document # What the agent can do, and how to talk to it
cards show document --json # The card as it was served, with its signatures
cards refresh # Have the remote agents of the project's mirrors changed their cards?
cards refresh --write # Take the cards as they are now
build # For AWS Lambda's python3.13 on arm64
build --architecture x86_64 # With Architecture=x86_64 in sam deploy
build --diff # What a deployment would change since the last build: a diff of the template, and functions
eject # template.yaml, observability.yaml, functions/ and events/
rehearse # Does the code of this folder fit the tasks of the running `dev`?
rehearse --stack my-agents # And those of a stack? For CI: exit code 1 if a task would fail, or work twice
rehearse --local --json # The stack that `up` has started, for programs
check https://agents.example.com # With your key in A2A_AUTHORIZATION, another owner's in A2A_OTHER_AUTHORIZATION
check https://agents.example.com --receiver https://hooks.example.com # Webhooks, too, at your receiver
check https://agents.example.com --stack a2a-serverless --rotate # And from inside: alarms, a key rotation
check http://127.0.0.1:8000 --receiver http://127.0.0.1:8010 --local # On the stack that `up` has started
check https://agents.example.com --json # For a pipeline: exit code 1 when anything fails
work --stack my-agents # Run its tasks here, with the agents of this folder, until Ctrl+C
work --stack my-agents --print-environment # The variables of a container: docs/container.md
work --local # The tasks of the stack that `up` has started
tasks stuck # Of all owners: what no worker runs, or waits since an hour
tasks stuck --since 2d --stack my-agents # What waits since two days
tasks show tenant/owner/TASK # One task: runs, waits, webhooks, and what helps
tasks show 3f9a1c # The beginning of the id of an unfinished task is enough
queues # How many messages each queue has, failed ones too
pause # What is paused
pause document # Its tasks wait, running ones from their next step on
pause --owner default/alice --stack my-agents # All tasks of an owner
resume document # They go on
resume --owner default/alice # Within as long as the pause took, an hour at most
callers add alice # A key for alice
callers add alice --tenant acme --note laptop --stack my-agents # In its own tenant
callers add monitor --scope a2a:read # A key that may only read
erase task default/alice/TASK --dry-run # Count first
erase task default/alice/TASK # Then erase: it asks first
erase task default/alice/TASK --yes # In a script
erase context default/alice/CONTEXT --stack my-agents # A whole conversation
erase owner default/alice --dry-run # Count first, without erasing
erase owner default/alice # Erase everything. After an interruption, start it again
restore --table tasks-restored --dry-run # Count first
restore --table tasks-restored --access-table keys-restored --stack my-agents # With the API keys
callers list # The owner and scopes of each key
callers remove 3f9a1c0e5b7d2846 # By its id from the list
push list # Every webhook that was given up
push list --host hooks.example.com --since 2h # Those of a host that failed two hours ago
push list tenant/owner/TASK --stack my-agents # All of one task
push list --local # On the stack that `up` has started
push show tenant/owner/TASK CONFIG # Its state and its attempts
push redrive tenant/owner/TASK CONFIG # When the receiver works again
push redrive --host hooks.example.com --since 2h # All webhooks of a host that was down
push redrive --all # All that were given up
push pause tenant/owner/TASK CONFIG # While the receiver is being repaired
push resume tenant/owner/TASK CONFIG # Continues where it was paused
schedules list # The next times of each schedule
schedules list --local # On the stack that `up` has started
schedules pause digest morning # No more tasks of this schedule of the agent digest
schedules resume digest morning --stack my-agents # From its next time on
schedules run digest morning # Now, and once
keys show # Which key signs, and since when
keys rotate # Before the next scheduled rotation
keys revoke KID # After a key has leaked: the next one signs at once
"""
_EXAMPLES: Final = [line.split(" # ") for line in _LINES.splitlines()]
COMMAND_LINES: Final = tuple(line for line, _ in _EXAMPLES)


def _examples(command: str) -> str:
    examples = [(line, why) for line, why in _EXAMPLES if f"{line} ".startswith(f"{command} ")]
    lines = (f"[dim]# {_escape(why)}[/dim]\na2a-serverless {_escape(line)}" for line, why in examples)
    return "\n\n".join(["[bold]Examples[/bold]", *lines])


def _print_version(ctx: typer.Context, *, value: bool) -> None:
    if value:
        _write_version(ctx.obj)
        raise typer.Exit


def _write_version(cli: CliContext | None) -> None:
    write = cli.terminal.raw if cli else sys.stdout.write
    write(f"a2a-serverless {version('a2a-serverless')}\n")


Version = Annotated[bool, typer.Option(VERSION, help="Print the version.", callback=_print_version, is_eager=True)]


def _options(*, version: Version = False) -> None:
    del version  # its callback has printed it


def _no_options() -> None:
    """Stands for the options of all commands."""


def load(path: str) -> Callable[..., None]:
    """The function of a command: a function of a module of this package, imported only now."""
    module, _, name = path.partition(".")
    function: Callable[..., None] = getattr(import_module(f"{__package__}.{module}"), name)
    return function


def make_app(words: Sequence[str] | None = None, *, completes: bool = False) -> typer.Typer:
    """The commands. With the beginning of a command line, only its command is imported, if it names one.

    The others have their names and texts then, without options. A shell that ``completes`` a word needs no help page,
    and options only if the line has one: for each option typer imports pydantic.
    """
    has_options = not completes or _names_option(words or [])
    app = typer.Typer(
        add_completion=has_options,
        context_settings={} if has_options else {"help_option_names": []},
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None if completes else "rich",
        help="Run agents on AWS Lambda and talk A2A to them: on this machine, or in your account.",
        epilog="Every command takes --json. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the task did not complete, "
        "4 the task waits for you.",
    )
    app.callback()(_options if has_options else _no_options)
    groups = {"": app}
    for panel, commands in COMMANDS.items():
        for name, path in commands.items():
            group, _, word = name.rpartition(" ")
            if group not in groups:
                groups[group] = typer.Typer(no_args_is_help=True, help=GROUPS[group])
                app.add_typer(groups[group], name=group, rich_help_panel=panel)
            is_loaded = words is None or [*words[: len(name.split())]] == name.split()
            # A key's id may begin with a hyphen, like an option (RFC 7638: base64url).
            settings = {"ignore_unknown_options": name == "keys revoke"}
            register = groups[group].command(
                word,
                help=_text_of(path) if completes else _escape(_text_of(path)),
                epilog="" if completes else _examples(name),
                rich_help_panel=None if group else panel,
                context_settings=settings,
            )
            register(_as_command(load(path)) if is_loaded else _not_loaded)
    return app


@cache
def _module_texts(module: str) -> dict[str, str]:
    """The docstring of each function of a module of this package, which is not imported."""
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_bytes())
    return {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)}


def _text_of(path: str) -> str:
    module, _, name = path.partition(".")
    return _module_texts(module)[name]


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _not_loaded() -> None:
    """Stands for a command that the command line does not name."""


def _as_command(function: Callable[..., None]) -> Callable[..., None]:
    from a2a_serverless_tools.cli.options import as_command

    return as_command(function)


def run(arguments: Sequence[str] | None = None, cli: CliContext | None = None) -> None:
    """Run a command line; always ends with SystemExit."""
    given = [*(sys.argv[1:] if arguments is None else arguments)]
    if COMPLETE in os.environ:
        completion_init()  # typer itself calls it only with the options that install the completion
        app = make_app(_words_to_complete(os.environ), completes=True)
        # Without it typer imports rich's Markdown, a third of the time, to remove markup that no text here has.
        sys.modules["rich"] = None  # type: ignore[assignment] # Python's own mark of a module that cannot be imported
        app(given, prog_name="a2a-serverless")
    if given == [VERSION]:
        _write_version(cli)
        sys.exit()
    from a2a_serverless_tools.cli.options import CliContext, WrongUsage

    cli = cli or CliContext()
    try:
        make_app(given if _names_command(given) else None)(given, obj=cli)
    except Exception as error:
        from a2a_serverless_tools.cli.errors import explain

        explained = explain(error, cli)
        if explained is None:
            raise
        cli.terminal.fail(explained)
        sys.exit(2 if isinstance(error, WrongUsage) else 1)


def _names_command(words: Sequence[str]) -> bool:
    """Whether a command line begins with a command, and not with an option of all or a word that is wrong."""
    return any([*words[: len(name.split())]] == name.split() for commands in COMMANDS.values() for name in commands)


def _names_option(words: Sequence[str]) -> bool:
    """Whether the last word begins like an option, or a command's arguments may come."""
    return bool(words and words[-1].startswith("-")) or _names_command(words)


def _words_to_complete(environment: Mapping[str, str]) -> list[str]:
    """The words of the command line that a shell wants to have completed, without the program's."""
    return (environment.get("COMP_WORDS") or environment.get("_TYPER_COMPLETE_ARGS") or "").split()[1:]
