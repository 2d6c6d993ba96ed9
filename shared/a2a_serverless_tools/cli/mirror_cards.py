"""The command ``cards refresh``: compares the cards of the project's mirrors with those of their remote agents."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from a2a_serverless.adapters.agent_secrets import secrets_in_environment
from a2a_serverless.adapters.remote_auth import RemoteAuth
from a2a_serverless.client import discover
from a2a_serverless.domain.origins import origin_of
from a2a_serverless.domain.remotes import Remote
from a2a_serverless_tools.cli.options import CliContext, WrongUsage
from a2a_serverless_tools.project_check import mirrors_here

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json

DRIFT = 1
REMOTE = "A2A_REMOTE_AUTHORIZATION"
SIGNATURES = "signatures"  # they differ each time that a card is signed

Write = Annotated[bool, typer.Option("--write", help="Store the cards as they are now.")]


@dataclass(frozen=True, slots=True)
class MirrorCard:
    """The card of a mirror's remote agent: as served, and the members in which the project's file differs."""

    agent: str
    file: str
    document: Mapping[str, Any]
    changed: list[str]

    def write(self) -> None:
        """Stores the card in the file."""
        text = json.dumps(self.document, indent=2, ensure_ascii=False)
        Path(self.file).write_text(f"{text}\n", "utf-8")


def compare(cli: CliContext, mirrors: list[tuple[str, Remote]]) -> Iterator[MirrorCard]:
    """Reads the card of each remote agent, with its mirror's credentials.

    A2A_REMOTE_AUTHORIZATION is for the mirrors without credentials. Raises WrongUsage if they have several origins,
    else what ``discover`` raises.
    """
    _check_origins(cli, mirrors)
    for agent, remote in mirrors:
        auth = RemoteAuth(remote.auth, secrets_in_environment(cli.environment))
        read = auth.wrap(cli.request, remote.card_url) if remote.auth else cli.with_variable(REMOTE, remote.card_url)
        document = discover(remote.card_url, read).document
        copy = json.loads(Path(remote.card_file).read_text("utf-8"))
        names = sorted({*document, *copy} - {SIGNATURES})
        differences = [name for name in names if document.get(name) != copy.get(name)]
        yield MirrorCard(agent, remote.card_file, document, differences)


def _check_origins(cli: CliContext, mirrors: list[tuple[str, Remote]]) -> None:
    origins = sorted({origin_of(remote.card_url) for _, remote in mirrors if remote.auth is None})
    if REMOTE in cli.environment and len(origins) > 1:
        text = f"{REMOTE} is for one origin, and the mirrors without credentials have several: {', '.join(origins)}."
        raise WrongUsage(text, "auth= of each mirror (docs/mirror.md)")


def refresh_cards(cli: CliContext, *, write: Write = False) -> None:
    """Compare the project's copies of remote agents' cards with those that the agents serve now.

    Run it in the project's folder. The credentials are those of the mirrors; secrets are in variables such as
    A2A_SECRET_WEATHER. The exit code is 1 if a card has changed, and was not stored.
    """
    cards = [*compare(cli, mirrors_here())]
    for card in cards if write else ():
        card.write()
    rows = [[card.agent, card.file, ", ".join(card.changed) or "nothing"] for card in cards]
    items: list[Json] = [{"agent": card.agent, "file": card.file, "changed": [*card.changed]} for card in cards]
    cli.terminal.table(items, ("MIRROR", "CARD", "CHANGED"), rows)
    if not cards:
        cli.terminal.note("The project has no mirrors: `mirror(...)` makes one (docs/mirror.md).")
    elif any(card.changed for card in cards) and not write:
        cli.terminal.note(f"To take the cards as they are now: {cli.program} cards refresh --write")
        raise typer.Exit(DRIFT)
