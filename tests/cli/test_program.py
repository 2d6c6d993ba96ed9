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


def test_it_says_its_version() -> None:
    assert run("--version").stdout == f"a2a-serverless {version('a2a-serverless')}\n"


def test_bash_completes_commands() -> None:
    variables = {"_A2A_SERVERLESS_COMPLETE": "complete_bash", "COMP_WORDS": "a2a-serverless ca", "COMP_CWORD": "1"}
    assert set(run(**variables).stdout.split()) == {"cancel", "callers", "cards"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_commands(shell: str) -> None:
    variables = {"_A2A_SERVERLESS_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "a2a-serverless ca"}
    said = run(**variables, _TYPER_COMPLETE_FISH_ACTION="get-args").stdout
    assert all(name in said for name in ("cancel", "callers", "cards"))


def test_without_a_region_it_says_how_to_set_one() -> None:
    done = run("push", "list")
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "no AWS region is set.")
    assert "what helps: set AWS_DEFAULT_REGION" in done.stderr


def test_without_credentials_it_says_how_to_sign_in() -> None:
    done = run("keys", "show", AWS_DEFAULT_REGION="eu-central-1")
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "there are no AWS credentials.")
    assert "what helps: set AWS_PROFILE" in done.stderr


def test_it_does_not_erase_without_a_terminal_to_ask_on() -> None:
    done = run("erase", "owner", "default/alice")
    assert done.returncode == 2
    assert "add --yes" in done.stderr
