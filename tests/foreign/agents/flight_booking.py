"""Books a flight: after examples/pydantic_ai_examples/flight_booking.py of pydantic/pydantic-ai at 4fda38988f29.

As there: an agent that asks another one in a tool, with its usage, an output validator that wants a retry, outputs of
several types, and a third agent that reads the seat. Changed: tickets are bought by a request to a service that a
variable names; a shorter page of flights. Left out: Logfire, and the loop at the terminal, in whose place the lines of
ours are.
"""

import datetime
import os
from dataclasses import dataclass
from typing import Literal

import httpx
from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelRetry, RunContext


class FlightDetails(BaseModel):
    """The best flight."""

    flight_number: str
    price: int
    origin: str = Field(description="Three-letter airport code")
    destination: str = Field(description="Three-letter airport code")
    date: datetime.date


class NoFlightFound(BaseModel):
    """There is no such flight."""


@dataclass
class Deps:
    """What the client looks for."""

    web_page_text: str
    req_origin: str
    req_destination: str
    req_date: datetime.date


search_agent = Agent[Deps, FlightDetails | NoFlightFound](
    "openai:gpt-5.2",
    name="search",
    output_type=FlightDetails | NoFlightFound,
    deps_type=Deps,
    retries=4,
    system_prompt="Find the cheapest flight on the given day.",
)
extraction_agent = Agent(
    "openai:gpt-5.2",
    name="extraction",
    output_type=list[FlightDetails],
    system_prompt="Extract the details of all flights from the text.",
)


@search_agent.tool
async def extract_flights(ctx: RunContext[Deps]) -> list[FlightDetails]:
    """Gets the details of all flights."""
    return (await extraction_agent.run(ctx.deps.web_page_text, usage=ctx.usage)).output


@search_agent.output_validator
async def validate_output(
    ctx: RunContext[Deps], output: FlightDetails | NoFlightFound
) -> FlightDetails | NoFlightFound:
    """Checks that the flight is what was asked for."""
    if isinstance(output, FlightDetails) and output.destination != ctx.deps.req_destination:
        raise ModelRetry(f"The destination is {ctx.deps.req_destination}, not {output.destination}.")
    return output


class SeatPreference(BaseModel):
    """A seat."""

    row: int = Field(ge=1, le=30)
    seat: Literal["A", "B", "C", "D", "E", "F"]


class Failed(BaseModel):
    """The text names no seat."""


seat_preference_agent = Agent[object, SeatPreference | Failed](
    "openai:gpt-5.2",
    name="seat",
    output_type=SeatPreference | Failed,
    system_prompt="Extract the seat that the user wants. A and F are at the windows.",
)
flights_web_page = """
1. Flight SFO-AK123, $350, San Francisco (SFO) to Anchorage (ANC), January 10, 2025
2. Flight SFO-AK456, $370, San Francisco (SFO) to Fairbanks (FAI), January 10, 2025
3. Flight NYC-LA101, $250, San Francisco (SFO) to Anchorage (ANC), January 10, 2025
"""


async def buy_tickets(flight: FlightDetails, seat: SeatPreference) -> str:
    """Buys the ticket; returns a sentence."""
    async with httpx.AsyncClient() as client:
        url = f"{os.environ['BOOKINGS_URL']}/bookings/{flight.flight_number}/{seat.row}{seat.seat}"
        (await client.post(url, json={})).raise_for_status()
    return f"Bought {flight.flight_number}, seat {seat.row}{seat.seat}."
