"""The command ``rehearse``: what the code of this folder would do to the tasks that wait or run."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

import typer

from a2a_serverless.client import ClientRequest, HttpError
from a2a_serverless.protocol.strict_json import ANSWER_LIMITS, loads
from a2a_serverless_tools.cli.options import CliContext, Local, StackContext, UserError
from a2a_serverless_tools.cli.terminal import Explained, plain
from a2a_serverless_tools.dev import SAMPLES
from a2a_serverless_tools.operators.deployed import StackName

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.testing.rehearsal_report import Rehearsal

SHOWN = 20
SECONDS = 600.0
"""So long ``dev`` may play its tasks."""

Stack = Annotated[
    str,
    typer.Option(help="The CloudFormation stack; by default the tasks of the running `dev`.", show_default=False),
]
Show = Annotated[
    bool, typer.Option("--show", help="Show names that are not in the code, texts of errors, and what agents print.")
]
Samples = Annotated[
    int,
    typer.Option(
        help="So many tasks of an agent that wait for the same, and ran with the same code, are played at most.", min=1
    ),
]


class NoDev(UserError):
    """The server of this project is not ``dev``."""


def rehearse(
    cli: CliContext, *, stack: Stack = "", local: Local = False, show: Show = False, samples: Samples = SAMPLES
) -> None:
    """Play the logs of tasks that wait or run against the code of this folder. Exit code 1: some would be hurt.

    No step works, nothing is written. It says which tasks would fail, or do again what they have done, and why.
    """
    if stack or local:
        rehearsals = [*of_stack(cli, StackContext(cli, stack, local).name, samples=samples, shows=show)]
    else:
        rehearsals = _of_dev(cli, samples=samples, shows=show)
    counts = Counter(rehearsal.verdict for rehearsal in rehearsals)
    if cli.terminal.json:
        forms: list[JsonObject] = [rehearsal.json_form() for rehearsal in rehearsals]
        cli.terminal.data({"counts": {str(verdict): count for verdict, count in counts.items()}, "tasks": [*forms]})
    else:
        for text in texts_of(rehearsals):
            cli.terminal.raw(f"{text}\n")
        cli.terminal.note(summary_of(rehearsals))
    if any(verdict.is_red for verdict in counts):
        raise typer.Exit(1)


def of_stack(
    cli: CliContext, stack: StackName, *, samples: int = SAMPLES, shows: bool = False
) -> "Iterator[Rehearsal]":
    """Plays tasks of a deployed stack against the code of this folder."""
    from a2a_serverless.testing.rehearsal import sample
    from a2a_serverless_tools.dev.rehearsals import ProjectNotLoaded, rehearse_tasks

    root = cli.paths().root
    try:
        with cli.terminal.waiting(f"Reading the tasks of {stack.name}"):
            yield from rehearse_tasks(root, sample(cli.unfinished_tasks(stack), samples), shows=shows)
    except ProjectNotLoaded as error:
        raise _not_loaded(cli, f"{error.text}{error}") from error


def _of_dev(cli: CliContext, *, samples: int, shows: bool) -> "list[Rehearsal]":
    from a2a_serverless.testing.rehearsal_report import Rehearsal

    url = f"{cli.local_url(cli.environment)}/rehearsals"
    options = json.dumps({"samples": samples, "show": shows}).encode()
    with cli.request(ClientRequest(url, {"Content-Type": "application/json"}, options, SECONDS)) as answer:
        status, content = answer.status, answer.body.read(ANSWER_LIMITS.body + 1)
    if status not in {HTTPStatus.OK, HTTPStatus.CONFLICT}:
        refused = HttpError(status, "")
        raise NoDev(f"There is no `dev` at {url} ({refused}).", f"start `{cli.program} dev`, or name a --stack")
    document: Any = loads(content, ANSWER_LIMITS)
    if status == HTTPStatus.CONFLICT:
        raise _not_loaded(cli, str(document["error"]))
    return [Rehearsal.of(form) for form in document]


def _not_loaded(cli: CliContext, text: str) -> typer.Exit:
    cli.terminal.fail(Explained("AgentsNotLoaded", text))
    return typer.Exit(1)


def texts_of(rehearsals: "Iterable[Rehearsal]") -> Iterator[str]:
    """The texts of those that do not fit, the worst first, ``SHOWN`` at most."""
    from a2a_serverless.testing.rehearsal_report import RehearsalVerdict

    order = [*RehearsalVerdict]
    others = sorted((one for one in rehearsals if one.verdict != "fits"), key=lambda one: order.index(one.verdict))
    yield from (plain(str(one)) for one in others[:SHOWN])
    if len(others) > SHOWN:
        yield f"and {len(others) - SHOWN} more: --json has all of them"


def summary_of(rehearsals: "Iterable[Rehearsal]") -> str:
    """How many tasks have which verdict."""
    counts = Counter(str(rehearsal.verdict) for rehearsal in rehearsals)
    if not counts:
        return "No task waits or runs."
    return f"{sum(counts.values())} tasks were played: " + ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
