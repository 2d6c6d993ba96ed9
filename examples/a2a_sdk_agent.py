"""An executor of the official SDK as an agent: the class is unchanged, the last line deploys it."""

from a2a import types
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater

from a2a_serverless import Skill
from a2a_serverless_frameworks.a2a_sdk import from_executor


class Tailor(AgentExecutor):
    """Asks for a colour and makes a coat."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Runs one turn."""
        updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
        if context.current_task is None:
            await updater.requires_input(updater.new_agent_message([types.Part(text="Which colour?")]))
            return
        for piece in ("sleeves", "back", "collar"):
            words = [types.Part(text=f"{context.get_user_input()} {piece}\n")]
            is_first, is_last = piece == "sleeves", piece == "collar"
            await updater.add_artifact(words, "coat", "coat.txt", append=not is_first, last_chunk=is_last)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nothing is left to clean up."""


tailor = from_executor(
    Tailor,
    id="tailor",
    name="Tailor",
    description="Makes coats.",
    skills=(Skill("sew", "Sew", "Sews a coat.", ("demo",)),),
    whole_last_chunk=True,
)
