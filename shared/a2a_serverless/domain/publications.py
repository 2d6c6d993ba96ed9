"""The names of the documents that a deployment publishes."""

from __future__ import annotations

from typing import Final

JWKS: Final = "jwks"
AGENTS: Final = "agents"
CATALOG: Final = "ai-catalog"
CATALOG_MEDIA_TYPE: Final = "application/ai-catalog+json"


def card_name(agent_id: str) -> str:
    """The document name of an agent's card."""
    return f"card/{agent_id}"


def extended_card_name(agent_id: str) -> str:
    """The document name of the card for authenticated callers."""
    return f"extended-card/{agent_id}"


def legacy_card_name(agent_id: str) -> str:
    """The document name of the card for clients older than 0.3."""
    return f"legacy-card/{agent_id}"
