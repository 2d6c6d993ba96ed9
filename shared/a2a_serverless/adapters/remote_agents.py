"""Calls other agents over A2A (1.0 or 0.3), by names that the operator's configuration maps to base URLs.

These URLs come from configuration, so the checks for clients' URLs do not apply to them; but an agent card may not
point to another origin than the configured one. All calls use the deployment's credentials. So the name of an owner's
context at another agent is one that no other owner can choose.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar

from a2a_serverless.adapters.agent_credentials import Redactor
from a2a_serverless.client import Client, HttpError, Transport, Unreachable, discover, open_request
from a2a_serverless.client.errors import SkippedContent, log_skipped
from a2a_serverless.domain import trace as traces
from a2a_serverless.domain.agent import WEBHOOK_EXTENSIONS
from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.digests import digest
from a2a_serverless.domain.errors import (
    A2AError,
    InternalError,
    InvalidAgentResponse,
    MethodNotFound,
    Overloaded,
    PushNotSupported,
    TaskNotCancelable,
    TaskNotFound,
    UnsupportedOperation,
)
from a2a_serverless.domain.origins import origin_of
from a2a_serverless.domain.remotes import remote_name
from a2a_serverless.engine.acts import no_secret
from a2a_serverless.http_client.sockets import always
from a2a_serverless.http_client.transport import ResponseTimeout
from a2a_serverless.ports.agents import AgentUnavailable, TaskForgotten
from a2a_serverless.protocol.v1 import (
    Message,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from a2a_serverless.adapters.agent_credentials import AgentCredentials
    from a2a_serverless.adapters.remote_auth import RemoteAuth
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.http_client.transport import ClientRequest, ClientResponse
    from a2a_serverless.protocol.v1 import StreamContent
    from a2a_serverless.protocol.v1_card import AgentCard
    from a2a_serverless.store.stores import ContentStore

M = TypeVar("M", bound="StreamContent")

logger = logging.getLogger(__name__)

NOT_ADMITTED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
NO_STREAMS: Final = frozenset({404, 405, 406, 501})
"""The refusals of a stream by servers that have none."""
LATER: Final = frozenset({408, 409, 425, 429})
"""The refusals (4xx) after which the same request may succeed. So may it after every 5xx."""
WAIT_S: Final = 300
"""How long an answer to a mirror's message, or the next item of its stream, is waited for."""


class A2ARemoteAgents:
    """``ports.RemoteAgents``. ``siblings`` and ``others`` map agent names to base URLs; ``others`` win on a collision.

    ``siblings`` belong to this deployment: their protocol is known, ``agents`` are their descriptions, and
    ``service_tokens`` returns the headers with which they serve a caller. The protocol of ``others`` comes from their
    cards; only they receive ``credentials``. Files in ``contents`` are sent to ``others`` as links. An agent whose card
    offers no push notifications, or that refuses them, gets no webhook: its task is read instead. The ``agents`` that
    are mirrors have remote agents, which ``read_secret`` gives the credentials for.
    """

    def __init__(  # noqa: PLR0913 - the parts of the deployment
        self,
        siblings: Mapping[str, str],
        others: Mapping[str, str] | None = None,
        service_tokens: Callable[[Caller], Mapping[str, str]] = lambda _: {},
        transport: Transport = open_request,
        credentials: AgentCredentials | None = None,
        contents: ContentStore | None = None,
        agents: Mapping[str, Agent] | None = None,
        read_secret: Callable[[str], str] = no_secret,
    ) -> None:
        self._others = dict(others or {})
        self._siblings = {name: url for name, url in siblings.items() if name not in self._others}
        self._agents = {name: agent for name, agent in (agents or {}).items() if name in self._siblings}
        self._service_tokens = service_tokens
        self._transport = transport
        self._contents = contents
        self._outward = credentials.wrap(transport) if credentials else transport
        self._credentials = credentials
        self._clients = {name: Client(url, transport) for name, url in self._siblings.items()}
        self._remotes = {remote_name(name): one.remote for name, one in (agents or {}).items() if one.remote}
        self._auths: dict[str, RemoteAuth] = {}
        for name, remote in self._remotes.items():
            from a2a_serverless.adapters.remote_auth import RemoteAuth  # only mirrors need it

            self._auths[name] = auth = RemoteAuth(remote.auth, read_secret)
            interface = (remote.tenant or None, remote.version, remote.binding)
            self._clients[name] = Client(remote.url, auth.wrap(transport, remote.url), {}, *interface)
        self._without_push = {name for name, remote in self._remotes.items() if not remote.push}
        self._without_streams = set[str]()
        self._headers: dict[str, str] = {}
        self._goes_on: Callable[[], bool] = always

    def for_run(self, trace: str, goes_on: Callable[[], bool]) -> A2ARemoteAgents:
        remote_agents = copy(self)
        remote_agents._goes_on = goes_on  # noqa: SLF001 - our own
        remote_agents._headers = {traces.HEADER: trace} if trace else {}  # noqa: SLF001 - our own
        return remote_agents

    def address(self, agent: str) -> str:
        urls = self._siblings | self._others | {name: remote.url for name, remote in self._remotes.items()}
        if agent not in urls:
            # The client of a task that fails of it reads the text; only the log names the deployment's agents.
            logger.error("no such agent", extra={"agent": agent, "agents": sorted(urls)})
            raise AgentCallFailed(f"There is no agent {agent!r} in the directory.")
        return urls[agent]

    def card(self, agent: str) -> AgentCard:
        url = self.address(agent)
        transport = self._transport if agent in self._siblings else self._outward

        def send(call: ClientRequest) -> AbstractContextManager[ClientResponse]:
            return transport(replace(call, goes_on=self._goes_on))

        with self._failing(agent):
            discovery = discover(url, send)
        origin = origin_of(discovery.client.url)
        if origin != origin_of(url):
            raise AgentCallFailed(f"The card of the agent {agent!r} points to another origin, {origin}.")
        self._clients.setdefault(agent, replace(discovery.client, transport=transport))
        if not discovery.card.capabilities.push_notifications:
            self._without_push.add(agent)
        return discovery.card

    def tags(self) -> dict[str, tuple[str, ...]]:
        from a2a_serverless.protocol.ai_catalog import tags_of  # only agents that look for others need it

        tags = {name: tags_of(agent.skills) for name, agent in self._agents.items()}
        for name in self._others:
            with suppress(AgentCallFailed):  # an unreachable agent elsewhere is left out
                tags[name] = tags_of(self.card(name).skills)
        return tags

    def send(
        self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig
    ) -> Task | Message:
        message = message if agent in self._siblings else self._for_elsewhere(caller, message)
        with self._client(caller, agent) as client:
            if self.has_push(agent):
                with suppress(PushNotSupported):  # although its card offers them; nothing was stored
                    states = client.with_extensions(WEBHOOK_EXTENSIONS["states"].uri)
                    return self._without_secrets(agent, states.send(_request(message, callback)))
                self._without_push.add(agent)
            request = _request(message, None, at_once=agent not in self._siblings)
            return self._without_secrets(agent, client.send(request))

    def stream(
        self,
        caller: Caller,
        agent: str,
        request: SendMessageRequest,
        extensions: Sequence[str],
        goes_on: Callable[[], bool] = always,
    ) -> Generator[StreamContent]:
        request = request.model_copy(update={"message": self._for_elsewhere(caller, request.message)})
        with self._client(caller, agent) as bare:
            client = replace(bare.with_extensions(*extensions), seconds=WAIT_S, goes_on=goes_on)
            if self.has_push(agent):
                with suppress(PushNotSupported):  # although its card offers them; nothing was stored
                    yield from self._items(client, agent, request)
                    return
                self._without_push.add(agent)
            without = request.configuration.model_copy(update={"task_push_notification_config": None})
            yield from self._items(client, agent, request.model_copy(update={"configuration": without}))

    def _items(self, client: Client, agent: str, request: SendMessageRequest) -> Iterator[StreamContent]:
        is_read = False
        if self._remotes[agent].streaming and agent not in self._without_streams:
            # After a refusal nothing was done; and after an empty stream the message id tells that it is the same.
            try:
                for event in client.stream(request):
                    is_read = True
                    yield self._without_secrets(agent, event.content)
            except (MethodNotFound, UnsupportedOperation, HttpError) as refused:
                if is_read or (isinstance(refused, HttpError) and refused.status not in NO_STREAMS):
                    raise
            if is_read or not client.goes_on():
                return
            self._without_streams.add(agent)
        yield self._without_secrets(agent, client.send(request))

    def subscribe(
        self, caller: Caller, agent: str, task_id: str, goes_on: Callable[[], bool] = always
    ) -> Generator[StreamContent]:
        with self._client(caller, agent, reads=True) as client:
            events = replace(client, seconds=WAIT_S, goes_on=goes_on).subscribe(task_id)
            yield from (self._without_secrets(agent, event.content) for event in events)

    def _for_elsewhere(self, caller: Caller, message: Message) -> Message:
        """The message with links to stored files, and with a context id that only this caller has.

        An answer to a task has the context id that the other agent gave it. All owners share the credentials for an
        agent elsewhere, and a client may choose any name for its context.
        """
        from a2a_serverless.services.content_links import resolve_contents  # only agents that call others need it

        message = resolve_contents(self._contents, caller.principal, message)
        if message.context_id is None or message.task_id is not None:
            return message
        return message.model_copy(update={"context_id": digest([caller.principal, message.context_id])[:32]})

    def has_push(self, agent: str) -> bool:
        return agent not in self._without_push

    def keeps_message_ids(self, agent: str) -> bool:
        return agent in self._siblings

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        with self._client(caller, agent, reads=True) as client:
            task = client.get(task_id, history_length=0)
            return self._without_secrets(agent, task)

    def cancel(self, caller: Caller, agent: str, task_id: str) -> None:
        with self._client(caller, agent) as client:
            try:
                client.cancel(task_id)
            except (TaskNotFound, TaskNotCancelable, UnsupportedOperation):
                return
            except InvalidAgentResponse as answer:  # the task in it is not needed, and a repeat would get the same
                reason = self._redactor(agent).text(str(answer))
                logger.warning("the answer to a cancel is not A2A", extra={"agent": agent, "reason": reason})
            except HttpError as refused:
                if agent not in self._siblings or refused.status not in NOT_ADMITTED:
                    raise  # a sibling that refuses the caller will always refuse it, so its task is not canceled

    @contextmanager
    def _client(self, caller: Caller, agent: str, *, reads: bool = False) -> Iterator[Client]:
        """The client for an agent, whose card is read once; errors in the block become AgentCallFailed."""
        if agent not in self._clients:
            self.card(agent)
        service_tokens = self._service_tokens(caller) if agent in self._siblings else {}
        remote = self._remotes.get(agent)
        session = {remote.session_header: digest(caller.principal)} if remote and remote.session_header else {}
        with self._failing(agent, reads=reads):
            headers = {**self._headers, **service_tokens, **session}
            client = replace(self._clients[agent], headers=headers, goes_on=self._goes_on)
            yield replace(client, on_skipped=partial(self._log_skipped, agent))

    def _log_skipped(self, agent: str, content: SkippedContent) -> None:
        redact = self._redactor(agent).text
        log_skipped(replace(content, skipped=tuple(map(redact, content.skipped)), beginning=redact(content.beginning)))

    def _redactor(self, agent: str) -> Redactor:
        """Removes the secrets that were sent to the agent from what it says; none for an agent of this deployment."""
        if agent in self._auths:
            return self._auths[agent].redactor
        return self._credentials.redactor if self._credentials and agent not in self._siblings else Redactor(())

    def _without_secrets(self, agent: str, item: M) -> M:
        return self._redactor(agent).item(item)

    @contextmanager
    def _failing(self, agent: str, *, reads: bool = False) -> Iterator[None]:
        def redact(text: str) -> str:
            return self._redactor(agent).text(text)

        try:
            yield
        except Unreachable as error:
            text = f"The agent {agent!r} could not be reached: {error.why}."
            raise AgentUnavailable(text, is_slow=isinstance(error, ResponseTimeout)) from error
        except InvalidAgentResponse as error:
            raise AgentCallFailed(
                f"The agent {agent!r} gave an answer that is not A2A: {redact(str(error))}"
            ) from error
        except (A2AError, HttpError) as error:
            if _is_temporary(error, repeats=reads or agent in self._siblings):
                text = f"The agent {agent!r} cannot answer now: {redact(str(error))}"
                raise AgentUnavailable(text, getattr(error, "retry_after_s", None) or 0) from error
            if isinstance(error, TaskNotFound):
                raise TaskForgotten(f"The agent {agent!r} does not know the task any more.") from error
            is_revoked = (
                isinstance(error, HttpError) and error.status == HTTPStatus.UNAUTHORIZED and agent in self._siblings
            )
            why = "the API key that the task was sent with has been revoked" if is_revoked else redact(str(error))
            raise AgentCallFailed(f"The agent {agent!r} refused: {why}") from error


def _is_temporary(error: A2AError | HttpError, *, repeats: bool) -> bool:
    """Whether a later try may succeed. After an internal error (-32603) or -32000 it may only if it ``repeats``.

    A task can be read again, and the agents of this deployment recognise a repeated message. Another agent has refused
    the message.
    """
    if isinstance(error, HttpError):
        return error.status in LATER or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return repeats and isinstance(error, InternalError | Overloaded)


def _request(
    message: Message, callback: TaskPushNotificationConfig | None, *, at_once: bool = True
) -> SendMessageRequest:
    """The request that sends the message. The answer comes ``at_once``, or when the task has ended."""
    configuration = SendMessageConfiguration(return_immediately=at_once, task_push_notification_config=callback)
    return SendMessageRequest(message=message, configuration=configuration)
