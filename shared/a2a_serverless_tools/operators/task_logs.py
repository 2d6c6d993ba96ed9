"""Reads log lines of a deployed stack, by queries of CloudWatch Logs Insights: of a task, or of errors."""

import re
import time
from collections.abc import Callable
from typing import Any, Final

from a2a_serverless_tools.operators.deployed import CommandFailed
from a2a_serverless_tools.operators.function_errors import FILTER

MOST_LINES: Final = 10_000
PAUSE_S: Final = 0.5
TRIES: Final = 120
_LOGS: Final = re.compile(r"([A-Z][a-z]+)Logs")
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
    found = f"filter task like /^{re.escape(task)}/ | sort @timestamp asc"
    rows = _query(logs, groups, f"fields @message | {found} | limit {MOST_LINES}", days * 86_400, now, sleep)
    return [row["@message"] for row in rows]


def read_errors(
    logs: Any,  # noqa: ANN401 - boto3 makes the type
    groups: list[str],
    seconds: int,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> list[tuple[str, str]]:
    """The lines of these log groups, of the last ``seconds``, that may be errors, each with the name of its function.

    The newest is first. Raises CommandFailed if the query fails or takes longer than a minute.
    """
    query = f"fields @message, @log | filter {FILTER} | sort @timestamp desc | limit {MOST_LINES}"
    rows = _query(logs, groups, query, seconds, now, sleep)
    return [(_function_of(row.get("@log", "")), row["@message"]) for row in rows]


def _function_of(group: str) -> str:
    names = _LOGS.findall(group)
    return names[-1].lower() if names else group


def _query(
    logs: Any,  # noqa: ANN401 - boto3 makes the type
    groups: list[str],
    query: str,
    seconds: int,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> list[dict[str, str]]:
    end = int(now())
    query_id = logs.start_query(logGroupNames=groups, startTime=end - seconds, endTime=end + 60, queryString=query)[
        "queryId"
    ]
    for _ in range(TRIES):
        answer = logs.get_query_results(queryId=query_id)
        if answer["status"] == "Complete":
            return [{field["field"]: field["value"] for field in row} for row in answer["results"]]
        if answer["status"] not in {"Scheduled", "Running"}:
            raise CommandFailed(f"the query of the logs is {answer['status']}")
        sleep(PAUSE_S)
    raise CommandFailed("the query of the logs takes longer than a minute")
