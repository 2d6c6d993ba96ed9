"""The commands that list agents and show their cards."""

from a2a_serverless.cli.formatting import card_rows
from a2a_serverless.cli.options import LOCAL_URL, Agent, CliContext, Url, find
from a2a_serverless.cli.terminal import one_line
from a2a_serverless.client import agents_of

LONGEST = 80


def list_cards(cli: CliContext, *, url: Url = LOCAL_URL) -> None:
    """List the agents of a deployment."""
    agents = agents_of(url, cli.transport, cli.headers)
    words = [[one_line(str(agent.get(name, "")), LONGEST) for name in ("id", "name", "url")] for agent in agents]
    cli.terminal.result([*agents], [(agent, f"{name}  {where}") for agent, name, where in words])


def show_card(cli: CliContext, agent: Agent, *, url: Url = LOCAL_URL) -> None:
    """Show an agent's card. With --json as it was served, signatures included."""
    found = find(cli, url, agent)
    cli.terminal.result(found.document, card_rows(found.card, found.client.url))
