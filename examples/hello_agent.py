"""The smallest agent. To deploy it, copy it to shared/my_agents/hello.py and add it to AGENTS in template.yaml."""

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
