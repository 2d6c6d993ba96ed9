import inspect
import shlex

import pytest
import typer

from a2a_serverless_tools.cli.app import COMMAND_LINES, load, make_app
from a2a_serverless_tools.cli.app import COMMANDS as PANELS
from tests.cli.shell import Shell
from tests.client.deployment import Deployment

COMMANDS = typer.main.get_command(make_app())


def names() -> list[str]:
    """Every command, groups written out."""
    found = []
    for name, command in COMMANDS.commands.items():  # type: ignore[attr-defined]
        found += [f"{name} {inner}" for inner in command.commands] if hasattr(command, "commands") else [name]
    return found


def test_every_command_has_examples_and_every_example_a_command() -> None:
    assert {name for name in names() for line in COMMAND_LINES if f"{line} ".startswith(f"{name} ")} == {*names()}


@pytest.mark.parametrize("name", names())
def test_every_command_shows_its_examples_and_takes_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert Shell(Deployment()).run(*name.split(), "--help").code == 0
    shown = capsys.readouterr().out
    assert "Examples" in shown
    assert "--json" in shown


@pytest.mark.parametrize(("name", "path"), [pair for panel in PANELS.values() for pair in panel.items()])
def test_help_shows_every_word_also_in_square_brackets(
    name: str,
    path: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "500")  # so that no cell of a table breaks a word
    function = load(path)
    options = inspect.signature(function, eval_str=True).parameters.values()
    helps = [about.help for option in options for about in getattr(option.annotation, "__metadata__", ())]
    lines = [line for line in COMMAND_LINES if f"{line} ".startswith(f"{name} ")]
    Shell(Deployment()).run(*name.split(), "--help")
    shown = capsys.readouterr().out.split()
    assert {word for text in (inspect.getdoc(function), *helps, *lines) for word in str(text).split()} <= {*shown}


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_every_example_is_a_command_line_that_parses(line: str) -> None:
    command, words = COMMANDS, shlex.split(line)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    assert command.make_context("test", words, resilient_parsing=False) is not None


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert Shell(Deployment()).run().code == 2
    assert "Exit codes" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["--port", "--api-port"])
@pytest.mark.parametrize("command", ["up", "dev"])
def test_the_port_of_the_agents_has_the_same_names_everywhere(command: str, name: str) -> None:
    arguments = [name, "9000"]
    given = COMMANDS.commands[command].make_context("test", arguments).params  # type: ignore[attr-defined]
    assert 9000 in given.values()
