"""The lists of tasks: by owner, and by context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.adapters.dynamodb import items, keys

if TYPE_CHECKING:
    from a2a_serverless.adapters.dynamodb.table import Table
    from a2a_serverless.domain.model import Principal
    from a2a_serverless.ports.tasks import TaskEntry


class DynamoTaskIndex:
    """``ports.TaskIndex`` over the two list indexes."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def list_page(
        self, principal: Principal, context_id: str | None, after: str | None, since: int, limit: int
    ) -> tuple[list[TaskEntry], str | None]:
        owner = keys.path(principal.tenant, principal.owner)
        index, held = "by_owner", ("own", owner)
        if context_id is not None:
            index, held = "by_context", ("own_ctx", f"{owner}/{keys.part(context_id)}")
        # The entry at ``after`` comes along and is dropped; one entry more shows whether there is a next page.
        found = self._table.query_newest(index, held, keys.moment(since), after or keys.NEWEST, limit + 2)
        entries = [entry for entry in map(items.entry_of, found) if entry.position != after]
        return entries[:limit], entries[limit - 1].position if len(entries) > limit else None
