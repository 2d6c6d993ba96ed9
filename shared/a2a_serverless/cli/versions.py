"""The command that shows and saves the versions of the artifacts in a conversation."""

from typing import Annotated

import typer

from a2a_serverless.cli.formatting import as_json, moment, size_words
from a2a_serverless.cli.options import LOCAL_URL, Agent, CliContext, Url, find
from a2a_serverless.cli.tasks import Out, save_artifacts
from a2a_serverless.client.versions import Version
from a2a_serverless.client.versions import versions as versions_of
from a2a_serverless.domain.model import Json

ContextId = Annotated[str, typer.Argument(help="The conversation's id.", metavar="CONTEXT", show_default=False)]
Name = Annotated[str | None, typer.Option(help="Only the artifact of this name.", metavar="NAME")]


def versions(
    cli: CliContext, agent: Agent, context: ContextId, *, name: Name = None, out: Out = None, url: Url = LOCAL_URL
) -> None:
    """Show the versions of the artifacts in a conversation, the oldest first. The agent must speak A2A 1.0.

    A refinement is a new task, so old versions stay. --out saves each with its number in front: v1.boat.png.
    """
    made = versions_of(find(cli, url, agent).client, context)
    wanted = {key: made[key] for key in made if name in {None, key}}
    if cli.terminal.json:
        cli.terminal.data({key: [_printed(one) for one in wanted[key]] for key in wanted})
    elif not wanted:
        there = f"No artifact has that name. There are: {', '.join(made)}."
        cli.terminal.note(there if made else "This conversation has no artifacts.")
    else:
        for key, found in wanted.items():
            cli.terminal.rows([(f"{key} {one.number}", _words(one)) for one in found])
    for one in (one for found in wanted.values() for one in found):
        save_artifacts(cli, [one.artifact], out, f"v{one.number}.")


def _words(one: Version) -> str:
    return f"{moment(one.at)}  {size_words(one.artifact)}  task {one.task_id}"


def _printed(one: Version) -> Json:
    return {"version": one.number, "taskId": one.task_id, "at": moment(one.at), "artifact": as_json(one.artifact)}
