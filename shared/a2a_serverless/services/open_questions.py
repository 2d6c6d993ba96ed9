"""The open questions of a context: tasks that wait for their client, looked up without their ids."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import FieldViolation, InvalidParams
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.store.items import read_or_skip

if TYPE_CHECKING:
    from a2a_serverless.services.requests import RequestContext, TaskService

LISTED: Final = 100
NAMED: Final = 10


def find_open_question(service: TaskService, context: RequestContext, context_id: str) -> str | None:
    """Returns the id of the caller's one task in the context that asks a question; None if none does.

    It is a task of the agent among the 100 tasks of the context whose status changed last. The index that lists them
    may be a moment behind, so each head is read: only a task that is younger than that moment is overlooked. Raises
    InvalidParams, which names the tasks, if several tasks ask.
    """
    entries, _ = service.lister().index.list_page(context.principal, context_id, None, 0, LISTED)
    unfinished = [entry.task for entry in entries if entry.agent == context.agent and entry.state not in TERMINAL]
    asking = [task for task in unfinished if _asks(service, context, task)]
    if len(asking) > 1:
        names = ", ".join(sorted(asking)[:NAMED])
        several = f"must name one of the {len(asking)} tasks of this context that ask: {names}"
        raise InvalidParams(violations=(FieldViolation("message.taskId", several),))
    return asking[0] if asking else None


def _asks(service: TaskService, context: RequestContext, task_id: str) -> bool:
    current = read_or_skip(partial(service.log.read_head, context.key(task_id)), "task", task=task_id)
    return current is not None and current.head.state in INTERRUPTED
