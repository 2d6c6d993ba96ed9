"""The commands that list agents and show their cards."""

import typer

from a2a_serverless.cli.formatting import card_rows
from a2a_serverless.cli.options import LOCAL_URL, Agent, Json, Url, context_of, find
from a2a_serverless.cli.terminal import one_line
from a2a_serverless.client import agents_of
from a2a_serverless.domain.model import JsonObject

LONGEST = 80


def list_cards(ctx: typer.Context, *, url: Url = LOCAL_URL, _json: Json = False) -> None:
    """List the agents of a deployment."""
    cli = context_of(ctx)
    agents = agents_of(url, cli.transport, cli.headers)
    if cli.terminal.json:
        cli.terminal.data([*agents])
    else:
        cli.terminal.rows([(_word(agent, "id"), f"{_word(agent, 'name')}  {_word(agent, 'url')}") for agent in agents])


def show_card(ctx: typer.Context, agent: Agent, *, url: Url = LOCAL_URL, _json: Json = False) -> None:
    """Show an agent's card. With --json as it was served, signatures included."""
    cli = context_of(ctx)
    found = find(cli, url, agent)
    if cli.terminal.json:
        cli.terminal.data(found.document)
    else:
        cli.terminal.rows(card_rows(found.card, found.client.url))


def _word(agent: JsonObject, name: str) -> str:
    return one_line(str(agent.get(name, "")), LONGEST)
