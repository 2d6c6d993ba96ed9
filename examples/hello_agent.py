"""The smallest agent. To deploy it, copy it into a project and add it to `agents` in pyproject.toml."""

from a2a_serverless import Skill, TaskContext, agent


@agent(
    id="hello",
    name="Hello",
    description="Greets whoever writes to it.",
    skills=[Skill("greet", "Greet", "Says hello to the name that it gets.", ("demo",))],
    runs="inline",
)
async def hello(task: TaskContext) -> str:
    """Answers with a message."""
    return f"Hello, {task.text()}!"
