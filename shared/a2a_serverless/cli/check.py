"""The command that checks a deployment from outside, for its owner after a deploy."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from a2a_serverless.cli.operator_commands import NAME, Local, stack_meant
from a2a_serverless.cli.options import LOCAL_URL, CliContext, Json, context_of

if TYPE_CHECKING:
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
    ctx: typer.Context,
    url: Where = LOCAL_URL,
    *,
    agent: AgentId = "",
    text: Says = "",
    receiver: ReceiverUrl = "",
    stack: StackWith = "",
    rotate: Rotate = False,
    buffered: Buffered = False,
    timeout: Timeout = 120,
    _local: Local = False,
    _json: Json = False,
) -> None:
    """Check your deployment from outside: one line for each check, with what to do if it fails.

    It sends a few tasks in your name (A2A_AUTHORIZATION) and changes nothing else, except that --rotate rotates the
    signing keys. Checks that need more options or credentials are skipped, with a line that says what they need.
    """
    from a2a_serverless.cli.checks import TEXT, CheckOptions, CheckRun

    cli = context_of(ctx)
    inside = stack_meant(ctx, stack or NAME) if stack or _local else None
    if rotate and inside is None:
        raise typer.BadParameter("--rotate needs --stack NAME: the keys are rotated from inside")
    run = CheckRun(cli, CheckOptions(url, agent, text or TEXT, receiver, inside, rotate, buffered, timeout))
    lines = []
    for line in _lines(cli, run):
        lines.append(asdict(line))
        if not cli.terminal.json:
            _tell(cli, line)
    counts = {verdict: sum(line["verdict"] == verdict for line in lines) for verdict in STYLES}
    if cli.terminal.json:
        cli.terminal.data({"url": url, "checks": [*lines], "counts": {**counts}})
    else:
        cli.terminal.note(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    raise typer.Exit(FAILED if counts["FAIL"] else 0)


def _lines(cli: CliContext, run: "CheckRun") -> "Iterator[CheckResult]":
    """Yields each check's result as soon as it is known; stderr shows which check is running."""
    from a2a_serverless.cli.checks import CHECKS, run_check

    err = cli.terminal.err
    for name in CHECKS:
        if not err.is_terminal:
            cli.terminal.note(f"  {name} …")
        with err.status(name):
            line = run_check(run, name)
        yield line


def _tell(cli: CliContext, line: "CheckResult") -> None:
    out = cli.terminal.out
    after = f" ({line.seconds:.1f} s)" if line.seconds >= SHOWN_S else ""
    words = Text.assemble((line.verdict, STYLES[line.verdict]), f"  {line.name:{WIDTH}}  {line.text}{after}")
    out.print(words, soft_wrap=True)
    if line.remedy:
        out.print(Text(f"{'':6}{'':{WIDTH}}  what helps: {line.remedy}"), soft_wrap=True)
