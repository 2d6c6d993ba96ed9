import datetime

from a2a_serverless import TaskContext, agent
from a2a_serverless_frameworks.pydantic_ai import run
from tests.foreign.agents.flight_booking import (
    Deps,
    NoFlightFound,
    SeatPreference,
    buy_tickets,
    flights_web_page,
    search_agent,
    seat_preference_agent,
)


@agent(id="flight_booking", name="Flights", description="Books flights.", skills=[])
async def flight_booking(task: TaskContext) -> str:
    deps, history = Deps(flights_web_page, "SFO", "ANC", datetime.date(2025, 1, 10)), None
    while True:
        result = await run(search_agent, task.text(), deps=deps, message_history=history, stream=False)
        if isinstance(result.output, NoFlightFound):
            return "There is no flight."
        answer = await task.ask(f"Buy {result.output.flight_number} for ${result.output.price}, or search? buy/search")
        if answer.text() == "buy":
            break
        history = result.all_messages(output_tool_return_content="Please suggest another flight")
    question, history = "Which seat do you want?", None
    while True:
        answer = await task.ask(question)
        seat = await run(seat_preference_agent, answer.text(), message_history=history, stream=False)
        if isinstance(seat.output, SeatPreference):
            return await task.step("buy", buy_tickets, result.output, seat.output)
        question, history = "I do not know that seat. Which one do you want?", seat.all_messages()
