"""A small set of histories; ``make prove KIND=histories`` records more. Over dynoxide: ``contract/test_racing.py``."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from typing import Any, Final

import pytest

from tests.conformance import live
from tests.echo import agent_of
from tests.histories.bugs import BUGS
from tests.histories.check import check
from tests.histories.clients import Client, HttpTransport
from tests.histories.deployment import count_aloud
from tests.histories.history import Recorder, texts_of
from tests.histories.run import MOST_SEEDS, play, seeds_until_found
from tests.histories.specification import NOT_CANCELABLE
from tests.histories.virtual_time import VirtualTime
from tests.observed import observed

SEEDS: Final = range(1, 4)
MESSAGES: Final = {1: "m1", 5: "m2"}
FIRST: Final = {  # where a bug that not every seed meets was found last
    "lost_cancels": 3,
    "stale_gets": 3,
    "doubled_chunks": 4,
    "second_answers": 5,
    "stolen_cursors": 2,
    "missing_events": 2,
    "hasty_deletions": 3,
}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_under_faults_keeps_every_promise(seed: int) -> None:
    history, violations = play(seed)
    assert violations == [], "\n".join(texts_of(history))
    assert len(history.operations) > 30
    assert history.posts


def test_a_seed_gives_the_same_history_again() -> None:
    assert play(1)[0] == play(1)[0]


@pytest.mark.parametrize("bug", BUGS)
def test_an_injected_bug_is_found(bug: str) -> None:
    first = FIRST.get(bug, 1)
    needed, found = seeds_until_found(bug, range(first, first + MOST_SEEDS))
    assert needed, found


NOBODY = "http://127.0.0.1:9/hook"
"""An address where nobody listens."""


@pytest.mark.enable_socket
def test_a_client_over_http_records_the_history_that_the_checker_reads() -> None:
    with live.serving([agent_of(count_aloud)]) as url:
        client = Client(HttpTransport(f"{url}/echo", {}, observed(url)), Recorder())
        message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "1 ask"}]}
        task = client.send({"message": message, "configuration": {}}).task
        asked = client.get(task).view
        assert asked
        assert (asked.state, asked.said, asked.artifacts[0][1]) == ("input_required", "Go on?", "1 ")
        client.register(task, "a", NOBODY)
        assert client.webhooks(task).webhooks == {"a": NOBODY}
        answer = {**message, "messageId": "m2", "taskId": task}
        assert client.send({"message": answer, "configuration": {}}, stream=True).items[-1].content.state == "completed"
        assert client.cancel(task).refused == NOT_CANCELABLE
        shown: list[Any] = [item.content for item in client.subscribe(task, after=0).items]
        history = client.recorder.history
        history.logs = {task: [replace(one, message=MESSAGES.get(one.n, "")) for one in shown]}
        history.operations[0].chunks = 1
        client.list_tasks()
    assert {one.promise for one in check(history)} == {"webhooks"}  # nobody listens there


def test_a_thread_that_is_blocked_ends_the_history_with_an_error() -> None:
    blocked = Event()
    time = VirtualTime(2, limit_s=0.01)
    time.spawn(blocked.wait)
    with pytest.raises(TimeoutError, match="1 threads run since 0 ms"):
        time.run()
    blocked.set()
