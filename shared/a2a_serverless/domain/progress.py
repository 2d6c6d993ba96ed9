"""How far a task is: a percentage in the metadata of a progress message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject

METADATA_KEY: Final = "a2a-serverless/percent"
"""The member of a message's metadata that holds the percentage."""
WHOLE: Final = 100


def with_percent(metadata: JsonObject | None, percent: float | None) -> JsonObject | None:
    """A message's metadata with the percentage, if there is one. Raises ValueError outside of 0 to 100."""
    if percent is None:
        return metadata
    if not 0 <= percent <= WHOLE:
        raise ValueError(f"progress is from 0 to {WHOLE} percent, not {percent}")
    return {**(metadata or {}), METADATA_KEY: percent}


def percent_of(metadata: JsonObject | None) -> float | None:
    """The percentage in a message's metadata; None if it has none. Another agent may have written any value."""
    percent = (metadata or {}).get(METADATA_KEY)
    return percent if isinstance(percent, int | float) and 0 <= percent <= WHOLE else None
