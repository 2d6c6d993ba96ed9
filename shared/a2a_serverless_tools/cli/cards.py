"""The commands ``cards list``, ``cards search`` and ``cards show``: what agents there are, and what each can do."""

from typing import Annotated

import typer

from a2a_serverless.protocol.protojson import as_json
from a2a_serverless_tools.cli.catalog import CatalogReader
from a2a_serverless_tools.cli.formatting import card_rows
from a2a_serverless_tools.cli.options import Agent, CliContext, Url, agents_at, find
from a2a_serverless_tools.cli.terminal import one_line

LONGEST = 80
LONGEST_REASON = 240
MOST_SKIPPED = 10

Words = Annotated[
    list[str] | None,
    typer.Argument(help="Words that name, description or tags contain; all of them.", metavar="[WORD]..."),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag or the id of a skill. Repeatable.", metavar="TAG")]


def list_cards(cli: CliContext, *, url: Url = "") -> None:
    """List the agents of a deployment."""
    agents = agents_at(cli, url)
    words = [[one_line(str(agent.get(name, "")), LONGEST) for name in ("id", "name", "url")] for agent in agents]
    cli.terminal.table([*agents], ("AGENT", "NAME", "URL"), words)


def search_cards(cli: CliContext, words: Words = None, *, tag: Tags = None, url: Url = "") -> None:
    """Search the agents of a deployment, or of any AI Catalog, by words, skills and tags.

    --url is a deployment, or the URL of a catalog (.json). Catalogs inside it are searched, too. What cannot be read is
    named and skipped. Signatures are not verified.
    """
    skipped: list[str] = []
    reader = CatalogReader(cli.url(url), cli.as_caller(url), lambda *parts: skipped.append(": ".join(parts)))
    entries = reader.read()
    results = reader.search(entries, words or (), tag or ())
    rows = [
        [one_line(cell, LONGEST) for cell in (one.name, ", ".join(one.tags), one.url or one.identifier)]
        for one in results
    ]
    cli.terminal.table([as_json(one) for one in results], ("NAME", "TAGS", "CARD"), rows)
    if not results:
        cli.terminal.note(f"None of {len(entries)} agents fits: {cli.program} cards search lists all of them.")
    for one in skipped[:MOST_SKIPPED]:
        cli.terminal.note(f"Not read: {one_line(one, LONGEST_REASON)}")
    if len(skipped) > MOST_SKIPPED:
        cli.terminal.note(f"Not read: {len(skipped) - MOST_SKIPPED} more.")


def show_card(cli: CliContext, agent: Agent, *, url: Url = "") -> None:
    """Show an agent's card. With --json as it was served, signatures included."""
    remote = find(cli, url, agent)
    cli.terminal.result(remote.document, card_rows(remote.card, remote.client.url))
