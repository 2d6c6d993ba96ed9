"""An executor of the official SDK as an agent of a deployment. It asks the client before it orders.

A script answers. Give ``make_shop`` a function in its place that lets a model say a sentence, and yields the words.
"""

import re
from collections.abc import AsyncIterator, Callable

from a2a import types
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater

from a2a_serverless import Agent, Skill
from a2a_serverless_frameworks.a2a_sdk import from_executor

StreamingModel = Callable[[str], AsyncIterator[str]]


class Shop(AgentExecutor):
    """Asks before it orders."""

    def __init__(self, model: StreamingModel) -> None:
        self.model = model

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Runs one turn."""
        updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
        said = context.get_user_input()
        if context.current_task is None:
            question = [types.Part(text=f"May I order {said} for {len(said)} euros?")]
            await updater.requires_input(updater.new_agent_message(question))
            return
        begun = False
        async for word in self.model("It is ordered." if said == "yes" else "Nothing is ordered."):
            await updater.add_artifact([types.Part(text=word)], "answer", "answer", append=begun)
            begun = True
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nothing is left to clean up."""


def make_shop(model: StreamingModel) -> Agent:
    """The shop with a model."""
    return from_executor(
        lambda: Shop(model),
        id="shop",
        name="Shop",
        description="Orders what its client approves.",
        skills=(Skill("order", "Order", "Orders a thing.", ("demo",), ("a coat",)),),
    )


async def repeat_words(sentence: str) -> AsyncIterator[str]:
    """Yields the sentence, word by word."""
    for word in re.findall(r"\S+\s*", sentence):
        yield word


SCRIPT = repeat_words
shop_agent = make_shop(SCRIPT)
