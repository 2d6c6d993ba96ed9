"""The values of a task or conversation as its agent gets them (``domain.agent.KeyValueStore``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from a2a_serverless.domain.agent import StoredValue, VersionConflict
from a2a_serverless.domain.values import LIST_LIMIT, dump_value, encode_key, load_value
from a2a_serverless.ports.values import StoredText

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.values import ValueScope
    from a2a_serverless.engine.run_session import RunSession
    from a2a_serverless.ports.values import ValueStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunValues:
    """One run's access to the values of ``scope``. ``perform`` makes a store call after the run's waiting chunks."""

    store: ValueStore
    scope: ValueScope
    session: RunSession
    perform: Callable[[Callable[[], Any]], Awaitable[Any]]

    async def get(self, key: str) -> StoredValue | None:
        """See ``KeyValueStore.get``."""
        encode_key(key)
        found = await self.perform(lambda: self.store.get_value(self.scope, key))
        return _loaded(found) if found else None

    async def list(self, prefix: str = "", *, after: str = "", limit: int = 100) -> list[StoredValue]:
        """See ``KeyValueStore.list``."""
        most = max(1, min(limit, LIST_LIMIT))
        return [
            _loaded(one) for one in await self.perform(lambda: self.store.list_values(self.scope, prefix, after, most))
        ]

    async def put(self, key: str, value: Json | bytes, *, version: str | None = None) -> str:
        """See ``KeyValueStore.put``."""
        encode_key(key)
        text = dump_value(value)

        def write(head: Head, by: str) -> str | None:
            return self.store.put_value(head, self.scope, StoredText(key, text, by), version)

        return await self._write(key, write)

    async def delete(self, key: str, *, version: str | None = None) -> None:
        """See ``KeyValueStore.delete``."""
        encode_key(key)
        await self._write(key, lambda head, by: self.store.delete_value(head, self.scope, key, by, version))

    async def _write(self, key: str, write: Callable[[Head, str], str | None]) -> str:
        by, stored = await self.perform(lambda: self.session.write_value(write))
        if stored != by:
            raise VersionConflict(f"The value {key!r} has been changed meanwhile: read it again.")
        return str(stored)


def _loaded(found: StoredText) -> StoredValue:
    return StoredValue(found.key, load_value(found.text), found.version)
