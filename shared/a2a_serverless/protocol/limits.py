"""How much a client may ask of us at once. Everything that the codecs bound is here, so that it can be documented."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    """Lengths are characters; those of ``ident`` (part of a key), ``body`` and ``metadata`` (as JSON) are UTF-8 bytes.

    A model that is validated with limits as its context was sent by somebody else. Without a context it is our own:
    what an agent makes and what is read from the store is checked for its form and is not bounded.
    """

    body: int = 5_800_000  # 4 MiB in base64 and what is around it; Lambda takes 6 MB
    depth: int = 64
    parts: int = 256
    items: int = 64
    ident: int = 256
    name: int = 1024
    url: int = 2048
    secret: int = 4096
    metadata: int = 65_536
    violations: int = 16


LIMITS: Final = Limits()
# For the answers of other agents. A document of many chunks is one artifact with as many parts.
ANSWER_LIMITS: Final = Limits(body=16 * 1024 * 1024, parts=100_000, items=10_000, metadata=1024 * 1024)
