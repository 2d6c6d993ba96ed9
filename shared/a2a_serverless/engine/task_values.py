"""The values of a task or conversation for its agent (``domain.key_value_store.KeyValueStore``).

A value that another agent has stored for the conversation exists only for a caller who may read that agent. Only a
caller who may use that agent can replace it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from a2a_serverless.domain.access import FULL_SCOPE
from a2a_serverless.domain.key_value_store import StoredValue, VersionConflict
from a2a_serverless.domain.values import LIST_LIMIT, StoredText, dump_value, encode_key, load_value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless.domain.access import Access, Caller
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.values import ValueScope
    from a2a_serverless.engine.run_session import RunSession
    from a2a_serverless.store.value_store import ValueStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunValues:
    """One run's access to the values of ``scope``. ``perform`` makes a store call after the run's waiting chunks.

    ``identify`` returns the id of a write, from its content: the same in each run. It is the version of the stored
    value. So a run that repeats a write recognises that the write was done.
    """

    store: ValueStore
    scope: ValueScope
    session: RunSession
    perform: Callable[[Callable[[], Any]], Awaitable[Any]]
    identify: Callable[[Json], str]

    async def get(self, key: str) -> StoredValue | None:
        """See ``KeyValueStore.get``."""
        value = await self._find(key, "read")
        return _load(value) if value else None

    async def list(self, prefix: str = "", *, after: str = "", limit: int = 100) -> list[StoredValue]:
        """See ``KeyValueStore.list``."""
        if prefix:
            encode_key(prefix)
        most, values = min(limit, LIST_LIMIT), list[StoredText]()
        while len(values) < most:
            page = await self.perform(partial(self.store.list_values, self.scope, prefix, after, most))
            values += (value for value in page if self._caller.allows(value.agent, "read"))
            if len(page) < most:
                break
            after = page[-1].key
        return [_load(value) for value in values[:most]]

    async def put(self, key: str, value: Json | bytes, *, version: str | None = None) -> str:
        """See ``KeyValueStore.put``."""
        text = dump_value(value)
        await self._check_use(key)

        by = self.identify([self.scope.context_id, key, text, version])

        def write(head: Head) -> str | None:
            return self.store.put_value(head, self.scope, StoredText(key, text, by), version)

        return await self._write(key, by, write)

    async def delete(self, key: str, *, version: str | None = None) -> None:
        """See ``KeyValueStore.delete``."""
        await self._check_use(key)
        by = self.identify([self.scope.context_id, key, version])
        await self._write(key, by, lambda head: self.store.delete_value(head, self.scope, key, by, version))

    @property
    def _caller(self) -> Caller:
        return self.session.head.caller

    async def _find(self, key: str, access: Access) -> StoredText | None:
        """The stored value, or None. Raises InsufficientScope if the caller has no such access to the value's agent."""
        encode_key(key)
        value: StoredText | None = await self.perform(lambda: self.store.get_value(self.scope, key))
        if value:
            self._caller.check(value.agent, access)
        return value

    async def _check_use(self, key: str) -> None:
        """Raises InsufficientScope if the value belongs to an agent that the caller may not use."""
        encode_key(key)
        if self.scope.context_id is not None and FULL_SCOPE not in self._caller.scopes:
            await self._find(key, "operate")

    async def _write(self, key: str, by: str, write: Callable[[Head], str | None]) -> str:
        if await self.perform(lambda: self.session.write_value(write)) != by:
            raise VersionConflict(f"The value {key!r} has been changed meanwhile: read it again.")
        return by


def _load(value: StoredText) -> StoredValue:
    return StoredValue(value.key, load_value(value.text), value.version)
