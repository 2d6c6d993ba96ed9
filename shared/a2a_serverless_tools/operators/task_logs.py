"""Reads the log lines of a task of a deployed stack, by a query of CloudWatch Logs Insights."""

import re
import time
from collections.abc import Callable
from typing import Any, Final

from a2a_serverless_tools.operators.deployed import CommandFailed

MOST_LINES: Final = 10_000
PAUSE_S: Final = 0.5
TRIES: Final = 120
_ID: Final = re.compile(r"[\w.~-]+")


def read_lines(
    logs: Any,  # noqa: ANN401 - boto3 makes the type
    groups: list[str],
    task: str,
    days: int,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> list[str]:
    """The lines of the task whose id begins with ``task``, of the last ``days``, in these log groups, oldest first.

    Raises CommandFailed for what is no id, and if the query fails or takes longer than a minute.
    """
    if not _ID.fullmatch(task):
        raise CommandFailed(f"{task!r} is no id of a task")
    query = f"fields @message | filter task like /^{re.escape(task)}/ | sort @timestamp asc | limit {MOST_LINES}"
    end = int(now())
    query_id = logs.start_query(
        logGroupNames=groups, startTime=end - days * 86_400, endTime=end + 60, queryString=query
    )["queryId"]
    for _ in range(TRIES):
        answer = logs.get_query_results(queryId=query_id)
        if answer["status"] == "Complete":
            return [field["value"] for row in answer["results"] for field in row if field["field"] == "@message"]
        if answer["status"] not in {"Scheduled", "Running"}:
            raise CommandFailed(f"the query of the logs is {answer['status']}")
        sleep(PAUSE_S)
    raise CommandFailed("the query of the logs takes longer than a minute")
