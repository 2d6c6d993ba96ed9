"""The values of a task or conversation for its agent (``domain.key_value_store.KeyValueStore``).

A value that another agent has stored for the conversation exists only for a caller who may read that agent. Only a
caller who may use that agent can replace it.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from a2a_serverless.domain.access import FULL_SCOPE
from a2a_serverless.domain.key_value_store import StoredValue, VersionConflict
from a2a_serverless.domain.record_names import VALUE, fit_name
from a2a_serverless.domain.step_results import StepResult, StoredError
from a2a_serverless.domain.values import LIST_LIMIT, StoredText, dump_value, encode_key, load_value
from a2a_serverless.engine.execution import act
from a2a_serverless.engine.step_errors import dump_error, failure_of, load_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.access import Access, Caller
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.values import ValueScope
    from a2a_serverless.engine.execution import Execution
    from a2a_serverless.store.value_store import ValueStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunValues:
    """One run's access to the values of ``scope``.

    With ``is_replayed`` a method that is called outside of steps is an act, whose result or error is stored: each later
    run gets the same, and writes nothing. A write's version is made of its content: a run that repeats a write, because
    it did not hear the answer, recognises its own.
    """

    _execution: Execution
    _store: ValueStore
    _scope: ValueScope
    _is_replayed: bool

    @act("KeyValueStore")
    async def get(self, key: str) -> StoredValue | None:
        """See ``KeyValueStore.get``."""
        name = encode_key(key)

        def read() -> Json:
            value = self._find(key, "read")
            return [*astuple(value)] if value else None

        value = self._replay("get", name, read)
        return _load(StoredText(*cast("Any", value))) if value else None

    @act("KeyValueStore")
    async def list(self, prefix: str = "", *, after: str = "", limit: int = 100) -> list[StoredValue]:
        """See ``KeyValueStore.list``."""
        name = f"{encode_key(prefix) if prefix else ''}*"
        most = min(limit, LIST_LIMIT)

        def read() -> Json:
            values, last = list[StoredText](), after
            while len(values) < most:
                page = self._perform(partial(self._store.list_values, self._scope, prefix, last, most))
                values += (value for value in page if self._caller.allows(value.agent, "read"))
                if len(page) < most:
                    break
                last = page[-1].key
            return [[*astuple(value)] for value in values[:most]]

        return [_load(StoredText(*one)) for one in cast("Any", self._replay("list", name, read))]

    @act("KeyValueStore")
    async def put(self, key: str, value: Json | bytes, *, version: str | None = None) -> str:
        """See ``KeyValueStore.put``."""
        name = encode_key(key)
        text = dump_value(value)
        # Each run counts its equal writes, also those that it does not repeat: else the next one would have the version
        # of an earlier one.
        # tests/engine/test_values.py: test_equal_writes_have_versions_of_their_own_in_each_run
        by = self._identify([self._scope.context_id, key, text, version])

        def write() -> Json:
            stored_text = StoredText(key, text, by)
            return self._write(key, by, lambda head: self._store.put_value(head, self._scope, stored_text, version))

        return str(self._replay("put", name, write))

    @act("KeyValueStore")
    async def delete(self, key: str, *, version: str | None = None) -> None:
        """See ``KeyValueStore.delete``."""
        name = encode_key(key)
        by = self._identify([self._scope.context_id, key, version])

        def write() -> Json:
            return self._write(key, by, lambda head: self._store.delete_value(head, self._scope, key, by, version))

        self._replay("delete", name, write)

    @property
    def _caller(self) -> Caller:
        return self._execution.session.head.caller

    def _replay(self, method: str, name: str, perform: Callable[[], Json]) -> Json:
        """What ``perform`` returns or raises; outside of steps what it did when a run first came here."""
        execution = self._execution
        scope = execution.open_scope()
        if scope.step or not self._is_replayed:
            return perform()
        place = "store" if self._scope.context_id is None else "conversation"
        record_name = f"{VALUE}{scope.place(f'{place}.{method}', fit_name(name))}"
        record = execution.journal.get(record_name) or execution.journal.store(record_name, _result_of(perform))
        value, error = cast("tuple[Json, list[Any] | None]", record.value)
        if error:
            stored_error = StoredError(*error)
            raise load_error(stored_error) or failure_of(stored_error, f"{place}.{method}")
        return value

    def _perform(self, call: Callable[[], T]) -> T:
        """Makes a store call after the waiting chunks."""
        self._execution.check_open()
        self._execution.session.flush()
        return call()

    def _identify(self, write: Json) -> str:
        return self._execution.open_scope().message_id(self._execution.session.origin, "value", write)

    def _find(self, key: str, access: Access) -> StoredText | None:
        """The stored value, or None. Raises InsufficientScope if the caller has no such access to the value's agent."""
        value = self._perform(lambda: self._store.get_value(self._scope, key))
        if value:
            self._caller.check(value.agent, access)
        return value

    def _write(self, key: str, by: str, write: Callable[[Head], str | None]) -> str:
        """Writes; raises InsufficientScope if the value belongs to an agent that the caller may not use."""
        if self._scope.context_id is not None and FULL_SCOPE not in self._caller.scopes:
            self._find(key, "operate")
        if self._perform(lambda: self._execution.session.write_value(key, write)) != by:
            raise VersionConflict(f"The value {key!r} has been changed meanwhile: read it again.")
        return by


def _result_of(perform: Callable[[], Json]) -> StepResult:
    """What a store call returns, or raises, as it is stored."""
    try:
        return StepResult("", [perform(), None])
    except Exception as error:  # noqa: BLE001 - each run raises it
        return StepResult("", [None, [*dump_error(error)]])


def _load(value: StoredText) -> StoredValue:
    return StoredValue(value.key, load_value(value.text), value.version)
