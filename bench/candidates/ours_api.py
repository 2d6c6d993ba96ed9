"""The api of ``a2a-serverless dev``: stores in memory, an echo agent of each kind, and no worker for the queue."""

from a2a_serverless import Agent, Skill, TaskContext
from a2a_serverless_tools.local.deployment import LocalDeployment


async def echo(task: TaskContext) -> None:
    """Emits the words that the client said, separated by commas, as artifacts."""
    for number, word in enumerate(task.text().split(",")):
        await task.emit(f"echo-{number}", word, last=True)


SKILLS = (Skill("echo", "Echo", "Says it again", ("echo",)),)
inline = Agent("inline", "Echo", "Says it again", SKILLS, echo, runs="inline")
queued = Agent("queued", "Echo", "Says it again", SKILLS, echo)
deployment = LocalDeployment([inline, queued], "http://127.0.0.1:8000")
app = deployment.app
