"""The operator's commands that pause and resume an agent, or an owner, of a deployed stack."""

import time
from typing import Annotated

import typer

from a2a_serverless.domain.model import JsonObject, Principal
from a2a_serverless.protocol.protojson import timestamp_text
from a2a_serverless.store.stores import agent_pause, owner_pause
from a2a_serverless_tools.cli.erase import parse_owner
from a2a_serverless_tools.cli.formatting import moment
from a2a_serverless_tools.cli.options import StackContext

Agent = Annotated[str, typer.Argument(help="An agent's id.", metavar="[AGENT]", show_default=False)]
Owner = Annotated[str, typer.Option(help="TENANT/OWNER, percent-encoded.", metavar="OWNER")]


def pause(stack: StackContext, agent: Agent = "", *, owner: Owner = "") -> None:
    """Stop the work of an agent or of an owner; without either, list what is paused.

    Within ten seconds nothing new begins, and each run suspends before its next step, call or question. New tasks are
    accepted and wait. Whether there is such an agent or owner is not checked.
    """
    if agent or owner:
        stack.operations.pauses.add_pause(_name(agent, owner), time.time_ns() // 1_000_000)
        stack.terminal.note(f"Tasks of {agent or owner} are accepted and wait. `resume` lets them go on.")
    pauses = stack.operations.pauses.list_pauses()
    rows = [[*name.split("#", 1), moment(at)] for name, at in pauses.items()]
    items: list[JsonObject] = [
        {"kind": kind.lower(), "name": name, "since": timestamp_text(at)}
        for (kind, name, _), at in zip(rows, pauses.values(), strict=True)
    ]
    stack.terminal.table({"paused": [*items]}, ("KIND", "NAME", "SINCE"), rows)
    if not pauses:
        stack.terminal.note("Nothing is paused.")


def resume(stack: StackContext, agent: Agent = "", *, owner: Owner = "") -> None:
    """Let the work of an agent or of an owner go on.

    Its tasks go on within a minute, or within as long as the pause took, up to an hour.
    """
    name = _name(agent, owner)
    was_paused = name in stack.operations.pauses.list_pauses()
    stack.operations.pauses.remove_pause(name)
    stack.terminal.result({"resumed": name.partition("#")[2]}, "")
    if was_paused:
        stack.terminal.note("Its tasks go on within a minute, or within as long as the pause took, up to an hour.")
    else:
        stack.terminal.note(f"{agent or owner} was not paused. `pause` lists what is paused.")


def _name(agent: str, owner: str) -> str:
    """The name of the pause. Raises BadParameter unless there is either an agent or an owner."""
    if bool(agent) == bool(owner):
        raise typer.BadParameter("name an agent, or an owner by --owner")
    return agent_pause(agent) if agent else owner_pause(Principal(*parse_owner(owner)))
