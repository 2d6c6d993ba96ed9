"""The main job, on real input: a task is sent, the line is closed, and from then on only webhooks speak.

The card, the send and the get go through the emulator's REST API to the deployed api function, so a wrong route in the
template fails the demo; the webhooks come from the deployed notifier. What was not verified does not count.
"""

import fcntl
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.cells import set_cell_size
from rich.console import Console
from rich.text import Text

from a2a_serverless.cli.files import save
from a2a_serverless.cli.inbox import Entry, Inbox
from a2a_serverless.cli.options import World
from a2a_serverless.cli.show import size_words
from a2a_serverless.cli.terminal import one_line
from a2a_serverless.cli.timeline import Phase, draw
from a2a_serverless.client import Client, Refused, Unreachable, discover, text_message
from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.model import Json, JsonObject, Message, PushRequest, SendRequest, Task, TaskState
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.stack import logs, processes, sam, session
from a2a_serverless.stack.errors import StackError
from a2a_serverless.stack.places import Places
from a2a_serverless.stack.progress import step

AGENT = "document"
SETTLED = {str(state) for state in TERMINAL | INTERRUPTED}
FIXED = 8 + 2 + 5 + 2 + 2 + 8 + 2 + 8 + 2 + 8  # what a webhook's line holds besides what it says
VERIFIED = {"accepted", "late", "challenge"}


@dataclass(frozen=True)
class Source:
    """What is written about: a text, and the name of the file that it came from."""

    path: Path
    text: str
    media_type: str | None


@dataclass
class Stage:
    """One run: where it happens, where it is told, and how long each part took."""

    world: World
    places: Places
    patience_s: float
    phases: list[Phase] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    @property
    def console(self) -> Console:
        return self.world.terminal.progress

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Notes how long the block took."""
        began = time.time()
        yield
        self.phases.append(Phase(name, began, time.time()))

    @contextmanager
    def part(self, name: str, title: str) -> Iterator[list[str]]:
        """Shows a step; what goes wrong in it is told as the fault of the part ``name``. Takes remarks."""
        remarks: list[str] = []
        with step(self.console, title) as say:
            try:
                yield remarks
            except (Unreachable, Refused, A2AError, OSError) as error:
                raise StackError(name, str(error)) from error
            for remark in remarks:
                say(remark)


def play(stage: Stage, source: Source) -> JsonObject:
    """Runs the demo; the result says what was done. Raises StackError, which says what failed and where the log is.

    Whatever happens, everything that was started is stopped.
    """
    began = time.time()
    with _alone(stage.places), _stoppable(), _cleaned_up(stage):
        running = session.up(stage.places, _options(), stage.console)
        ready = time.time() - began
        client = _meet(stage, running)
        task = _hand_in(stage, client, Inbox(running.receiver.url, stage.world.transport), source)
        files = _fetch(stage, client, task, source)
        _tell(stage, ready)
    return _report(stage, task, files)


def _meet(stage: Stage, running: session.Running) -> Client:
    url = f"{running.deployment.rest_url}/{AGENT}"
    with stage.phase("card"), stage.part("card", "Reading the agent's card through the REST API") as remarks:
        found = discover(url, stage.world.transport)
        remarks.append(found.card.name)
    return replace(found.client, url=url)  # the card names port 8000, which is there for streams and for use by hand


def _hand_in(stage: Stage, client: Client, inbox: Inbox, source: Source) -> Task:
    """Sends the task and listens until the webhooks have told its end."""
    with stage.part("receiver", "Telling the receiver what to expect"):
        push = inbox.expect()
    size = f"{len(source.text):,} characters"
    with stage.phase("send"), stage.part("send", f"Sending {source.path.name}, {size}") as remarks:
        task = _sent(client, source, push)
        remarks += [f"task {task.task_id} {task.status.state}", "connection closed"]
    heard = _listen(stage, inbox, task.task_id, stage.phases[-1].begin)
    stage.phases.append(Phase("first webhook", stage.phases[-1].end, heard[0].at / 1000))
    stage.phases.append(Phase("the others", heard[0].at / 1000, heard[-1].at / 1000))
    if heard[-1].state != TaskState.COMPLETED:
        raise StackError("agent", f"the task is {heard[-1].says}")
    return task


def _sent(client: Client, source: Source, push: PushRequest) -> Task:
    message = text_message(source.text, source.media_type)
    sent = client.send(SendRequest(message, return_immediately=True, push=push))
    if isinstance(sent, Message):
        raise StackError("send", "the agent answered with a message and made no task")
    return sent


def _listen(stage: Stage, inbox: Inbox, task_id: str, sent_at: float) -> list[Entry]:
    """Prints what the receiver got, until a verified webhook has told the task's end; returns the verified ones."""
    console, give_up = stage.console, time.monotonic() + stage.patience_s
    console.print("\nListening. Nobody polls: each line is one signed POST.", style="bold")
    console.print(_line(console, ("after", "event", "what it says", "key", "token"), Text("receiver")), style="dim")
    with console.status("Listening"):
        for entry in inbox.entries():
            if entry:
                stage.entries.append(entry)
                console.print(_entry_line(console, entry, sent_at))
            if entry and entry.verified and entry.task_id == task_id and entry.state in SETTLED:
                break
            if time.monotonic() > give_up:
                raise StackError("webhooks", _silence(stage))
    console.print()
    return [entry for entry in stage.entries if entry.verified]


def _silence(stage: Stage) -> str:
    told = [entry.event for entry in stage.entries if entry.verified and entry.event]
    last = f"the last verified one told event {max(told)}" if told else "there was not one"
    return f"no verified webhook told the task's end within {stage.patience_s:.0f} s; {last}"


def _fetch(stage: Stage, client: Client, sent: Task, source: Source) -> list[Path]:
    with stage.phase("GetTask"), stage.part("get", "Fetching the task with GetTask") as remarks:
        task = client.get(sent.task_id)
        remarks.append(str(task.status.state))
        remarks += [f"{artifact.name}: {size_words(artifact)}" for artifact in task.artifacts]
    with stage.part("out", "Saving the document") as remarks:
        if task.status.state is not TaskState.COMPLETED or not task.artifacts:
            raise StackError("get", f"the task is {task.status.state} with {len(task.artifacts)} artifacts")
        files = save(task, stage.places.root / "out", f"{source.path.stem}.")
        remarks += [str(stage.places.relative(path)) for path in files]
    return files


def _tell(stage: Stage, ready: float) -> None:
    verified = sum(entry.verified for entry in stage.entries)
    total = sum(phase.seconds for phase in stage.phases)
    stage.console.print(f"\n{verified} verified webhooks. {total:.1f} s, once the stack stood after {ready:.1f} s:")
    for line in draw(stage.phases):
        stage.console.print(f"  {line}", style="dim", markup=False)
    stage.console.print()


def _entry_line(console: Console, entry: Entry, sent_at: float) -> Text:
    after = f"+{entry.at / 1000 - sent_at:.1f} s"
    event = "" if entry.event is None else str(entry.event)
    if entry.outcome == "refused":
        verdict = Text(f"refused\n{'':10}{one_line(entry.why, 100)}", "red")
    else:
        verdict = Text("verified" if entry.outcome in VERIFIED else entry.outcome, "green" if entry.verified else "dim")
    return _line(console, (after, event, entry.says, entry.kid, entry.jti), verdict)


def _line(console: Console, cells: tuple[str, str, str, str, str], verdict: Text) -> Text:
    """One line of the table of webhooks. What it says gets what room there is."""
    after, event, says, kid, jti = cells
    room = min(max(console.width - FIXED, 20), 60)
    what = set_cell_size(one_line(says, room), room)
    return Text.assemble(f"{after:>8}  {event:>5}  {what}  {kid[:8]:8}  {jti[:8]:8}  ", verdict)


def _report(stage: Stage, task: Task, files: list[Path]) -> JsonObject:
    notifications: list[Json] = [
        {
            "event": entry.event,
            "state": entry.state,
            "kid": entry.kid,
            "jti": entry.jti,
            "outcome": entry.outcome,
            "verified": entry.verified,
            "why": entry.why,
        }
        for entry in stage.entries
    ]
    return {
        "taskId": task.task_id,
        "files": [str(stage.places.relative(path)) for path in files],
        "notifications": notifications,
        "seconds": {phase.name: round(phase.seconds, 3) for phase in stage.phases},
    }


def _options() -> session.Options:
    """The usual ports where they are free, any others where they are not: a demo is in nobody's way."""
    usual = session.Options()
    return session.Options(_free(usual.emulator_port), _free(usual.api_port), _free(usual.receiver_port))


def _free(port: int) -> int:
    try:
        return processes.claim_port("demo", port)
    except StackError:
        return processes.claim_port("demo", 0)


@contextmanager
def _alone(places: Places) -> Iterator[None]:
    """One demo at a time in a checkout: the second would stop what the first has started."""
    places.state.mkdir(parents=True, exist_ok=True)
    with (places.state / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StackError("demo", "another one runs in this checkout", remedy="wait until it ends") from error
        yield


@contextmanager
def _stoppable() -> Iterator[None]:
    """A polite end (SIGTERM) also stops what was started."""

    def stop(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _cleaned_up(stage: Stage) -> Iterator[None]:
    """Stops what an earlier demo left when it was killed, and in the end what this one has started."""
    session.down(stage.places, stage.console)
    try:
        yield
    except StackError as error:
        error.log = error.log or _keep_logs(stage.places)
        raise
    finally:
        session.down(stage.places, stage.console)


def _keep_logs(places: Places) -> Path | None:
    """The functions' logs in a file, because the emulator that holds them stops next."""
    if not any(process.name == "emulator" for process in processes.started(places)):
        return None
    path = places.log("functions")
    with path.open("w") as out:
        for function in sam.FUNCTIONS:
            out.writelines(f"[{function}] {line}\n" for line in logs.read(places, function))
    return places.relative(path)
