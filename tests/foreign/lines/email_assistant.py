import json

from a2a_serverless import TaskContext
from a2a_serverless_frameworks import langgraph
from tests.foreign.agents.email_assistant import StateInput, email_assistant


async def read_email(task: TaskContext) -> StateInput:
    return {"email_input": json.loads(task.text())}


agent = langgraph.agent(email_assistant, id="email_assistant", description="Answers mails.", read_input=read_email)
