"""The smallest agent. To deploy it, copy it to shared/my_agents/hello.py and add it to AGENTS in template.yaml."""

from a2a_serverless.domain.agent import AgentSkill, AgentTask, agent


@agent(
    id="hello",
    name="Hello",
    description="Greets whoever writes to it.",
    skills=[AgentSkill("greet", "Greet", "Says hello to the name that it gets.", ("demo",))],
    runs="inline",
)
async def hello(task: AgentTask) -> str:
    """Answers with a message."""
    return f"Hello, {task.text()}!"
