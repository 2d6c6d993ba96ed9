"""Stores in memory that only tests need, besides those of ``a2a_serverless.testing.memory``."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from a2a_serverless.store.api_keys import ApiKeyStore
from a2a_serverless.store.stores import OwnerStore
from a2a_serverless.testing.memory import MemoryTable

if TYPE_CHECKING:
    from collections.abc import Callable


class MemoryOwnerStore(OwnerStore):
    """The limits and counters of owners, in memory."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__(MemoryTable(now))


class MemoryApiKeyStore(ApiKeyStore):
    """API keys, in memory."""

    def __init__(self) -> None:
        super().__init__(MemoryTable(lambda: 0))


class MemoryServiceTokenSealer:
    """Opens only what it sealed itself."""

    def __init__(self) -> None:
        self._sealed: dict[bytes, str] = {}

    def seal(self, claims: str) -> bytes:
        sealed = hashlib.sha512(f"{len(self._sealed)}\n{claims}".encode()).digest()
        self._sealed[sealed] = claims
        return sealed

    def open(self, sealed: bytes) -> str:
        if sealed not in self._sealed:
            raise ValueError("not sealed here")
        return self._sealed[sealed]
