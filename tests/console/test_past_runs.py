"""The console shows runs that have died or were handed over, and pauses, of tasks whose time was simulated."""

from __future__ import annotations

import asyncio
import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.publications import card_name
from a2a_serverless.http.threads import in_threads
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.services.publish import CardPublisher, card_of, publish
from a2a_serverless.store.stores import agent_pause
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from a2a_serverless_tools.local.server import Server, listen
from tests.browser import NEEDED, Browser, started
from tests.conformance.live import watched
from tests.console.test_console import CONSOLE, look
from tests.echo import agent_of
from tests.edge import Edge
from tests.faults.plans import At, die
from tests.world import ME, MINUTE_MS, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from a2a_serverless import TaskContext
    from a2a_serverless.domain.model import Principal

pytestmark = NEEDED


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


class OnlyMe:
    def authenticate(self, _: Mapping[str, str]) -> Caller:
        return Caller(ME)

    def enter_tenant(self, principal: Principal, _: str) -> Principal:
        return principal


@contextmanager
def shown(browser: Browser, world: World, task: str) -> Iterator[Browser]:
    """A page with a task of the world, which does nothing meanwhile."""
    listener = listen(0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    cards = CardPublisher(world.table, world.clock, world.agents, url)
    for agent in world.agents.values():
        publish(cards, card_name(agent.id), as_json(card_of(agent, url, {})))
    about: Any = {"console": CONSOLE, "run": in_threads()}
    edge = Edge(world.service, world.agents, OnlyMe(), MemoryCallbackVerifier(), 300, **about)
    server = Server(watched(edge.app)[0])
    thread = threading.Thread(target=server.run, args=([listener],))
    with listener:
        thread.start()
        try:
            browser.do("scheme light")
            browser.do("size desktop")
            browser.do(f"open {url}/?agent=echo&task={task}")
            browser.do("wait .waterfall li")
            yield browser
            assert browser.do("problems") == []
        finally:
            browser.do("open about:blank")
            server.should_exit = True
            thread.join()


def rows_of_runs(page: Browser) -> str:
    """The table of the runs, opened."""
    page.do("click .waterfall summary:has-text('runs')")
    page.do("wait .inside table")
    return str(page.do("texts .inside table")[0])


def test_a_run_that_has_died_says_between_which_times(browser: Browser) -> None:
    async def works(task: TaskContext) -> None:
        for name in ("one", "two", "three"):
            await task.step(name, asyncio.sleep, 20)

    world = World([agent_of(works)], At(7, late=False, what=die, only="table.update_head"))
    task = world.send("hello", push=False).id
    world.settle()
    with shown(browser, world, task) as page:
        assert page.do("count .waterfall .span.lost") == 1
        assert "died, between 30 s and 45 s" in rows_of_runs(page)
        look(page, "died")


def test_a_run_that_was_handed_over_has_an_interrupted_step(browser: Browser) -> None:
    async def works(task: TaskContext) -> None:
        await task.step("one", asyncio.sleep, 50)
        await task.step("two", asyncio.sleep, 30)

    world = World([agent_of(works)])
    world.run_ms = 80_000
    task = world.send("hello", push=False).id
    world.settle()
    with shown(browser, world, task) as page:
        assert page.do("count .waterfall .span.interrupted") == 1
        assert "handed over" in rows_of_runs(page)
        look(page, "handed-over")


def test_a_paused_task_says_since_when_it_waits_and_not_that_the_pause_began_then(browser: Browser) -> None:
    async def works(task: TaskContext) -> None:
        await task.step("one", asyncio.sleep, 300)
        await task.step("two", asyncio.sleep, 5)

    world = World([agent_of(works)])
    task = world.send("hello", push=False).id
    world.wait(MINUTE_MS)
    world.table.add_pause(agent_pause("echo"), world.now)
    world.wait(10 * MINUTE_MS)
    with shown(browser, world, task) as page:
        page.do("wait #why .wait")
        told = page.do("texts #why .wait")[0]
        assert re.match(r"Waits until an operator resumes this agent since .*:20 \(for ", told), told
        assert "paused: agent\npause, after 5 min 0 s" in page.do("texts .waterfall")[0]
        look(page, "paused")
