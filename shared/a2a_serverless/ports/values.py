"""Values that agents keep by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.values import StoredText, ValueScope


class ValueStore(Protocol):
    """Values of tasks and conversations. All reads are strongly consistent; expired values do not exist.

    ``head`` is the head of the writing run. A write takes effect only while that run has the task, and expires with it.
    Its agent is stored with the value.
    """

    def get_value(self, scope: ValueScope, key: str) -> StoredText | None:
        """The value, or None."""

    def list_values(self, scope: ValueScope, prefix: str, after: str, limit: int) -> Sequence[StoredText]:
        """At most ``limit`` values whose keys begin with ``prefix``, in a fixed order, after the key ``after``."""

    def put_value(self, head: Head, scope: ValueScope, value: StoredText, expected: str | None) -> str | None:
        """Stores a value and returns its version; ``expected`` is the version that it replaces, "" for no value.

        With None it replaces any. If the expected version is not stored, nothing is written, and the version that is
        stored is returned ("" for none). Returns None when the run does not have the task any more. Idempotent by the
        version: a write that was done before, and that nobody or one other has replaced since, is a success.
        """

    def delete_value(self, head: Head, scope: ValueScope, key: str, version: str, expected: str | None) -> str | None:
        """Deletes a value, likewise; returns the ``version`` of the deletion."""
