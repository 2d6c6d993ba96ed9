"""A plugin of pytest: each task that a test lets wait is played against its own, unchanged code, and must fit.

``pytest -p tests.rehearsing tests/engine tests/sample_agents`` shows false alarms of a rehearsal. Tests that count the
runs of code outside of steps stay as they are: tasks are copied when they are suspended, and played after the test.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.testing.deployment import InProcessDeployment
from a2a_serverless.testing.rehearsal import StoredTask, Surroundings, read_task, rehearse_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import TaskKey

waiting_tasks: Final[list[tuple[StoredTask, Agent, Surroundings]]] = []
verdicts: Final[Counter[str]] = Counter()
play_run: Final = InProcessDeployment._play_run  # noqa: SLF001 - no test has to know that it is rehearsed


def _play_run(deployment: InProcessDeployment, key: TaskKey, remaining_ms: Callable[[], int]) -> object:
    outcome = play_run(deployment, key, remaining_ms)
    if outcome is RunOutcome.WAITING:
        table, engine = deployment.table, deployment.engine
        task = read_task(table.items, key, table.blobs.get)
        agent = task and engine.agents.get(task.head.agent)
        if task and agent:
            around = Surroundings(
                base_url=engine.registry.base_url,
                read_secret=engine.read_secret,
                log=table,
                index=table,
                prices=engine.prices,
            )
            waiting_tasks.append((task, agent, around))
    return outcome


@pytest.hookimpl
def pytest_configure() -> None:
    """From now on suspended tasks are copied."""
    InProcessDeployment._play_run = _play_run  # type: ignore[method-assign, assignment] # noqa: SLF001


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Fails the test if one of its tasks does not fit its own code."""
    waiting_tasks.clear()
    try:
        yield
    finally:
        tasks = [*waiting_tasks]
        waiting_tasks.clear()
    rehearsals = [rehearse_task(*task) for task in tasks]
    verdicts.update(str(one.verdict) for one in rehearsals)
    if wrong := [str(one) for one in rehearsals if one.verdict.is_red or one.verdict == "dropped"]:
        pytest.fail("\n".join(wrong))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says how many tasks were played."""
    terminalreporter.write_line(f"rehearsed: {dict(verdicts)}")
