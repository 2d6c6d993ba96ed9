"""The commands that show agents: which there are, and what each says about itself."""

import typer

from a2a_serverless.cli.options import LOCAL_URL, Agent, Json, Url, find, world_of
from a2a_serverless.cli.show import card_rows
from a2a_serverless.cli.terminal import one_line
from a2a_serverless.client import agents_of
from a2a_serverless.domain.model import JsonObject

LONGEST = 80


def list_cards(ctx: typer.Context, *, url: Url = LOCAL_URL, _json: Json = False) -> None:
    """List the agents of a deployment."""
    world = world_of(ctx)
    agents = agents_of(url, world.transport, world.headers)
    if world.terminal.json:
        world.terminal.data([*agents])
    else:
        world.terminal.rows(
            [(_word(agent, "id"), f"{_word(agent, 'name')}  {_word(agent, 'url')}") for agent in agents]
        )


def show_card(ctx: typer.Context, agent: Agent, *, url: Url = LOCAL_URL, _json: Json = False) -> None:
    """Show an agent's card. With --json as it was served, signatures included."""
    world = world_of(ctx)
    found = find(world, url, agent)
    if world.terminal.json:
        world.terminal.data(found.document)
    else:
        world.terminal.rows(card_rows(found.card, found.client.url))


def _word(agent: JsonObject, name: str) -> str:
    return one_line(str(agent.get(name, "")), LONGEST)
