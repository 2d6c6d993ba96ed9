"""The process of ``dev``: the servers of the api and of the webhook receiver, and what AWS does between functions."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
import time
from contextvars import Context
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse

from a2a_serverless.aws.process import make_tracer
from a2a_serverless.domain.agent_errors import AgentCallFailed, BudgetExceeded, TaskFailed, TaskRejected
from a2a_serverless.domain.current_task import RAISED, Raised
from a2a_serverless.domain.loopback import LOOPBACK
from a2a_serverless.http.api import ANYBODY, Console
from a2a_serverless.http.application import ApplicationError
from a2a_serverless.http.hosting import Hosted
from a2a_serverless.ports.tracing import OTEL_HEADERS_SECRET
from a2a_serverless.services.key_rotation import rotate_when_old
from a2a_serverless.services.sweep import sweep
from a2a_serverless.testing.rehearsal import read_unfinished, sample
from a2a_serverless.testing.schedules import Ticker, schedules_of
from a2a_serverless_tools.dev import SAMPLES
from a2a_serverless_tools.dev.blocking import BlockedLoop, LoopWatch, WaitingAgent
from a2a_serverless_tools.dev.loading import (
    AgentsNotLoaded,
    Loaded,
    forget_compiled,
    format_error,
    is_raised_in,
    load_served,
    places_of_modules,
)
from a2a_serverless_tools.dev.receivers import ReceiverWatch
from a2a_serverless_tools.dev.rehearsals import ProjectNotLoaded, rehearse_tasks
from a2a_serverless_tools.dev.watching import watch_project
from a2a_serverless_tools.local.deployment import LocalDeployment
from a2a_serverless_tools.local.dev_log import DevLog
from a2a_serverless_tools.local.edge import find_documents, refuse_foreign_pages
from a2a_serverless_tools.local.server import Server, listen
from a2a_serverless_tools.local.state import State, StateUnreadable
from a2a_serverless_tools.project import FILE, ProjectError, local_otel, otel_variables, read_project
from a2a_webhook_receiver.app import build_app
from a2a_webhook_receiver.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.http.application import Application
    from a2a_serverless.testing.rehearsal_report import Rehearsal
    from a2a_serverless_tools.local.server import Listener
    from a2a_serverless_tools.project import Project

SWEEP_S: Final = 60.0
ROTATE_S: Final = 3600.0
LOOK_S: Final = 0.5
TICK_S: Final = 1.0
FLUSH_S: Final = 1.0
REHEARSALS: Final = ("POST", "/rehearsals")
LEAVE_S: Final = 2.0

logger = logging.getLogger(__name__)


class RehearsalOptions(NamedTuple):
    """So many ``samples`` of tasks that wait for the same are played at most; ``show`` also shows contents."""

    samples: int = SAMPLES
    show: bool = False


_RehearsalOptions: Final = TypeAdapter(RehearsalOptions)


class Reporter(Protocol):
    """Shows a developer what happens. Its methods are called in several threads."""

    def started(self, dev: Dev) -> None:
        """The servers answer."""

    def event(self, agent: str, task: str, event: Event) -> None:
        """A task has changed."""

    def failed(self, task: str, traceback: str, reference: str) -> None:
        """An agent has raised an error that it does not mean for its client, who gets the ``reference`` ("": none)."""

    def reloaded(self, agents: tuple[Agent, ...], seconds: float) -> None:
        """The agents were imported again."""

    def not_loaded(self, error: AgentsNotLoaded | ProjectError) -> None:
        """The changed agents cannot be imported; the ones of before go on."""

    def rehearsed(self, rehearsals: list[Rehearsal]) -> None:
        """The tasks that wait or run were played against the new code."""

    def blocked(self, loop: BlockedLoop) -> None:
        """An agent blocks its event loop."""

    def waiting(self, waiting: WaitingAgent) -> None:
        """An agent waits for something that may never come."""


def run_dev(  # noqa: PLR0913 - what a developer chooses
    project: Project,
    folder: Path,
    port: int,
    receiver_port: int,
    reporter: Reporter,
    others: Mapping[str, str],
    *,
    fresh: bool = False,
) -> None:
    """Serves the project's agents until the process is interrupted.

    The tasks are kept in ``folder``; ``fresh`` forgets those that are there. The ports are on 127.0.0.1; 0 picks one.
    ``others`` are agents elsewhere that agents may call, by name. Raises PortInUse, AgentsNotLoaded, StateInUse and
    StateUnreadable.
    """
    with listen(port) as api, listen(receiver_port) as receiver:
        state = State(folder / "state.db", fresh=fresh)
        for file in folder.glob("receiver.db*") if fresh else ():
            file.unlink()
        try:
            dev = Dev(project, api, receiver, reporter, others, state, folder)
        except sqlite3.DatabaseError as error:
            raise StateUnreadable(f"A file in {folder} is damaged: {error}.") from error
        try:
            asyncio.run(dev.serve())
        except KeyboardInterrupt:
            pass
        finally:
            dev.deployment.close()
            _leave_soon()


def _leave_soon() -> None:
    """Ends the process although an agent may block its thread, which Python would wait for."""
    leaving = threading.Timer(LEAVE_S, os._exit, [0])
    leaving.daemon = True
    leaving.start()


class Dev:
    """One run of ``dev``."""

    def __init__(  # noqa: PLR0913 - what a run has
        self,
        project: Project,
        api: Listener,
        receiver: Listener,
        reporter: Reporter,
        others: Mapping[str, str],
        state: State,
        folder: Path,
    ) -> None:
        self.project, self._reporter, self._watch = project, reporter, LoopWatch()
        self.agents, application = load_served(project)
        self._is_loaded, self._mount = True, application.path if application else ""
        self._hosted = self._host(application)
        self.url, self.receiver_url = _url(api) + self._mount, _url(receiver)
        receiver_app = make_receiver(self.url, self.receiver_url, str(folder / "receiver.db"))
        self._sockets = {api: self._serve_api, receiver: receiver_app}
        agents = [self._watch.watch(agent) for agent in self.agents]
        self.deployment = LocalDeployment(
            agents,
            self.url,
            others=others,
            tracer=make_tracer(otel_variables(project) | {OTEL_HEADERS_SECRET: ""} | local_otel(project)),
            state=state,
        )
        documents = find_documents(project.environment | os.environ)
        self.deployment.console = Console(
            project.name, f"{self.receiver_url}/", documents, internals=True, log_lines=DevLog(folder).of_task
        )
        self._receivers = ReceiverWatch(self.deployment)
        self._rehearsals = refuse_foreign_pages(self._answer_rehearsals, LOOPBACK, ())
        self._ticker = Ticker(self.deployment.clock.now())
        self.deployment.deploy(*agents, prices=project.prices)
        self.deployment.on_event, self.deployment.on_error = self._on_event, self._on_error

    async def serve(self) -> None:
        """Serves until it is cancelled. Raises AgentsNotLoaded if the project's application does not start."""
        await self._start(self._hosted)
        servers = {Server(app): listener for listener, app in self._sockets.items()}
        serving = [asyncio.create_task(server.serve(sockets=[listener])) for server, listener in servers.items()]
        try:
            await asyncio.gather(*(server.ready.wait() for server in servers))
            await asyncio.gather(
                watch_project(self.project, self._on_change, self._begin),
                every(SWEEP_S, partial(sweep, self.deployment.sweeper)),
                every(ROTATE_S, lambda: rotate_when_old(self.deployment.rotation)),
                every(TICK_S, self._enqueue_ticks),
                every(LOOK_S, self._look_for_blocked),
                every(LOOK_S, self._receivers.look),
                every(FLUSH_S, self.deployment.tracer.flush),
            )
        finally:
            for server in servers:
                server.should_exit = True
            await asyncio.gather(*serving)
            await self._stop(self._hosted)

    def _begin(self) -> None:
        self._reporter.started(self)
        self.deployment.recover()
        threading.Thread(target=self.deployment.dispatch, name="dispatch", daemon=True).start()

    async def _serve_api(self, scope: Scope, receive: Receive, send: Send) -> None:
        verb, path = REHEARSALS
        is_ours = scope["type"] == "http" and (scope["method"], scope["path"]) == (verb, self._mount + path)
        await (self._rehearsals if is_ours else self._hosted or self._serve_agents)(scope, receive, send)

    async def _serve_agents(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.deployment.app(scope, receive, send)

    def _host(self, application: Application | None) -> Hosted | None:
        return Hosted(application.with_agents(self._serve_agents)) if application else None

    async def _start(self, hosted: Hosted | None) -> None:
        try:
            if hosted:
                await hosted.start()
        except Exception as error:
            raise AgentsNotLoaded(error, self.project.source.resolve()) from error

    async def _stop(self, hosted: Hosted | None) -> None:
        try:
            if hosted:
                await hosted.stop()
        except Exception:
            logger.exception("the application did not end well")

    async def _answer_rehearsals(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What ``a2a-serverless rehearse`` asks ``dev``."""
        try:
            options = _RehearsalOptions.validate_json(await Request(scope, receive).body())
            rehearsals = await asyncio.to_thread(self.rehearse, options)
            answer = JSONResponse([rehearsal.json_form() for rehearsal in rehearsals])
        except ValidationError as error:
            answer = JSONResponse({"error": str(error)}, HTTPStatus.BAD_REQUEST)
        except ProjectNotLoaded as error:
            answer = JSONResponse({"error": f"{error.text}{error}"}, HTTPStatus.CONFLICT)
        await answer(scope, receive, send)

    async def _on_change(self, files: set[Path]) -> None:
        places = places_of_modules(self.project.source.resolve())
        is_ours = any(file.is_relative_to(place) for file in files for place in places)
        if is_ours or not self._is_loaded or any(file.name == FILE for file in files):
            await self._reload(files)

    async def _reload(self, files: set[Path]) -> None:
        """Imports the project anew and deploys it; reports why, if that cannot be."""
        began = time.monotonic()
        try:
            agents, application = await asyncio.to_thread(self._load, files)
            hosted = self._host(application)
            await self._start(hosted)
        except (AgentsNotLoaded, ProjectError) as error:
            self._is_loaded = False
            self._reporter.not_loaded(error)
            return
        before, self._hosted = self._hosted, hosted
        await self._stop(before)
        await asyncio.to_thread(self._deploy, agents, began)

    def _load(self, files: set[Path]) -> Loaded:
        forget_compiled(file for file in files if file.suffix == ".py")
        self.project = read_project(self.project.root)
        loaded = load_served(self.project)
        if (mount := loaded.application.path if loaded.application else "") != self._mount:
            moved = ApplicationError(f"the agents are now at {mount or '/'}: start `dev` again")
            raise AgentsNotLoaded(moved, self.project.source.resolve())
        return loaded

    def _deploy(self, agents: tuple[Agent, ...], began: float) -> None:
        self._is_loaded, self.agents = True, agents
        self.deployment.deploy(*map(self._watch.watch, agents), prices=self.project.prices)
        self._reporter.reloaded(agents, time.monotonic() - began)
        try:
            self._reporter.rehearsed(self.rehearse(RehearsalOptions(show=True)))
        except ProjectNotLoaded:
            logger.warning("not rehearsed")

    def rehearse(self, options: RehearsalOptions) -> list[Rehearsal]:
        """Plays tasks that wait or run against the code of the folder. Raises ProjectNotLoaded."""
        table = self.deployment.table
        tasks = sample(read_unfinished(table, table.items, table.blobs.get), options.samples)
        return [*rehearse_tasks(self.project.root, tasks, shows=options.show, reads_secrets=True)]

    def _on_event(self, key: TaskKey, event: Event) -> None:
        record = self.deployment.table.read_head(key)
        self._reporter.event(record.head.agent if record else "", key.task, event)

    def _on_error(self, key: TaskKey, error: BaseException, reference: str) -> None:
        source = self.project.source.resolve()
        is_meant = isinstance(error, BudgetExceeded | AgentCallFailed) or is_raised_in(error, source)
        if reference or not (isinstance(error, TaskFailed | TaskRejected) and is_meant):
            if not reference:  # the engine logs only what it does not tell the client
                logger.error("agent failed", extra={"task": key.task, RAISED: Raised(error)})
            # A context of its own, because what the terminal shows is no output of the run.
            Context().run(self._reporter.failed, key.task, format_error(error, source), reference)

    def _enqueue_ticks(self) -> None:
        for tick in self._ticker.due(schedules_of(self.agents), self.deployment.clock.now()):
            self.deployment.queue.enqueue(tick._replace(key=ANYBODY.key(tick.key.task)))

    def _look_for_blocked(self) -> None:
        for loop in self._watch.find_blocked():
            self._reporter.blocked(loop)
        for waiting in self._watch.find_waiting():
            self._reporter.waiting(waiting)


async def every(seconds: float, work: Callable[[], object]) -> None:
    """Does ``work`` in a thread again and again. An error is logged and does not end it."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await asyncio.to_thread(work)
        except Exception:
            logger.exception("scheduled work failed")


def make_receiver(issuer: str, url: str, replay_db: str = ":memory:") -> ASGIApp:
    """The webhook receiver with its inbox, as the local stack has it. The inbox is in memory."""
    settings = {"ISSUER": issuer, "AUDIENCE": f"{url}/webhook", "OPEN_REGISTRATION": "true", "REPLAY_DB": replay_db}
    return build_app(read_settings(settings | {"DOCUMENTS_URL": os.environ.get("DOCUMENTS_URL", "")}))


def _url(listener: Listener) -> str:
    return f"http://{LOOPBACK}:{listener.getsockname()[1]}"
