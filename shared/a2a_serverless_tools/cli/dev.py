"""The command ``dev``, and what it shows in the terminal."""

import json
import logging
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING, Annotated, TextIO, cast
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.text import Text

from a2a_serverless.adapters.logs import PRINT, PrintedLines
from a2a_serverless.domain.agent import Agent
from a2a_serverless.domain.current_task import raised_of
from a2a_serverless.domain.events import Event, StatusEvent
from a2a_serverless.domain.schedules import format_tick
from a2a_serverless_tools.cli.options import LOCAL_URL, CliContext
from a2a_serverless_tools.cli.terminal import STYLES, Explained, Terminal, neutral, one_line, quote_words

if TYPE_CHECKING:
    from a2a_serverless.testing.rehearsal_report import Rehearsal
    from a2a_serverless_tools.dev.blocking import BlockedLoop, WaitingAgent
    from a2a_serverless_tools.dev.loading import AgentsNotLoaded
    from a2a_serverless_tools.dev.server import Dev
    from a2a_serverless_tools.project import ProjectError

SHOWN = 100
PACKAGE = "a2a_serverless"
FIELDS = ("task", "agent", "agents", "schedule", "error", "reason", "status", "host")
Port = Annotated[
    int,
    typer.Option("--port", "--api-port", envvar="A2A_API_PORT", help="Port of the agents on 127.0.0.1; 0 picks one."),
]
ReceiverPort = Annotated[
    int, typer.Option(envvar="A2A_RECEIVER_PORT", help="Port of the webhook receiver and its inbox; 0 picks one.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Forget the tasks of earlier runs.")]


def dev(cli: CliContext, *, port: Port = 8000, receiver_port: ReceiverPort = 8010, fresh: Fresh = False) -> None:
    """Run the project's agents in this terminal, and reload them when a file is saved. Ctrl-C stops it.

    The agents are those of [tool.a2a-serverless] in pyproject.toml. Tasks, streams and signed webhooks work as on AWS.
    Tasks are kept in .a2a/dev: the next run goes on with them, also after a crash. Nobody signs in; only this machine
    can call. Agents get this terminal's environment variables.
    """
    from a2a_serverless.settings import read
    from a2a_serverless_tools.dev.loading import AgentsNotLoaded
    from a2a_serverless_tools.dev.server import run_dev
    from a2a_serverless_tools.local.dev_log import DevLog
    from a2a_serverless_tools.local.server import PortInUse
    from a2a_serverless_tools.local.state import StateInUse, StateUnreadable
    from a2a_serverless_tools.project import find_project
    from a2a_serverless_tools.stack import paths

    try:
        project = find_project()
        values = {name: str(value) for name, value in project.constants.items()} | dict(cli.environment)
        others = read({"AGENT_URLS": values.get("AGENT_URLS", "")}).agent_urls
        with _output(cli.terminal):
            here = paths.find(project.root, paths.state_folder(cli.environment)).dev
            folder = here.state
            logging.getLogger().addHandler(DevLog(folder).handler())
            run_dev(project, folder, port, receiver_port, DevTerminal(cli), others, fresh=fresh)
    except PortInUse as error:
        remedy = "give other ports with --port and --receiver-port, or end the program that uses it"
        cli.terminal.fail(Explained("PortInUse", str(error), remedy))
        raise typer.Exit(1) from error
    except StateInUse as error:
        remedy = "end the other `dev` of this project, or give this one another folder with A2A_STATE"
        cli.terminal.fail(Explained("StateInUse", str(error), remedy))
        raise typer.Exit(1) from error
    except StateUnreadable as error:
        cli.terminal.fail(Explained("StateUnreadable", str(error), "forget its tasks with --fresh"))
        raise typer.Exit(1) from error
    except AgentsNotLoaded as error:
        cli.terminal.fail(Explained("AgentsNotLoaded", f"{error.text}{error}"))
        raise typer.Exit(1) from error


def _output(terminal: Terminal) -> "redirect_stdout[TextIO]":
    """Shows what agents print and log, line by line; with --json on stderr, because stdout gets JSON."""
    out = sys.stderr if terminal.json else sys.stdout
    if terminal.json:
        terminal.out = neutral(Console(file=sys.stdout, highlight=False))
    logging.getLogger(PRINT).addHandler(logging.StreamHandler(out))
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Readable("%(levelname)s %(name)s: %(message)s"))
    handler.addFilter(lambda record: record.name != PRINT and not raised_of(record))  # they are shown
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for name in (PACKAGE, "uvicorn", "watchfiles", "a2a_webhook_receiver"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True, errors="replace")
    return redirect_stdout(cast("TextIO", PrintedLines(out)))


class _Readable(logging.Formatter):
    """A log line with the ids that it carries."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name in logging.Formatter
        fields = [f"{name}={value}" for name in FIELDS if (value := getattr(record, name, None)) is not None]
        return " ".join([super().formatMessage(record), *fields])


class DevTerminal:
    """Shows what happens: lines for people, or one JSON document per line. Implements ``dev.server.Reporter``."""

    def __init__(self, cli: CliContext) -> None:
        self._cli, self._terminal = cli, cli.terminal

    def started(self, dev: "Dev") -> None:
        from a2a_serverless_tools.stack import paths, processes

        with suppress(OSError):  # then `send` needs --url for another port than 8000
            state = paths.state_folder(self._cli.environment)
            url = urlsplit(dev.url)
            processes.announce(paths.find(dev.project.root, state).dev, "api", url.port or 0, url.path)
        command = send_command(self._cli, *example_message(dev.agents[0]), dev.url, dev.receiver_url)
        if self._terminal.json:
            agents = [{"id": agent.id, "name": agent.name, "url": f"{dev.url}/{agent.id}"} for agent in dev.agents]
            schedules = [{"schedule": name, "next": time} for name, time, _ in next_ticks(dev.agents)]
            self._data(
                "started", agents=agents, schedules=schedules, url=dev.url, inbox=f"{dev.receiver_url}/", send=command
            )
            return
        rows = [(agent.id, f"{dev.url}/{agent.id}  {one_line(agent.description, SHOWN)}") for agent in dev.agents]
        self._terminal.out.print(f"{dev.project.name}: agents on this machine only, tasks in .a2a/dev", style="bold")
        rows += [(f"  {name}", f"{time}  {text}") for name, time, text in next_ticks(dev.agents)]
        others = [("Console", f"{dev.url}/"), ("Inbox", f"{dev.receiver_url}/"), ("Try", command), ("Stop", "Ctrl-C")]
        self._terminal.rows([*rows, ("", ""), *others])

    def event(self, agent: str, task: str, event: Event) -> None:
        if isinstance(event, StatusEvent):
            text = event.message.text() if event.message else ""
            self._task(agent, task, event.state.value, text, str(STYLES.get(event.state, "")))
        elif not event.append:
            self._task(agent, task, "artifact", event.artifact.name or event.artifact.artifact_id, "dim")

    def failed(self, task: str, traceback: str, reference: str) -> None:
        from a2a_serverless.testing.deployment import format_failure

        text = traceback if self._terminal.json else format_failure(task, reference, traceback)
        self._trace("error", text, task=task, **({"reference": reference} if reference else {}))

    def reloaded(self, agents: tuple[Agent, ...], seconds: float) -> None:
        names = [agent.id for agent in agents]
        if self._terminal.json:
            self._data("reloaded", agents=[*names], seconds=round(seconds, 3))
        else:
            self._line(Text(f"reloaded {', '.join(names)} ({seconds:.2f} s)", style="green"))

    def not_loaded(self, error: "AgentsNotLoaded | ProjectError") -> None:
        self._trace("notLoaded", getattr(error, "text", f"{error}\n"))
        if not self._terminal.json:
            self._line(Text("not reloaded: the agents of before go on", style="red"))

    def rehearsed(self, rehearsals: "list[Rehearsal]") -> None:
        from a2a_serverless_tools.cli.rehearse import summary_of, texts_of

        others = [rehearsal for rehearsal in rehearsals if rehearsal.verdict != "fits"]
        if self._terminal.json:
            if rehearsals:
                self._data("rehearsed", tasks=[rehearsal.json_form() for rehearsal in rehearsals])
            return
        for text in texts_of(others):
            self._terminal.raw(f"{text}\n")
        if others:
            self._line(Text(f"{summary_of(rehearsals)} (docs/code-changes.md)", style="yellow"))

    def blocked(self, loop: "BlockedLoop") -> None:
        place = f"{loop.file}:{loop.line}"
        if self._terminal.json:
            self._data("blocked", agent=loop.agent, seconds=round(loop.seconds, 1), place=place, code=loop.code)
            return
        text = f"{loop.agent} blocks its event loop for {loop.seconds:.1f} s at {place}: {loop.code}"
        self._line(Text(text, style="yellow"))
        self._line(Text("  what helps: await asyncio.to_thread(function, ...), or a plain function as a step"))

    def waiting(self, waiting: "WaitingAgent") -> None:
        codes = [f"{code.file}:{code.line}" for code in waiting.codes]
        if self._terminal.json:
            self._data(
                "waiting",
                agent=waiting.agent,
                task=waiting.task,
                seconds=round(waiting.seconds),
                steps=waiting.steps,
                places=codes,
            )
            return
        where = f"in {', '.join(map(repr, waiting.steps))}" if waiting.steps else "outside of steps"
        self._line(
            Text(f"{waiting.agent}  {waiting.task}  has waited {where} for {waiting.seconds:.0f} s", style="yellow")
        )
        for code in waiting.codes:
            self._line(Text(f"  {code}"))
        if not waiting.steps:
            self._line(
                Text("  what helps: outside of steps wait with the task's methods only; put other waits into a step")
            )

    def _task(self, agent: str, task: str, state: str, text: str, style: str) -> None:
        if self._terminal.json:
            self._data("task", agent=agent, task=task, state=state, text=text)
            return
        suffix = f": {one_line(text, SHOWN)}" if text else ""
        self._line(Text.assemble(f"{agent}  {task}  ", (state, style), suffix))

    def _trace(self, kind: str, text: str, **fields: str) -> None:
        if self._terminal.json:
            self._data(kind, traceback=text, **fields)
        else:
            self._terminal.raw(text)

    def _line(self, text: Text) -> None:
        clock = time.strftime("%H:%M:%S")
        if self._terminal.out.is_terminal:
            self._terminal.out.print(Text.assemble((f"{clock}  ", "dim"), text), soft_wrap=True)
        else:
            self._terminal.raw(f"{clock}  {text.plain}\n")

    def _data(self, event: str, **fields: object) -> None:
        self._terminal.raw(json.dumps({"event": event, **fields}, ensure_ascii=False) + "\n")


def next_ticks(agents: Iterable[Agent]) -> Iterator[tuple[str, str, str]]:
    """Yields the schedules of agents: name, next time (UTC), message."""
    from a2a_serverless.testing.schedules import schedules_of, tick_times

    for key, schedule in schedules_of(agents).items():
        if at := next(tick_times(schedule, time.time_ns() // 1_000_000), None):
            yield key.task, format_tick(at), one_line(schedule.text, SHOWN)


def example_message(agent: Agent) -> tuple[str, str]:
    """Returns the agent's id, and the first line of an example of its skills in quotes for a shell."""
    message = next((example.splitlines()[0] for skill in agent.skills for example in skill.examples), "Hello")
    return agent.id, quote_words(message)


def send_command(cli: CliContext, agent: str, message: str, url: str, receiver_url: str) -> str:
    """Returns a command to copy, which sends a message to the agent at ``url`` with a webhook."""
    where = "" if url == LOCAL_URL else f" --url {url}"
    return f"{cli.program} send {quote_words(agent)} {message} --inbox {receiver_url}{where}"
