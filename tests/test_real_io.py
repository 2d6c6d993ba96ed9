"""The clock of the test harness beside real connections, pipes and processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from a2a_serverless.protocol.v1 import Task, TaskState
from a2a_serverless.testing import AgentTestHarness, Deadlock
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from a2a_serverless.domain.task_context import TaskContext

PAUSE_S: Final = 0.4
ECHO: Final = f"""
import sys, time
for line in sys.stdin:
    time.sleep({PAUSE_S})
    print(line.strip().upper(), flush=True)
"""


SERVER: Final = """
import socket, sys, time
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    while True:
        connection, _ = server.accept()
        connection.recv(1000)
        for word in (b"one ", b"two ", b"three"):
            time.sleep(float(sys.argv[1]))
            connection.sendall(word)
        connection.close()
"""


@contextmanager
def model_server(pause_s: float = PAUSE_S) -> Iterator[int]:
    """The port of a server in another process. It sends three chunks, each after a pause."""
    arguments = [sys.executable, "-c", SERVER, str(pause_s)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:  # noqa: S603 - the text above
        assert process.stdout
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


async def read_stream(port: int, chunk_s: float = 5) -> str:
    """What a client of a model does: each chunk has a time limit."""
    async with asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"Hello?")
        text = b""
        while True:
            async with asyncio.timeout(chunk_s):
                chunk = await reader.read(1000)
            if not chunk:
                return text.decode()
            text += chunk
    finally:
        writer.close()


async def talk_to_a_process() -> str:
    """What a toolset does that talks to a server by its standard input and output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ECHO, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    lines = []
    for line in (b"one\n", b"two\n"):
        process.stdin.write(line)
        lines.append(await asyncio.wait_for(process.stdout.readline(), 5))
    process.stdin.close()
    await asyncio.wait_for(process.wait(), 5)
    return b" ".join(line.strip() for line in lines).decode()


async def await_a_process() -> str:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", f"import time; time.sleep({PAUSE_S})")
    return str(await asyncio.wait_for(process.wait(), 5))


async def run_a_program_in_a_thread() -> str:
    """``subprocess.run`` waits for its pipes without a time limit."""
    arguments = [sys.executable, "-c", f"import time; time.sleep({PAUSE_S}); print('ran')"]
    run = asyncio.to_thread(subprocess.run, arguments, capture_output=True, check=True)
    return str((await asyncio.wait_for(run, 5)).stdout.decode().strip())


async def in_a_loop_of_a_thread(port: int) -> str:
    return await asyncio.wait_for(asyncio.to_thread(lambda: asyncio.run(read_stream(port, 1000))), 5)


@pytest.mark.enable_socket
@pytest.mark.parametrize("read", [read_stream, in_a_loop_of_a_thread])
def test_the_clock_stands_still_while_a_server_is_awaited(read: Callable[[int], Awaitable[str]]) -> None:
    with model_server() as port:

        async def work(task: TaskContext) -> str:
            return str(await task.step("ask the model", read, port))

        harness = AgentTestHarness(agent_of(work))
        began = harness.now
        reply = harness.send("go")
    assert (reply.error, reply.said) == (None, "one two three")
    assert harness.runs == [(reply.task.id, began, harness.runs[0][2])]
    assert harness.now - began < 1000, "no more than the pauses of the engine"


def test_a_thread_of_a_library_may_have_a_timeout_that_is_no_number() -> None:
    def request() -> str:
        timeout = ("connect", 5)
        until = time.monotonic() + PAUSE_S
        while time.monotonic() < until:
            pass
        return str(timeout)

    async def work(task: TaskContext) -> str:
        return await task.step("request", request)

    reply = AgentTestHarness(agent_of(work)).send("go")
    assert (reply.error, reply.said) == (None, "('connect', 5)")


@pytest.mark.parametrize(
    ("talk", "said"),
    [(talk_to_a_process, "ONE TWO"), (await_a_process, "0"), (run_a_program_in_a_thread, "ran")],
)
def test_the_clock_stands_still_while_another_process_is_awaited(talk: Callable[[], Awaitable[str]], said: str) -> None:
    async def work(task: TaskContext) -> str:
        return str(await task.step("talk", talk))

    harness = AgentTestHarness(agent_of(work))
    began = harness.now
    reply = harness.send("go")
    assert (reply.error, reply.said) == (None, said)
    assert harness.now - began < 1000


@pytest.mark.enable_socket
def test_a_durable_time_limit_beside_a_server_does_not_run_out() -> None:
    with model_server() as port:

        async def work(task: TaskContext) -> str:
            async with task.timeout("limit", 1):
                return str(await task.step("ask the model", read_stream, port))

        assert AgentTestHarness(agent_of(work)).send("go").said == "one two three"


@pytest.mark.enable_socket
def test_a_server_in_the_agent_s_own_loop_may_sleep() -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)
        writer.write(b"hello")
        writer.close()

    async def ask() -> str:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            return await read_stream(server.sockets[0].getsockname()[1])

    async def work(task: TaskContext) -> str:
        return str(await task.step("ask", ask))

    assert AgentTestHarness(agent_of(work)).send("go").said == "hello"


@pytest.mark.enable_socket
def test_time_passes_beside_an_idle_connection() -> None:
    with model_server(1000) as port:

        async def sleep() -> str:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.sleep(600)
            writer.close()
            return "slept"

        async def work(task: TaskContext) -> str:
            return str(await task.step("sleep", sleep))

        harness = AgentTestHarness(agent_of(work), io_s=0.3)
        began = harness.now
        assert harness.send("go").said == "slept"
        assert 600_000 <= harness.now - began < 700_000


@pytest.mark.enable_socket
def test_a_planned_action_happens_while_a_server_is_awaited() -> None:
    with model_server(1000) as port:

        async def work(task: TaskContext) -> str:
            return str(await task.step("ask", read_stream, port, 1000))

        harness = AgentTestHarness(agent_of(work), io_s=0.3)
        task = harness.begin("go")
        assert isinstance(task, Task)
        harness.at(harness.now + 20_000, lambda: harness.cancel(task.id))
        harness.settle()
        assert harness.reply(task.id).state is TaskState.CANCELED


@pytest.mark.enable_socket
def test_a_planned_action_happens_while_input_comes_more_often_than_timers_end() -> None:
    happened: list[int] = []
    with model_server() as port:

        async def ask() -> int:
            await read_stream(port)
            return len(happened)

        async def work(task: TaskContext) -> str:
            return str(await task.step("ask", ask))

        harness = AgentTestHarness(agent_of(work))
        harness.at(harness.now + int(PAUSE_S * 1000) + 100, lambda: happened.append(harness.now))
        assert harness.send("go").said == "1"


@pytest.mark.enable_socket
def test_a_server_that_never_answers_is_named_with_who_waits_for_it() -> None:
    with model_server(1000) as port:

        async def work(task: TaskContext) -> str:
            return str(await task.step("ask the model", read_stream, port))

        with pytest.raises(Deadlock) as raised:
            AgentTestHarness(agent_of(work), io_s=0.3).send("go")
    said = str(raised.value)
    assert f"127.0.0.1:{port}" in said
    assert "step 'ask the model'" in said
    assert f"{__file__}:" in said
    assert "chunk = await reader.read(1000)" in said
    assert "io_s" in said


@pytest.mark.enable_socket
def test_a_client_s_time_limit_can_be_tested_beside_a_server_that_never_answers() -> None:
    with model_server(1000) as port:

        async def ask() -> str:
            try:
                return await read_stream(port, 120)
            except TimeoutError:
                return "no chunk for 120 s"

        async def work(task: TaskContext) -> str:
            return str(await task.step("ask", ask))

        assert AgentTestHarness(agent_of(work), io_s=0).send("go").said == "no chunk for 120 s"
