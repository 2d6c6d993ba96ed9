"""The program as it is installed: its version, its completion, and its errors without an AWS account."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("a2a-serverless")


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The program without a terminal, in an environment without AWS settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "A2A_"))}
    files = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    return subprocess.run(  # noqa: S603 - our own program
        [PROGRAM, *arguments],
        env={**kept, **files, "AWS_EC2_METADATA_DISABLED": "true", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_program_prints_the_version_of_the_library() -> None:
    assert run("--version").stdout == f"a2a-serverless {version('a2a-serverless')}\n"


def test_bash_completes_the_names_of_commands() -> None:
    variables = {"_A2A_SERVERLESS_COMPLETE": "complete_bash", "COMP_WORDS": "a2a-serverless ca", "COMP_CWORD": "1"}
    assert set(run(**variables).stdout.split()) == {"cancel", "callers", "cards"}


IMPORTED = """
import sys
from a2a_serverless_tools.cli.app import run
try:
    run()
finally:
    sys.stderr.write(chr(10).join(sys.modules))
"""
HEAVY = {"boto3", "starlette", "fastapi", "pydantic", "rich.markup", "rich.markdown"}


def imported(prints: str, *arguments: str, **variables: str) -> set[str]:
    """The modules that the program has imported at its end, when it has printed a text with ``prints``."""
    command = [sys.executable, "-c", IMPORTED, *arguments]
    done = subprocess.run(  # noqa: S603 - our own program
        command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60, check=False
    )
    assert prints in done.stdout
    return {*done.stderr.splitlines()}


@pytest.mark.parametrize(
    ("prints", "arguments", "variables"),
    [
        ("0.", ["--version"], {}),
        (
            "callers",
            [],
            {"_A2A_SERVERLESS_COMPLETE": "complete_bash", "COMP_WORDS": "a2a-serverless ca", "COMP_CWORD": "1"},
        ),
        (
            "search",
            [],
            {"_A2A_SERVERLESS_COMPLETE": "complete_bash", "COMP_WORDS": "a2a-serverless cards ", "COMP_CWORD": "2"},
        ),
        ("callers", [], {"_A2A_SERVERLESS_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "a2a-serverless ca"}),
    ],
    ids=["version", "commands", "commands of a group", "zsh"],
)
def test_the_version_and_the_names_of_commands_need_no_module_of_a_command(
    prints: str, arguments: list[str], variables: dict[str, str]
) -> None:
    modules = imported(prints, *arguments, **variables)
    ours = {name for name in modules if name.startswith("a2a_serverless")}
    assert ours == {"a2a_serverless_tools", "a2a_serverless_tools.cli", "a2a_serverless_tools.cli.app"}
    assert not HEAVY & modules


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        (["send", "--help"], {}),
        ([], {"_A2A_SERVERLESS_COMPLETE": "complete_bash", "COMP_WORDS": "a2a-serverless send --f", "COMP_CWORD": "2"}),
        ([], {"_A2A_SERVERLESS_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "a2a-serverless send --f"}),
    ],
    ids=["help", "options", "zsh"],
)
def test_a_command_imports_no_test_harness_and_no_other_command(
    arguments: list[str], variables: dict[str, str]
) -> None:
    modules = imported("--file", *arguments, **variables)
    assert "a2a_serverless_tools.cli.tasks" in modules
    others = {f"a2a_serverless_tools.cli.{name}" for name in ("check", "operator_commands", "retries", "inbox")}
    assert not {"a2a_serverless.testing", "a2a_serverless.engine", "boto3", *others} & modules
    if variables:
        assert "rich.markdown" not in modules


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_the_names_of_commands(shell: str) -> None:
    variables = {"_A2A_SERVERLESS_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "a2a-serverless ca"}
    said = run(**variables, _TYPER_COMPLETE_FISH_ACTION="get-args").stdout
    assert all(name in said for name in ("cancel", "callers", "cards"))


def test_zsh_completes_the_options_of_all_commands_and_of_one() -> None:
    for line, option in (("--v", "--version"), ("send --da", "--data"), ("cards list --js", "--json")):
        said = run(_A2A_SERVERLESS_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=f"a2a-serverless {line}").stdout
        assert option in said, line


def test_fish_gets_each_option_on_one_line_with_the_text_of_its_help() -> None:
    variables = {"_A2A_SERVERLESS_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    lines = run(**variables, _TYPER_COMPLETE_ARGS="a2a-serverless send --").stdout.splitlines()
    assert all(line.startswith("--") for line in lines), lines
    binding = next(line for line in lines if line.startswith("--binding"))
    assert binding.endswith("by default the card decides, and JSON-RPC goes first.")


def test_without_a_region_it_says_how_to_set_one() -> None:
    done = run("push", "list")
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "no AWS region is set.")
    assert "what helps: set AWS_DEFAULT_REGION" in done.stderr


def test_a_command_without_aws_credentials_says_how_to_sign_in() -> None:
    done = run("keys", "show", AWS_DEFAULT_REGION="eu-central-1")
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "there are no AWS credentials.")
    assert "what helps: set AWS_PROFILE" in done.stderr


def test_erase_without_a_terminal_asks_for_the_option_yes() -> None:
    done = run("erase", "owner", "default/alice")
    assert done.returncode == 2
    assert "add --yes" in done.stderr
