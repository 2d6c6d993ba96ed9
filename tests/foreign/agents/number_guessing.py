"""Two peers of a game: after samples/python/agents/number_guessing_game of a2aproject/a2a-samples at 6603ba3f2c31.

As there: Alice has a secret number in her process, and says whether a guess is too low; Carol shuffles a list that she
keeps in her executor, until her caller is content, and knows a follow-up by its reference to the task. Changed: a
variable may set the secret. Left out: Bob, who is a command line, and the servers.
"""

import json
import os
import random
import uuid

from a2a.server.agent_execution.agent_executor import AgentExecutor
from a2a.server.agent_execution.context import RequestContext
from a2a.server.events.event_queue import EventQueue
from a2a.server.tasks.task_updater import TaskUpdater
from a2a.types import AgentCard, Part, TextPart
from a2a.utils.message import get_message_text

_target = int(os.getenv("SECRET_NUMBER", "0")) or random.randint(1, 100)
_attempts = 0


def process_guess(text: str) -> str:
    """What Alice says to a guess."""
    global _attempts
    if not text.strip().isdigit() or not 1 <= int(text) <= 100:
        return "Send a number from 1 to 100."
    _attempts += 1
    guess = int(text)
    if guess == _target:
        return f"correct! attempts: {_attempts}"
    return "Go higher" if guess < _target else "Go lower"


def updater_for(context: RequestContext, event_queue: EventQueue) -> TaskUpdater:
    """The updater of a message's task."""
    return TaskUpdater(
        event_queue,
        task_id=context.task_id or str(uuid.uuid4()),
        context_id=context.context_id or str(uuid.uuid4()),
    )


class NumberGuessExecutor(AgentExecutor):
    """Alice."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Says whether the guess is too low."""
        updater = updater_for(context, event_queue)
        await updater.submit()
        text = process_guess(get_message_text(context.message))
        await updater.add_artifact([Part(root=TextPart(text=text))])
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Rejects the task."""
        await updater_for(context, event_queue).reject()


class HistoryHelperExecutor(AgentExecutor):
    """Carol."""

    def __init__(self) -> None:
        self._last_history: list[dict[str, str]] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Shuffles the list, and asks whether that is good."""
        updater, text = updater_for(context, event_queue), get_message_text(context.message)
        if context.message.reference_task_ids:
            if text.lower().startswith("well done"):
                await updater.complete()
                return
        else:
            self._last_history = json.loads(text)["history"]
        random.shuffle(self._last_history)
        await updater.add_artifact([Part(root=TextPart(text=json.dumps(self._last_history)))])
        await updater.requires_input(final=True)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancels the task."""
        await updater_for(context, event_queue).cancel()


def card_of(name: str, description: str, skill: str) -> AgentCard:
    """The card of a peer."""
    return AgentCard.model_validate(
        {
            "name": name,
            "description": description,
            "url": "http://127.0.0.1:8001/a2a/v1",
            "preferredTransport": "JSONRPC",
            "protocolVersion": "0.3.0",
            "version": "1.0.0",
            "capabilities": {"streaming": False, "pushNotifications": False, "stateTransitionHistory": False},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": skill, "name": skill, "description": description, "tags": ["game"]}],
        }
    )


alice_card = card_of("AgentAlice", "Has a secret number, and grades guesses.", "number_guess_evaluator")
carol_card = card_of("AgentCarol", "Shuffles the history of guesses.", "history_shuffler")
