"""The agents of a deployment as remote agents, without HTTP: faults at a port reach the agent that calls."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from a2a_serverless.domain.agent import WEBHOOK_EXTENSIONS, Agent
from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.errors import A2AError, Overloaded, TaskNotCancelable, TooManyRequests
from a2a_serverless.ports.agents import AgentUnavailable
from a2a_serverless.protocol.ai_catalog import tags_of
from a2a_serverless.protocol.v1 import (
    Message,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a_serverless.services import tasks
from a2a_serverless.services.publish import card_of
from a2a_serverless.services.requests import RequestContext

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.protocol.v1_card import AgentCard
    from a2a_serverless.testing.deployment import InProcessDeployment


class OwnAgents:
    """Implements ``ports.RemoteAgents`` with the deployment's own agents."""

    def __init__(self, deployment: InProcessDeployment) -> None:
        self.deployment = deployment

    def for_run(self, trace: str, goes_on: Callable[[], bool]) -> Self:
        del trace, goes_on
        return self

    def address(self, agent: str) -> str:
        return f"{self.deployment.post.issuer}/{self.find(agent).id}"

    def card(self, agent: str) -> AgentCard:
        return card_of(self.find(agent), self.deployment.post.issuer, {})

    def tags(self) -> dict[str, tuple[str, ...]]:
        return {name: tags_of(self.card(name).skills) for name in self.deployment.engine.agents}

    def send(
        self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig
    ) -> Task | Message:
        self.find(agent)
        configuration = SendMessageConfiguration(return_immediately=True, task_push_notification_config=callback)
        request = SendMessageRequest(message=message, configuration=configuration)
        states = WEBHOOK_EXTENSIONS["states"].uri
        context = RequestContext(caller.principal, agent, "1.0", extensions=(states,), webhook_events="states")
        try:
            return tasks.send(self.deployment.service, context, request)
        except (Overloaded, TooManyRequests) as error:
            text = f"The agent {agent!r} cannot answer now: {error}"
            raise AgentUnavailable(text, error.retry_after_s) from error
        except A2AError as error:
            raise AgentCallFailed(f"The agent {agent!r} refused: {error}") from error

    def has_push(self, agent: str) -> bool:
        del agent
        return True

    keeps_message_ids = has_push

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        return tasks.get(self.deployment.service, RequestContext(caller.principal, agent, "1.0"), task_id)

    def cancel(self, caller: Caller, agent: str, task_id: str) -> None:
        with suppress(TaskNotCancelable):
            tasks.cancel(self.deployment.service, RequestContext(caller.principal, agent, "1.0"), task_id)

    def find(self, agent: str) -> Agent:
        """The agent; raises AgentCallFailed if there is none with this id."""
        if agent not in self.deployment.engine.agents:
            raise AgentCallFailed(f"There is no agent {agent!r} in the directory.")
        return self.deployment.engine.agents[agent]
