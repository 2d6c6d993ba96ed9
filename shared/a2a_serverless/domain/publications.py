"""The names of the documents that a deployment publishes: who serves them need not know how they are made."""

from __future__ import annotations

from typing import Final

JWKS: Final = "jwks"
AGENTS: Final = "agents"


def card_name(agent_id: str) -> str:
    """The name that an agent's card is published under."""
    return f"card/{agent_id}"


def extended_card_name(agent_id: str) -> str:
    """The name of the card that callers get who have signed in."""
    return f"extended-card/{agent_id}"


def legacy_card_name(agent_id: str) -> str:
    """The name of the card that clients from before 0.3 read."""
    return f"legacy-card/{agent_id}"
