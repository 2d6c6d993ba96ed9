"""Three small agents of one host: after samples/python/agents/multitenancy of a2aproject/a2a-samples at 6603ba3f2c31.

As there: one executor class for three functions, a card for each, and a list of paths, cards and executors. Left out:
the server that mounts them.
"""

from collections.abc import Callable

from a2a.helpers import get_message_text, new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, TaskState

PUBLIC_URL = "http://127.0.0.1:9999"


def hello_world(text: str) -> str:
    """Greets."""
    return f'Hello! You said: "{text}"'


def palindrome(text: str) -> str:
    """Says whether a text is a palindrome."""
    letters = "".join(letter.lower() for letter in text if letter.isalnum())
    return f'"{text}" is {"" if letters == letters[::-1] else "not "}a palindrome.'


def reverse_words(text: str) -> str:
    """Turns the order of the words around."""
    return f"Reversed: {' '.join(reversed(text.split()))}"


class SimpleAgentExecutor(AgentExecutor):
    """Runs a function from text to text."""

    def __init__(self, transform: Callable[[str], str]) -> None:
        self.transform = transform

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answers with the function's result."""
        task = context.current_task
        if not task:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue=event_queue, task_id=task.id, context_id=task.context_id)
        await updater.update_status(TaskState.TASK_STATE_WORKING, message=new_text_message("I am at it."))
        query = get_message_text(context.message)
        result = self.transform(query) if query else "There is no text."
        await updater.add_artifact(parts=[new_text_part(text=result, media_type="text/plain")])
        await updater.update_status(TaskState.TASK_STATE_COMPLETED, message=new_text_message("Done."))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Is not supported."""
        raise NotImplementedError("cancel is not supported")


def build_card(path: str, name: str, description: str) -> AgentCard:
    """The card of the agent at a path."""
    skill = AgentSkill(id=path.strip("/"), name=name, description=description, tags=["multi-tenancy"])
    return AgentCard(
        name=name,
        description=description,
        version="1.0.0",
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        capabilities=AgentCapabilities(streaming=True),
        supported_interfaces=[
            AgentInterface(protocol_binding="JSONRPC", url=f"{PUBLIC_URL}{path}", protocol_version="1.0")
        ],
        skills=[skill],
    )


AGENTS = [
    ("/hello", build_card("/hello", "Hello World Agent", "Says hello."), SimpleAgentExecutor(hello_world)),
    (
        "/palindrome",
        build_card("/palindrome", "Palindrome Agent", "Finds palindromes."),
        SimpleAgentExecutor(palindrome),
    ),
    ("/reverse", build_card("/reverse", "Word Reverse Agent", "Reverses words."), SimpleAgentExecutor(reverse_words)),
]
