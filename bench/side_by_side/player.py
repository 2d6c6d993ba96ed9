"""Plays one play with one system: starts its processes, lets a fault happen, and waits for the end."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from effects import Effects
from plays import NAP_S, WORKFLOWS
from processes import Failed, Process, group_of
from verdict import Fault, goes_on, judge

if TYPE_CHECKING:
    from plays import Play
    from systems import System

HERE: Final = Path(__file__).parent
# A lost play is one that has not ended after this time: the longest lease here is 120 s by default.
PROMISED_END_S: Final = 150.0
WAITS_S: Final = 60.0
SIGNAL_AFTER_S: Final = 1.0
SIGNAL_AGAIN_S: Final = 20.0
POLL_S: Final = 0.25


class Scene:
    """What a fault can do to a system, and what has happened so far."""

    def __init__(self, system: System, setting: str, play: Play, folder: Path) -> None:
        self.system, self.setting, self.play = system, setting, play
        self.workflow, self.lease_s = WORKFLOWS[play.workflow], system.lease_s[setting]
        self.signal_early = self.signal_twice = False
        self.nap_s = NAP_S
        self.effects, self.faults, self.acts, self.errors = Effects(), list[Fault](), list[str](), list[str]()
        self._folder, self._code = folder, folder / "code"
        self._workers: list[Process] = []
        self._driver: Process
        self._sent: dict[str, float] = {}
        self._again = False
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(HERE / "adapters", self._code, ignore=shutil.ignore_patterns("__pycache__"))
        self._environment = {
            **os.environ,
            "EFFECTS": self.effects.url,
            "SETTING": setting,
            "FOLDER": str(folder),
            "PYTHONPATH": str(self._code),
            "PYTHONUNBUFFERED": "1",
            **system.variables_of_processes,
        }
        self.store = self._process("store")
        self._environment["STORE"] = self.store.address
        if not system.caller:
            self._driver = self._process("drive")
        self.start_worker("a")

    def start(self) -> None:
        """Starts the workflow."""
        self._order("start", self.play.workflow, "run", self.nap_s)

    def hold(self, names: list[str], *, behind: bool = False) -> None:
        """Closes the gate before these effects, or the gate behind."""
        self.effects.close(names, "behind" if behind else "before")

    def wait_for(self, names: list[str], phase: str = "asked") -> None:
        """Waits until each of these effects has come so far, in a process that lives."""
        self._pump(lambda: all(self._is_at(name, phase) for name in names), PROMISED_END_S)
        if missing := [name for name in names if not self._is_at(name, phase)]:
            raise Failed(f"{', '.join(missing)} not {phase} within {PROMISED_END_S:g} s")

    def let(self, seconds: float) -> None:
        """Lets time pass."""
        self._pump(lambda: False, seconds)

    def kill(self) -> None:
        """Kills the process that has asked for the last effect: it has the user's code."""
        pid = self.effects.all[-1].pid
        worker = next((one for one in self._workers if one.has(pid)), None)
        now = self.effects.now()
        if worker:
            worker.kill()
            self._workers.remove(worker)
        else:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.effects.open(pid)
        self.faults.append(Fault(now, self.effects.now()))

    def restart(self) -> None:
        """Starts the process again: the same machine, with the same name."""
        self.start_worker("a")

    def start_worker(self, name: str) -> None:
        """Starts a process with the user's code, if the system has such a process beside its store."""
        if self.system.worker and (not self._workers or self.system.machines > 1):
            lost = {"LOST": "a"} if self.faults and name != "a" else {}
            self._workers.append(self._process("worker", name, **lost))
            if self.system.caller:
                self._driver = self._workers[-1]
            self.resume()

    def resume(self) -> None:
        """Does what somebody must do by the system's documents after a start of the process."""
        act = self.system.resume.get(self.setting, "")
        if act and self.faults and "error" not in self._told("resume", "run"):
            self.acts.append(act)

    def freeze(self, seconds: float) -> None:
        """Stops the process of the last effect, opens the gates, and lets it go on later."""
        pid = self.effects.all[-1].pid
        worker = next((one for one in self._workers if one.has(pid)), None)
        self._still([pid] if worker is None else group_of(worker), seconds)

    def stop_store(self, seconds: float) -> None:
        """Stops the processes of the store, or locks its file, opens the gates, and lets it go on later."""
        if self.system.file:
            with sqlite3.connect(self._folder / self.system.file, isolation_level=None) as lock:
                lock.execute("BEGIN EXCLUSIVE")
                self._still([], seconds)
                lock.execute("ROLLBACK")
            lock.close()
            self.resume()
        else:
            self._still(self.store.order("pids").get("answer") or group_of(self.store), seconds)

    def change_code(self, change: str) -> None:
        """Puts the lines of a change into the code, or takes them out again by ``""``."""
        for path in self._code.glob("*.py"):
            text = (HERE / "adapters" / path.name).read_text()
            path.write_text(text.replace(f"# {change}: ", "") if change else text)
        if not self.system.worker:
            self.store.order("deploy")

    def finish(self, seconds: float = PROMISED_END_S) -> dict[str, Any]:
        """Waits for the end; returns what there is to say of the play."""
        waits = self.system.waits(self.setting, self.play)
        answer = self._wait_for_answer(WAITS_S if waits else seconds)
        waited, again = waits and answer is None, None
        if waited:
            again = self._repair()
        self.let(1)
        answer, waited = (again, again is not None) if waited else (answer, False)
        verdict = judge(self.effects.all, self.faults, self.workflow.expected, answer, waits=waited)
        since = None
        if self.faults:  # nothing can go on before the store is back
            since = self.faults[-1].end if self.play.fault.__name__ == "away" else self.faults[-1].begin
        return {
            "result": verdict.result,
            "repeated": verdict.repeated,
            "missing": verdict.missing,
            "unknown": verdict.unknown,
            "answer": answer,
            "goes on": None if since is None else goes_on(self.effects.all, since),
            "late": self._late(),
            "acts": sorted(set(self.acts)),
            "errors": self.errors[-3:],
            "faults": [[one.begin, one.end] for one in self.faults],
        }

    def end(self) -> None:
        """Ends all processes."""
        for worker in self._workers:
            worker.kill()
        for process in (self._driver, self.store):
            process.end()
        self.effects.stop()

    def _process(self, *words: str, **more: str) -> Process:
        command = [self.system.python, str(self._code / f"{self.system.adapter}.py"), *words]
        return Process(command, self._environment | more, self._code, self._folder / f"{words[0]}.log")

    def _order(self, *words: object) -> Any:  # noqa: ANN401 - JSON
        return self._told(*words).get("answer")

    def _told(self, *words: object) -> dict[str, Any]:
        told = self._driver.order(*words)
        if "error" in told and told["error"] not in self.errors:
            self.errors.append(told["error"])
        return told

    def _is_at(self, name: str, phase: str) -> bool:
        same = [one for one in self.effects.all if one.name == name and not one.dropped]
        return any(getattr(one, phase) is not None for one in same)

    def _pump(self, reached: Any, seconds: float) -> None:  # noqa: ANN401 - a predicate
        until = time.monotonic() + seconds
        while not reached() and (left := until - time.monotonic()) > 0:
            self._send_signals()
            self.effects.wait(reached, min(left, POLL_S))

    def _send_signals(self) -> None:
        """Sends what is due: each event a second after its effect, and again if the workflow still waits."""
        for number, (after, name, value) in enumerate(self.workflow.signals):
            if self.signal_early and number == 0 and name not in self._sent and self.effects.all:
                self._signal(name, value)
            done = [one.answered for one in self.effects.all if one.name == after and one.answered is not None]
            if done and self.effects.now() > done[-1] + SIGNAL_AFTER_S and name not in self._sent:
                self._signal(name, value)
                if self.signal_twice:
                    self._signal(name, value)

    def _signal(self, name: str, value: str) -> None:
        address = next((one.address for one in reversed(self.effects.all) if one.address), "")
        if "error" not in self._told("signal", "run", name, value, address):
            self._sent[name] = self.effects.now()

    def _wait_for_answer(self, seconds: float) -> str | None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            answer = self._order("result", "run")
            if answer is not None:
                return str(answer)[:300]
            if self.signal_early and not self._again and self._asks_again():
                self._again = True
                self.acts.append("the event is sent again")
                self._signal(*self.workflow.signals[0][1:])
            self.let(POLL_S)
        return None

    def _asks_again(self) -> bool:
        after, name, _ = self.workflow.signals[0]
        asked = [one.answered for one in self.effects.all if one.name == after and one.answered is not None]
        return name in self._sent and bool(asked) and self.effects.now() > asked[-1] + SIGNAL_AGAIN_S

    def _repair(self) -> str | None:
        """Does what the documents say that the system waits for."""
        if "code" in self.play.name:
            for worker in self._workers:
                worker.end()
            self._workers.clear()
            self.change_code("")
            self.acts.append("the old code is started")
        else:
            self.acts.append("the lost machine is started")
        self.start_worker("a")
        return self._wait_for_answer(PROMISED_END_S)

    def _late(self) -> float | None:
        first, behind = self.workflow.nap
        begins = [one.answered for one in self.effects.all if one.name == first and one.answered is not None]
        ends = [one.asked for one in self.effects.all if one.name == behind]
        return round(ends[0] - begins[0] - self.nap_s, 1) if begins and ends else None

    def _still(self, pids: list[int], seconds: float) -> None:
        began = self.effects.now()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        self.effects.open()
        time.sleep(seconds)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.faults.append(Fault(began, self.effects.now()))


def play_once(system: System, setting: str, play: Play, folder: Path) -> dict[str, Any]:
    """Plays it; returns what there is to say, with the effects as rows of a log."""
    load = os.getloadavg()[0]
    try:
        scene = Scene(system, setting, play, folder)
    except Failed as error:
        return {
            "play": play.number,
            "name": play.name,
            "result": "broken",
            "errors": [f"{error}: its logs are in .a2a/side"],
        }
    try:
        try:
            play.fault(scene)
            told = scene.finish()
        except Failed as error:  # what the fault waits for has not come: the system does not go on
            scene.errors.append(str(error))
            told = scene.finish(POLL_S)
    finally:
        scene.end()
    rows = [[one.name, one.pid, one.asked, one.done, one.answered] for one in scene.effects.all]
    print(f"{system.name} {setting} {play.number} {play.name}: {told['result']}", file=sys.stderr, flush=True)
    return {"play": play.number, "name": play.name, "load": round(load, 1), **told, "log": rows}
