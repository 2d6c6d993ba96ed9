"""Chaos: the whole stack on this machine under load, while everything goes wrong that may, for minutes or an hour.

Seeded clients of ``tests/histories`` send, repeat, answer, cancel, follow, list and register webhooks; their agent
works in steps, asks, and calls another one. Meanwhile functions are killed, frozen, given wrong clocks and
deployed anew, the api is restarted and killed, the table throttles and ends connections after it has written, and queue
messages are lost and doubled (``faulty_proxy.py``). Then the faults end and everything comes to rest. The checker of
histories says which promises were broken; the receiver of the webhooks verifies every signature.

    make prove KIND=chaos MINUTES=60
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final

from rich.console import Console

from a2a_serverless_tools.stack import local_stack, processes, sam
from a2a_serverless_tools.stack.build import build
from a2a_serverless_tools.stack.paths import CHECKOUT, Paths
from a2a_serverless_tools.stack.targets import this_machine
from chaos_clients import AGENT, Observed, Rounds, Store, receiving
from faulty_proxy import FaultyProxy, Rates, serving
from redeploy import checkout
from sampling import Samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FUNCTIONS: Final = ("worker", "notifier", "relay", "sweeper")
CLOCK_MS: Final = 900  # two clocks differ by less than two seconds
CALM: Final = Rates(0.01, 0.005, 0.02, 0.02)
BAD: Final = Rates(0.3, 0.1, 0.2, 0.2)
PAUSE_S: Final = (2.0, 10.0)
BAD_S: Final = (3.0, 15.0)
FROZEN_S: Final = (1.0, 40.0)
REDEPLOY_S: Final = 240.0
SAMPLE_S: Final = 15.0
GROWTH: Final = 1.15
MOST_WORKING: Final = 8
REST_S: Final = 900.0
READY_S: Final = 60.0
AGENTS: Final = f'''"""Counts, slowly, and leaves a part of it to another agent."""

import asyncio

from a2a_serverless import Skill, TaskContext, agent

SKILL = Skill("count", "Count", "Counts.", ("count",))


@agent(id="{AGENT}", name="Chaos", description="Counts.", skills=[SKILL])
async def counter(task: TaskContext) -> str:
    """As many steps as the message says; asks after the first one, if it says so; calls for the third."""
    number, _, ask = task.text().partition(" ")
    for at in range(1, int(number) + 1):
        await task.step(f"step {{at}}", asyncio.sleep, 1)
        await task.emit("out", f"{{at}} ", append=True, last=at == int(number))
        if at == 1 and ask:
            await task.ask("Go on?")
        if at == 2:
            await task.report_progress("half")
        if at == 3:
            await task.call("helper", "helper", "hello")
    return "done"


@agent(id="helper", name="Helper", description="Helps.", skills=[SKILL])
async def helper(task: TaskContext) -> str:
    """Two steps of a second."""
    for at in range(2):
        await task.step(f"step {{at}}", asyncio.sleep, 1)
    return "helped"
'''
CLOCK: Final = """
import pathlib as _pathlib
import time as _time

_told, _place = _time.time_ns, _pathlib.Path({place!r})


def _stepped() -> int:
    try:
        return _told() + int(_place.read_text()) * 1_000_000
    except (OSError, ValueError):
        return _told()


_time.time_ns, _time.time = _stepped, lambda: _stepped() / 1e9
"""


def project(folder: Path) -> Paths:
    """Makes a project with the agents, whose functions read how wrong their clocks are from files."""
    here = checkout(folder, AGENT, AGENTS, [f"{AGENT}:counter", f"{AGENT}:helper"])
    for name in FUNCTIONS:
        program = here.root / f"functions/{name}/app.py"
        title, rest = program.read_text().split("\n", 1)
        program.write_text(f"{title}\n{CLOCK.format(place=str(clock_of(here, name)))}{rest}")
    return here


def clock_of(here: Paths, function: str) -> Path:
    """The file with the milliseconds that a function's clock is wrong by."""
    return here.state / f"clock-{function}"


@dataclass
class Stops:
    """When the api was being stopped, or was down."""

    times: list[list[float]] = field(default_factory=list)

    @contextmanager
    def one(self) -> Iterator[None]:
        self.times.append([time.monotonic(), float("inf")])
        try:
            yield
        finally:
            self.times[-1][1] = time.monotonic()

    def overlap(self, began: float, ended: float) -> bool:
        return any(first <= ended and began <= last for first, last in self.times)


@dataclass
class Chaos:
    """The stack, and what is done to it."""

    here: Paths
    options: local_stack.Options
    stack: local_stack.RunningStack
    proxy: FaultyProxy
    random: Random
    stops: Stops
    done: Counter[str] = field(default_factory=Counter)
    calm: Event = field(default_factory=Event)
    lock: Lock = field(default_factory=Lock)
    releases: int = 1

    def run(self, minutes: float, say: Callable[[str], None]) -> None:
        """Does one thing after the other until the time is over; then ends what still lasts."""
        faults = [*[self.kill, self.freeze, self.step_clock, self.spoil_store] * 3, self.restart_api, self.kill_api]
        began = deployed = time.monotonic()
        pause = min(REDEPLOY_S, minutes * 60 / 2)  # once at least
        while (now := time.monotonic()) < began + minutes * 60:
            if now > deployed + pause:
                deployed, fault = now, self.redeploy
            else:
                fault = self.random.choice(faults)
            say(fault())
            self.done[fault.__name__] += 1
            time.sleep(self.random.uniform(*PAUSE_S))
        self.calm.set()
        self.proxy.rates = Rates()
        for name in FUNCTIONS:
            clock_of(self.here, name).unlink(missing_ok=True)

    def kill(self) -> str:
        """SIGKILLs a process of a function."""
        return self._signal(signal.SIGKILL)

    def freeze(self) -> str:
        """SIGSTOPs a process of a function for a time, perhaps longer than its lease."""
        seconds = self.random.uniform(*FROZEN_S)
        said = self._signal(signal.SIGSTOP, seconds)
        return f"{said} for {seconds:.0f} s"

    def step_clock(self) -> str:
        """Sets the clock of a function forward or back."""
        name, ms = self.random.choice(FUNCTIONS), self.random.randint(-CLOCK_MS, CLOCK_MS)
        clock_of(self.here, name).write_text(str(ms))
        return f"the clock of the {name} is wrong by {ms} ms"

    def spoil_store(self) -> str:
        """Lets the table throttle and the queues lose messages for a while."""
        seconds = self.random.uniform(*BAD_S)
        self.proxy.rates = BAD
        self.calm.wait(seconds)
        self.proxy.rates = CALM
        return f"table and queues were unreliable for {seconds:.0f} s"

    def restart_api(self) -> str:
        """Stops the api as a deployment does, and starts it again."""
        with self.stops.one():
            processes.stop(self.here, self.stack.api)
            self._start_api()
        return "the api was restarted"

    def kill_api(self) -> str:
        """SIGKILLs the api, and starts it again."""
        with self.stops.one():
            os.killpg(self.stack.api.pid, signal.SIGKILL)
            processes.stop(self.here, self.stack.api)
            self._start_api()
        return "the api was killed and started"

    def redeploy(self) -> str:
        """Builds and deploys new code of every function, and restarts the api."""
        self.releases += 1
        for function in self.here.root.glob("functions/*/app.py"):
            function.write_text(function.read_text() + f"# release {self.releases}\n")
        release = build(self.here, this_machine())
        parameters, switches = local_stack.local_parameters(self.options), local_stack.local_switches(self.options)
        deployment = sam.deploy(self.here, release, self.stack.emulator.url, parameters, switches)
        self.stack = replace(self.stack, build=release, deployment=deployment)
        self.restart_api()
        return f"release {self.releases} was deployed"

    def _start_api(self) -> None:
        api = local_stack.start_api(self.here, self.stack.build, self.stack.deployment, self.options)
        self.stack = replace(self.stack, api=api)
        processes.wait_until_ready(api, "/", seconds=READY_S)

    def _signal(self, number: signal.Signals, seconds: float = 0.0) -> str:
        name = self.random.choice(FUNCTIONS)
        running = function_processes(self.stack, name)
        if not running:
            return f"no {name} is running, no {number.name}"
        pid = self.random.choice(running)
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        if seconds:
            Thread(target=self._thaw, args=(pid, seconds), daemon=True).start()
        return f"{number.name} of a {name}"

    def _thaw(self, pid: int, seconds: float) -> None:
        self.calm.wait(seconds)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def function_processes(stack: local_stack.RunningStack, name: str) -> list[int]:
    """Returns the processes of this emulator that run a function."""
    function = stack.deployment.outputs[f"{name.title()}FunctionName"]
    wanted = {f"AWS_LAMBDA_FUNCTION_NAME={function}".encode(), f"GATEWAY_PORT={stack.emulator.port}".encode()}
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if wanted <= set(place.read_bytes().split(b"\0")):
                found.append(int(place.parent.name))
    return found


def main() -> int:
    """Runs it and prints what was done and what was broken; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calm", action="store_true", help="only the clients, no faults: memory may not grow")
    asked = parser.parse_args()
    emulator, api, receiver, port = (processes.claim_port(part, 0) for part in ("emulator", "api", "receiver", "proxy"))
    here = project(CHECKOUT / ".a2a/chaos")
    faulty = {f"AWS_ENDPOINT_URL_{name}": f"http://127.0.0.1:{port}" for name in ("DYNAMODB", "SQS")}
    options = local_stack.Options(emulator, api, receiver, switches=faulty)
    random, console = Random(asked.seed), Console(stderr=True)  # noqa: S311 - a seed, not a secret
    proxy = FaultyProxy(emulator, random)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the stack is stopped, too
    try:
        with serving(proxy, port):
            stack = local_stack.up(here, options, console)
            chaos = Chaos(here, options, stack, proxy, random, Stops())
            broken = endure(chaos, asked.minutes, calm=asked.calm)
    finally:
        local_stack.down(here, console)
    print("\n".join(broken) or "Every promise was kept.")
    return int(bool(broken))


def endure(chaos: Chaos, minutes: float, *, calm: bool) -> list[str]:
    """Runs clients and faults, waits for rest, prints figures; returns the broken promises.

    A ``calm`` run has no faults. Then no process is stopped, so that the growth of its memory can be seen.
    """
    began, until = time.monotonic(), time.monotonic() + minutes * 60
    store, observed = Store(chaos.stack.deployment), Observed(chaos.stops.overlap)
    rounds, samples = Rounds(chaos.stack.api.url, observed), Samples()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True)

    with receiving(rounds, chaos.random) as receiver:
        threads = [Thread(target=sample, args=(chaos, store, samples, until), daemon=True)]
        threads += [] if calm else [Thread(target=chaos.run, args=(minutes, say), daemon=True)]
        for thread in threads:
            thread.start()
        while time.monotonic() < until:
            if store.count_working() > MOST_WORKING:
                time.sleep(1)
                continue
            rounds.play(chaos.random)
            say(f"{len(rounds.made)} rounds of clients, {receiver.received} notifications")
        for thread in threads:
            thread.join()
        say("the faults are over")
        left = rest(store, say)
        samples.take(chaos.stack, store.heads())
        broken = [*left, *rounds.broken(store, settled=not left)]
        if calm:
            grown = {name: samples.growth(name) for name in ("api", "receiver")}
            broken += [f"the {name} grew by {by - 1:.0%}" for name, by in grown.items() if by > GROWTH]
    print("\n".join([*told(chaos, rounds, receiver.received), *samples.rows()]))
    return broken


def sample(chaos: Chaos, store: Store, samples: Samples, until: float) -> None:
    """Takes a sample every quarter of a minute; a server that is down has none."""
    while time.monotonic() < until:
        with suppress(OSError):
            samples.take(chaos.stack, store.heads())
        time.sleep(SAMPLE_S)


def rest(store: Store, say: Callable[[str], None]) -> list[str]:
    """Waits until nothing is left to do; returns what still is after ``REST_S``."""
    until = time.monotonic() + REST_S
    while (left := store.unsettled()) and time.monotonic() < until:
        say(f"{len(left)} left: {left[0]}")
        time.sleep(SAMPLE_S)
    return left


def told(chaos: Chaos, rounds: Rounds, received: int) -> Iterator[str]:
    """Formats what was done as rows of a table."""
    operations = rounds.operations()
    unknown = sum(one.completed is None for one in operations)
    yield "| chaos | |\n|---|---|"
    for name, counted in (("faults", chaos.done), ("calls of table and queues", chaos.proxy.happened)):
        yield f"| {name} | {', '.join(f'{count} {kind}' for kind, count in sorted(counted.items()))} |"
    yield f"| operations of clients | {len(operations)}, {unknown} with an unknown outcome |"
    yield f"| answers in plain text of an api that was being stopped | {rounds.observed.excused} |"
    yield f"| notifications | {received}, each verified |"


if __name__ == "__main__":
    sys.exit(main())
