"""The event loop of a run: when it rests, whose timers it knows, and how it is left."""

from __future__ import annotations

import asyncio
import shlex
import signal
import socket
import sys
from contextvars import copy_context
from threading import Barrier, Event, current_thread
from threading import enumerate as enumerate_threads
from typing import TYPE_CHECKING, Any, cast

import pytest

from a2a_serverless.engine.loop import OUTSIDE_STEPS, THREADS, TURNS, RunLoop, play

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def running() -> RunLoop:
    return cast("RunLoop", asyncio.get_running_loop())


def test_the_loop_rests_when_nobody_is_ready_to_go_on() -> None:
    turns = list[int]()

    async def work() -> None:
        async def others() -> None:
            for turn in range(50):
                await asyncio.sleep(0)
                turns.append(turn)
            await asyncio.sleep(3600)

        left = asyncio.create_task(others())
        await running().rest()
        assert len(turns) == 50
        left.cancel()

    play(work())


def test_the_loop_does_not_wait_for_code_that_never_rests() -> None:
    async def work() -> None:
        async def spin() -> None:
            for _ in range(100 * TURNS):
                await asyncio.sleep(0)

        spinning = asyncio.create_task(spin())
        await running().rest()
        assert not spinning.done()

    play(work())


def test_while_no_other_code_runs_the_count_of_ready_callbacks_stays() -> None:
    async def work() -> None:
        before = running().ready_count
        assert running().ready_count == before
        await asyncio.sleep(0)
        assert running().ready_count > before

    play(work())


def test_the_loop_knows_the_timers_that_agents_have_set_outside_of_steps_until_they_are_over() -> None:
    async def work() -> None:
        loop = running()
        loop.call_later(60, print)
        in_step = copy_context()
        OUTSIDE_STEPS.set(True)
        first, second = loop.call_later(60, print), loop.call_later(30, print)
        loop.call_later(90, print, context=in_step)
        in_step.run(loop.call_later, 120, print)
        third = in_step.run(lambda: loop.call_later(20, print, context=copied))
        assert sorted(loop.agent_timers()) == [third.when(), second.when(), first.when()]
        second.cancel()
        loop.call_at(loop.time() - 1, print)
        assert sorted(loop.agent_timers()) == [third.when(), first.when()]

    copied = copy_context()
    copied.run(OUTSIDE_STEPS.set, True)  # noqa: FBT003 - the variable's value
    play(work())


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_an_asyncio_task_that_raises_system_exit_does_not_end_the_run(error: BaseException) -> None:
    async def leave() -> None:
        raise error

    async def work() -> str:
        leaving = asyncio.create_task(leave())
        await asyncio.wait({leaving})
        assert leaving.exception() is error
        return "done"

    assert play(work()) == "done"
    with pytest.raises(type(error)):
        play(leave())


@pytest.mark.parametrize("by_agent", [True, False])
def test_an_interrupt_of_the_process_ends_the_run_while_the_agent_works(by_agent: bool) -> None:  # noqa: FBT001
    ended = list[str]()

    async def agent() -> None:
        signal.raise_signal(signal.SIGINT)

    async def work() -> None:
        if by_agent:
            await asyncio.wait({asyncio.create_task(agent())})
        else:
            asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
            await asyncio.sleep(60)
        ended.append("the run")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        play(work())
    assert (ended, signal.getsignal(signal.SIGINT)) == ([], before)


def test_the_loop_cancels_open_tasks_and_closes_generators_at_the_end() -> None:
    ended = list[str]()

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            ended.append("generator")

    async def other() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("task")

    async def work() -> Any:
        left, generator = asyncio.create_task(other()), numbers()
        assert await anext(generator) == 1
        await asyncio.sleep(0)
        return left, generator

    loop = RunLoop()
    play(work(), loop)
    assert sorted(ended) == ["generator", "task"]
    assert loop.is_closed()


@pytest.mark.enable_socket
def test_a_connection_that_a_run_leaves_open_is_closed_with_its_loop() -> None:
    async def connect(address: tuple[str, int]) -> Any:
        return await asyncio.open_connection(*address)

    with socket.create_server(("127.0.0.1", 0)) as server:
        _, writer = play(connect(server.getsockname()))
        peer, _ = server.accept()
        with peer:
            peer.settimeout(60)
            assert peer.recv(1) == b"", "the other side sees the end"
    assert writer.transport.is_closing()
    assert writer.transport.get_extra_info("socket").fileno() == -1


@pytest.mark.enable_socket
@pytest.mark.parametrize("with_shell", [False, True])
def test_a_process_that_a_run_leaves_behind_is_killed_with_its_loop(*, with_shell: bool) -> None:
    async def start(server: socket.socket) -> socket.socket:
        source = f"import socket; socket.create_connection({server.getsockname()}).recv(1)"
        command = (sys.executable, "-c", source)
        pipe = asyncio.subprocess.PIPE
        if with_shell:
            await asyncio.create_subprocess_shell(f"exec {shlex.join(command)}", stdin=pipe)
        else:
            await asyncio.create_subprocess_exec(*command, stdin=pipe)
        return (await asyncio.to_thread(server.accept))[0]

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        with play(start(server)) as peer:
            peer.settimeout(60)
            assert peer.recv(1) == b"", "the process does not live any more"


def test_a_loop_that_rests_already_is_asked_once() -> None:
    async def work() -> int:
        before = running().ready_count
        await running().rest()
        return running().ready_count - before

    assert play(work()) == 1


def test_callbacks_and_timers_run_in_the_context_that_they_were_given() -> None:
    given, seen = copy_context(), list[bool]()
    given.run(OUTSIDE_STEPS.set, True)  # noqa: FBT003 - the variable's value

    async def work() -> None:
        loop, done = running(), asyncio.Event()

        def look() -> None:
            seen.append(OUTSIDE_STEPS.get())
            if len(seen) == 2:
                done.set()

        loop.call_soon(look, context=given)
        loop.call_at(loop.time(), look, context=given)
        await done.wait()

    play(work())
    assert seen == [True, True]


def test_threads_do_plain_code_side_by_side_and_one_that_is_free_is_used_again() -> None:
    async def work() -> tuple[set[str], set[str]]:
        meet = Barrier(3, timeout=60)

        def name_of(*, meets: bool) -> str:
            if meets:
                meet.wait()
            return current_thread().name

        names = await asyncio.gather(*(asyncio.to_thread(name_of, meets=True) for _ in range(3)))
        again = [await asyncio.to_thread(name_of, meets=False) for _ in range(5)]
        with pytest.raises(ValueError, match="no number"):
            await asyncio.to_thread(fail)
        return {*names}, {*again}

    def fail() -> None:
        raise ValueError("no number")

    names, again = play(work())
    assert names == {"agent_1", "agent_2", "agent_3"}
    assert again <= names


def test_the_end_of_a_run_drops_work_that_no_thread_has_begun() -> None:
    go, begun, done = Event(), Barrier(THREADS + 1, timeout=60), list[str]()

    def hold() -> None:
        begun.wait()
        assert go.wait(60)
        done.append("held")

    async def work() -> list[asyncio.Future[None]]:
        holding = [asyncio.ensure_future(asyncio.to_thread(hold)) for _ in range(THREADS)]
        await asyncio.sleep(0)
        begun.wait()
        waiting = asyncio.ensure_future(asyncio.to_thread(done.append, "late"))
        await asyncio.sleep(0)
        return [*holding, waiting]

    before = {*enumerate_threads()}
    play(work())
    mine = {*enumerate_threads()} - before
    assert len(mine) == THREADS
    assert all(thread.daemon for thread in mine)
    go.set()
    for thread in mine:
        thread.join(60)
    assert done == ["held"] * THREADS
