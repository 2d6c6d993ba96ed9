from examples.customer_service.main import AirlineAgentContext, triage_agent

from a2a_serverless import Part, TaskContext, agent
from a2a_serverless_frameworks.openai_agents import run


@agent(id="airline", name="Airline", description="Changes seats.", skills=[])
async def airline(task: TaskContext) -> list[Part]:
    current, items, context, message = triage_agent, [], AirlineAgentContext(), task.text()
    while message != "bye":
        items.append({"content": message, "role": "user"})
        result = await run(current, items, context=context)
        items, current = result.to_input_list(), result.last_agent
        message = (await task.ask(result.final_output)).text()
    return [Part(data=context.model_dump())]
