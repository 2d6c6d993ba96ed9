"""The command that shows and saves the versions of the artifacts in a conversation."""

from pathlib import Path
from typing import Annotated

import typer

from a2a_serverless.cli.files import save
from a2a_serverless.cli.formatting import artifact_json, moment, size_words
from a2a_serverless.cli.options import LOCAL_URL, Agent, CliContext, Json, Url, context_of, find
from a2a_serverless.cli.tasks import Out
from a2a_serverless.client.files import download
from a2a_serverless.client.versions import Version
from a2a_serverless.client.versions import versions as versions_of
from a2a_serverless.domain import model

ContextId = Annotated[str, typer.Argument(help="The conversation's id.", metavar="CONTEXT", show_default=False)]
Name = Annotated[str | None, typer.Option(help="Only the artifact of this name.", metavar="NAME")]


def versions(
    ctx: typer.Context,
    agent: Agent,
    context: ContextId,
    *,
    name: Name = None,
    out: Out = None,
    url: Url = LOCAL_URL,
    _json: Json = False,
) -> None:
    """Show the versions of the artifacts in a conversation, the oldest first. The agent must speak A2A 1.0.

    A refinement is a new task, so old versions stay. --out saves each with its number in front: v1.boat.png.
    """
    cli = context_of(ctx)
    made = versions_of(find(cli, url, agent).client, context)
    wanted = {key: made[key] for key in made if name in {None, key}}
    if cli.terminal.json:
        cli.terminal.data({key: [_json_of(one) for one in wanted[key]] for key in wanted})
    elif not wanted:
        cli.terminal.note(_nothing(list(made)))
    for key, found in wanted.items():
        _show(cli, key, found)
    if out:
        _save(cli, [one for found in wanted.values() for one in found], out)


def _save(cli: CliContext, found: list[Version], out: Path) -> None:
    for one in found:
        for path in save([one.artifact], out, f"v{one.number}.", lambda url: download(url, cli.transport)):
            cli.terminal.note(f"Saved {path}")


def _show(cli: CliContext, name: str, found: tuple[Version, ...]) -> None:
    if not cli.terminal.json:
        cli.terminal.rows([(f"{name} {one.number}", _words(one)) for one in found])


def _words(one: Version) -> str:
    return f"{moment(one.at)}  {size_words(one.artifact)}  task {one.task_id}"


def _json_of(one: Version) -> model.Json:
    return {"version": one.number, "taskId": one.task_id, "at": moment(one.at), "artifact": artifact_json(one.artifact)}


def _nothing(names: list[str]) -> str:
    return (
        f"No artifact has that name. There are: {', '.join(names)}." if names else "This conversation has no artifacts."
    )
