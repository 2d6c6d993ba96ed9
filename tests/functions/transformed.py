"""What CloudFormation gets to see: template.yaml with what SAM's translator makes of it."""

import atexit
import json
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any

import pytest

from a2a_serverless_tools.stack import paths
from tests.functions.template import ROOT, template

PATHS = paths.find(ROOT)

PROGRAM = """
import json, sys
from samtranslator.translator.transform import transform
for line in sys.stdin:
    print(json.dumps(transform(*json.loads(line), lambda: {})), flush=True)
"""


def transformed(**parameters: str) -> dict[str, Any]:
    """The whole document, as it comes out with these parameters."""
    return json.loads(_transformed(tuple(parameters.items())))  # type: ignore[no-any-return]


@cache
def _transformed(parameters: tuple[tuple[str, str], ...]) -> str:
    return transform(template(), dict(parameters))


def transform(document: dict[str, Any], parameters: dict[str, str], uploaded: str = "s3://bucket/uploaded") -> str:
    """What SAM's translator makes of a template, as JSON; ``uploaded`` is where the zips are."""
    source = json.loads(json.dumps(document))
    for resource in source["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = uploaded
    asked, answered = _translator()
    asked.write(json.dumps([source, parameters]) + "\n")
    asked.flush()
    line = answered.readline()
    assert line, "SAM's translator has ended; its error is above"
    return line


@cache
def _translator() -> tuple[IO[str], IO[str]]:
    """SAM's translator, which takes longer to start than to answer: where it is asked, and where it answers."""
    python = python_of(PATHS.sam)
    environment = {**os.environ, "AWS_DEFAULT_REGION": "us-east-1"}
    pipes = subprocess.Popen(  # noqa: S603 - SAM's, by path
        [python, "-c", PROGRAM], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert pipes.stdin
    assert pipes.stdout
    atexit.register(pipes.__exit__, None, None, None)
    return pipes.stdin, pipes.stdout


def python_of(program: Path) -> Path:
    """The Python of a program's environment in this checkout. Without it the test is skipped, but not in CI."""
    python = program.with_name("python")
    if not python.exists() and "CI" not in os.environ:
        pytest.skip(f"{PATHS.relative(program)} is not installed (make setup)")
    return python


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    """Resources of a type, by logical id."""
    return {name: one for name, one in transformed()["Resources"].items() if one["Type"] == kind}


def statements() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every statement of every role, whichever way its conditions go, with the role's logical id."""
    for name, role in of_type("AWS::IAM::Role").items():
        for policy in role["Properties"].get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                yield from ((name, one) for one in _branches(statement))


def _branches(statement: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "Fn::If" not in statement:
        yield statement
        return
    for branch in statement["Fn::If"][1:]:
        if branch != {"Ref": "AWS::NoValue"}:
            yield from _branches(branch)
