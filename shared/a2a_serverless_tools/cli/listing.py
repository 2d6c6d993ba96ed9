"""The command ``tasks list``: the tasks of an agent, or of all agents of a deployment."""

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Annotated

import typer

from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.protocol.v1 import MAX_PAGE_SIZE, ListTasksRequest, Task, TaskState
from a2a_serverless_tools.cli.formatting import moment
from a2a_serverless_tools.cli.options import CliContext, Url, agents_at, find
from a2a_serverless_tools.cli.terminal import quote_words

HEAD = ("TASK", "AGENT", "STATE", "SINCE", "CONTEXT")

AnyAgent = Annotated[
    str, typer.Argument(help="An agent's id, or its URL; all agents by default.", metavar="[AGENT]", show_default=False)
]
Context = Annotated[str | None, typer.Option(help="Only tasks of this conversation.", metavar="CONTEXT")]
State = Annotated[TaskState | None, typer.Option(help="Only tasks in this state.", metavar="STATE")]
Limit = Annotated[int, typer.Option(help="The largest number of tasks.", min=1, max=1000)]


def list_tasks(
    cli: CliContext,
    agent: AnyAgent = "",
    *,
    context: Context = None,
    state: State = None,
    limit: Limit = 30,
    url: Url = "",
) -> None:
    """List your tasks, the newest change first."""
    size = min(limit + 1, MAX_PAGE_SIZE)
    query = ListTasksRequest(context_id=context, status=state, page_size=size, history_length=0)
    agents = [agent] if agent else [str(one["id"]) for one in agents_at(cli, url)]
    lists = [_tasks_of(cli, url, one, query) for one in agents]
    tasks = [*islice(merge(*lists, key=lambda one: one[1].status.timestamp, reverse=True), limit + 1)]
    page = tasks[:limit]
    cli.terminal.table([{"agent": name, **as_json(task)} for name, task in page], HEAD, [_cells(*one) for one in page])
    if not page:
        cli.terminal.note(
            f'There are no such tasks: {cli.program} send {quote_words(agent or "AGENT")} "..." makes one.'
        )
    elif len(tasks) > limit:
        cli.terminal.note(f"There are more. To see them: --limit {min(limit * 10, 1000)}, --state or --context.")


def _tasks_of(cli: CliContext, url: str, agent: str, query: ListTasksRequest) -> Iterator[tuple[str, Task]]:
    return ((agent, task) for task in find(cli, url, agent).client.tasks(query))


def _cells(agent: str, task: Task) -> list[str]:
    return [task.id, agent, str(task.status.state), moment(task.status.timestamp), task.context_id]
