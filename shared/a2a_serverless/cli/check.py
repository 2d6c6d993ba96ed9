"""The command that checks a deployment from outside, for its owner after a deploy."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from a2a_serverless.cli.options import LOCAL_URL, STACK, CliContext, Local, StackContext

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.cli.checks import CheckResult, CheckRun

SHOWN_S = 0.1
FAILED = 1
STYLES = {"PASS": "green", "FAIL": "red", "SKIP": "yellow"}
WIDTH = 15

Where = Annotated[
    str, typer.Argument(envvar="A2A_URL", help="The URL of the deployment: the stack's output ApiUrl.", metavar="URL")
]
AgentId = Annotated[
    str, typer.Option("--agent", help="The agent to check; `document` or the first one by default.", metavar="ID")
]
Says = Annotated[str, typer.Option("--text", help="A text that makes the agent work for some seconds.", metavar="TEXT")]
ReceiverUrl = Annotated[
    str,
    typer.Option(
        "--receiver", help="A webhook receiver (webhook_receiver/) that the deployment can reach.", metavar="URL"
    ),
]
StackWith = Annotated[
    str,
    typer.Option(
        "--stack",
        envvar="A2A_STACK",
        help="Check this stack from inside, too, with your AWS credentials.",
        metavar="NAME",
    ),
]
Rotate = Annotated[bool, typer.Option("--rotate", help="Rotate the signing keys, too. Needs --stack.")]
Buffered = Annotated[bool, typer.Option("--buffered", help="Accept that answers are not streamed.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait for a task or its webhooks.", min=1)]


def check(  # noqa: PLR0913 - the options of a command
    cli: CliContext,
    url: Where = LOCAL_URL,
    *,
    agent: AgentId = "",
    text: Says = "",
    receiver: ReceiverUrl = "",
    stack: StackWith = "",
    rotate: Rotate = False,
    buffered: Buffered = False,
    timeout: Timeout = 120,
    local: Local = False,
) -> None:
    """Check your deployment from outside: one line for each check, with what to do if it fails.

    It sends a few tasks in your name (A2A_AUTHORIZATION) and changes nothing else, except that --rotate rotates the
    signing keys. Checks that need more options or credentials are skipped, with a line that says what they need.
    """
    from a2a_serverless.cli.checks import TEXT, CheckRun

    inside = StackContext(cli, stack or STACK, local).name if stack or local else None
    if rotate and inside is None:
        raise typer.BadParameter("--rotate needs --stack NAME: the keys are rotated from inside")
    run = CheckRun(cli, url, agent, text or TEXT, receiver, inside, rotate, buffered, timeout)
    results = []
    for result in _results(run):
        results.append(asdict(result))
        if not cli.terminal.json:
            _show(cli, result)
    counts = {verdict: sum(one["verdict"] == verdict for one in results) for verdict in STYLES}
    if cli.terminal.json:
        cli.terminal.data({"url": url, "checks": [*results], "counts": {**counts}})
    cli.terminal.note(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    raise typer.Exit(FAILED if counts["FAIL"] else 0)


def _results(run: "CheckRun") -> "Iterator[CheckResult]":
    """Yields each check's result as soon as it is known; stderr shows which check is running."""
    from a2a_serverless.cli.checks import CHECKS, run_check

    terminal = run.cli.terminal
    for name in CHECKS:
        if not terminal.err.is_terminal:
            terminal.note(f"  {name} …")
        with terminal.err.status(name):
            result = run_check(run, name)
        yield result


def _show(cli: CliContext, result: "CheckResult") -> None:
    out = cli.terminal.out
    after = f" ({result.seconds:.1f} s)" if result.seconds >= SHOWN_S else ""
    words = f"  {result.name:{WIDTH}}  {result.text}{after}"
    out.print(Text.assemble((result.verdict, STYLES[result.verdict]), words), soft_wrap=True)
    if result.remedy:
        out.print(Text(f"{'':6}{'':{WIDTH}}  what helps: {result.remedy}"), soft_wrap=True)
