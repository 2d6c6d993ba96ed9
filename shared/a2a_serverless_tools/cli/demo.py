"""The demo: it sends a task, closes the connection, and learns the rest from webhooks.

First a chain: the orchestrator has other agents outline, write and summarise the text. Then a picture, and its
refinement in the same conversation. Cards, sends and gets go through the emulator's REST API to the deployed api
function, so a wrong route in the template fails the demo. The webhooks come from the deployed notifier; only verified
ones count.
"""

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from a2a_serverless.client import Client, discover, text_message
from a2a_serverless.domain.model import JsonObject
from a2a_serverless.protocol.v1 import Message, Role, Task, TaskState
from a2a_serverless_tools.cli.demo_run import DemoRun, attribute_failure, running_stack
from a2a_serverless_tools.cli.files import save
from a2a_serverless_tools.cli.following import SETTLED, make_request
from a2a_serverless_tools.cli.inbox import InboxClient, InboxEntry
from a2a_serverless_tools.cli.terminal import one_line
from a2a_serverless_tools.cli.timeline import Phase, draw
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.progress import spinner

CHAIN = "orchestrator"
CHAIN_MAKES = ("outline.json", "document.md", "summary.md")
PAINTER = "image"
SAILBOAT = "Generate an image of a sailboat on the ocean"
REFINEMENT = "Please modify the sailboat to be red"
FIXED = 50  # width of a webhook's line without the column "content"
WIDEST = 60


@dataclass(frozen=True)
class DemoInput:
    """The text that the agents write about, and the file that it came from."""

    path: Path
    text: str
    media_type: str | None


def run_demo(run: DemoRun, source: DemoInput) -> JsonObject:
    """Runs the demo and returns a report. Raises StackError, which says what failed and where the log is."""
    began = time.time()
    with running_stack(run) as running:
        run.console.print(f"The stack is up after {time.time() - began:.1f} s.\n", style="bold")
        return run_on_stack(run, running.deployment.rest_url, running.receiver.url, source)


def run_on_stack(run: DemoRun, rest_url: str, receiver_url: str, source: DemoInput) -> JsonObject:
    """Runs the demo on a stack that is up, and returns a report."""
    inbox = InboxClient(receiver_url, run.cli.transport)
    chain = _find_agent(run, f"{rest_url}/{CHAIN}")
    title = f"Sending {source.path.name}, {len(source.text):,} characters"
    task = _hand_in(run, chain, inbox, text_message(source.text, source.media_type), title)
    files = _fetch(run, chain, task, f"{source.path.stem}.", CHAIN_MAKES)
    _print_timeline(run)
    pictures = _make_pictures(run, _find_agent(run, f"{rest_url}/{PAINTER}"), inbox)
    return _report(run, task, files, pictures)


def _make_pictures(run: DemoRun, client: Client, inbox: InboxClient) -> list[Path]:
    """Makes a picture and a refinement: a new task in the same context, which does not change the first picture."""
    first = _hand_in(run, client, inbox, text_message(SAILBOAT), f'Sending "{SAILBOAT}"')
    pictures = _fetch(run, client, first, "first.")
    message = text_message(REFINEMENT, context_id=first.context_id)
    refined = _hand_in(run, client, inbox, message, f'Sending "{REFINEMENT}" in the same conversation')
    return pictures + _fetch(run, client, refined, "red.")


def _find_agent(run: DemoRun, url: str) -> Client:
    """Finds the agent behind the REST API. Its card names the api on port 8000, so the URL is replaced."""
    with run.step("card", "Reading the agent's card through the REST API", phase="card") as remarks:
        remote = discover(url, run.cli.transport)
        remarks.append(remote.card.name)
    return replace(remote.client, url=url)


def _hand_in(run: DemoRun, client: Client, inbox: InboxClient, message: Message, title: str) -> Task:
    """Sends a message and waits for the verified webhook of its task's end."""
    with run.step("send", title, phase="send") as remarks:
        with attribute_failure("receiver"):
            push = inbox.expect()
        task = client.send(make_request(message, push=push))
        if isinstance(task, Message):
            raise StackError("send", "the agent answered with a message and made no task")
        remarks += [f"{task.status.state}", "connection closed"]
    run.console.print(f"  task {task.id}", style="dim", markup=False)
    phase = run.phases[-1]
    entries = _listen(run, inbox, task.id, phase.begin)
    run.phases += _time_phases(entries, phase.end)
    if entries[-1].state != TaskState.COMPLETED:
        raise StackError("agent", f"the task is {entries[-1].says}")
    return task


def _time_phases(entries: list[InboxEntry], since: float) -> list[Phase]:
    """Returns phases: until the first webhook, then until the end of each artifact, then until the last webhook."""
    phases: list[Phase] = []
    for entry in entries:
        name = "first webhook" if not phases else "the end" if entry is entries[-1] else entry.artifact
        if name and phases and phases[-1].name == name:
            phases[-1] = replace(phases[-1], end=entry.at / 1000)
        elif name:
            begin = phases[-1].end if phases else since
            phases.append(Phase(name, begin, max(begin, entry.at / 1000)))
    return phases


def _listen(run: DemoRun, inbox: InboxClient, task_id: str, sent_at: float) -> list[InboxEntry]:
    """Prints the receiver's entries until a verified one has the task's end; returns the task's verified ones."""
    console, give_up, entries = run.console, time.monotonic() + run.timeout_s, list[InboxEntry]()
    console.print("\nWaiting for webhooks, without polling. Each line is one signed POST.", style="bold")
    console.print(_line(console, ("after", "event", "content", "key", "token"), Text("receiver")), style="dim")
    with spinner(console, "Waiting for webhooks"), attribute_failure("receiver"):
        for entry in inbox.entries(run.entries[-1].number if run.entries else 0):
            if entry:
                run.entries.append(entry)
                console.print(_entry_line(console, entry, sent_at))
            if entry and entry.verified and entry.task_id == task_id:
                entries.append(entry)
                if entry.state in SETTLED:
                    break
            if time.monotonic() > give_up:
                number = max((entry.event for entry in entries if entry.event), default=None)
                last = f"the last verified one was event {number}" if number else "there was none"
                why = f"no verified webhook had the task's end within {run.timeout_s:.0f} s; {last}"
                raise StackError("webhooks", why)
    console.print()
    return entries


def _fetch(run: DemoRun, client: Client, submission: Task, prefix: str, names: tuple[str, ...] = ()) -> list[Path]:
    """Fetches the finished task and saves its artifacts. ``names`` are the names of artifacts that it must have."""
    with run.step("get", "Fetching the task with GetTask", phase="GetTask") as remarks:
        task = client.get(submission.id)
        if task.status.state is not TaskState.COMPLETED or not task.artifacts:
            raise StackError("get", f"the task is {task.status.state} with {len(task.artifacts)} artifacts")
        missing = set(names) - {artifact.name for artifact in task.artifacts}
        if missing:
            messages = [one for one in (*task.history, task.status.message) if one and one.role is Role.AGENT]
            reason = messages[-1].text() if messages else "it does not say why"
            raise StackError("agent", f"{', '.join(sorted(missing))} is missing: {reason}")
        remarks += [str(task.status.state), f"{len(task.artifacts)} artifact{'s' if len(task.artifacts) > 1 else ''}"]
    with run.step("out", "Saving what it made") as remarks:
        files = save(task.artifacts, run.out, prefix)
        remarks.extend(map(str, files))
    run.saved += files
    return files


def _print_timeline(run: DemoRun) -> None:
    verified = sum(entry.verified for entry in run.entries)
    total = run.phases[-1].end - run.phases[0].begin
    run.console.print(f"\n{verified} verified webhooks in {total:.1f} s, and no open connection:", style="bold")
    for line in draw(run.phases):
        run.console.print(f"  {line}", markup=False)
    run.console.print()


def _entry_line(console: Console, entry: InboxEntry, sent_at: float) -> Text:
    after = f"+{entry.at / 1000 - sent_at:.1f} s"
    event = "" if entry.event is None else str(entry.event)
    if entry.why:
        verdict = Text(f"refused\n{'':10}{one_line(entry.why, 100)}", "red")
    else:
        verdict = Text("verified", "green") if entry.verified else Text(entry.outcome, "dim")
    return _line(console, (after, event, entry.says, entry.kid, entry.jti), verdict)


def _line(console: Console, cells: tuple[str, str, str, str, str], verdict: Text) -> Text:
    """Formats one line of the table of webhooks. The column "content" gets the remaining width."""
    after, event, says, kid, jti = cells
    room = min(max(console.width - FIXED, 20), WIDEST)
    what = Text(one_line(says, room))
    what.truncate(room, overflow="ellipsis", pad=True)  # in terminal cells: a Chinese character takes two
    return Text.assemble(f"{after:>8}  {event:>5}  ", what, f"  {kid[:8]:8}  {jti[:8]:8}  ", verdict)


def _report(run: DemoRun, task: Task, files: list[Path], pictures: list[Path]) -> JsonObject:
    notifications = [asdict(entry) | {"verified": entry.verified} for entry in run.entries]
    for entry in notifications:
        del entry["view"]
    return {
        "taskId": task.id,
        "files": [str(path) for path in files],
        "pictures": [str(path) for path in pictures],
        "notifications": [*notifications],
        "phases": [{"name": phase.name, "seconds": round(phase.seconds, 3)} for phase in run.phases],
    }
