"""The foreign agents, and what their clients and their models say to them."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless import Agent, Part
from tests.foreign.model_server import ModelRequest, Said, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from _pytest.mark import ParameterSet

    from a2a_serverless import Task


PUBLISHED: Final = Path(__file__).parents[2] / ".a2a/published"
"""Where `make foreign` unpacks packages that carry agents."""
SERVICES: Final = ("BOOKINGS", "CART", "FRANKFURTER", "MAIL", "NOTES", "PARSER", "PAYMENTS", "SEARCH", "WEATHER")
"""What the agents call: `BOOKINGS_URL` is the address of one."""


def _silent(_: ModelRequest) -> int:
    return 500


def _nothing(_: str) -> Any:
    return {}


def answer_of(task: Task) -> str:
    """All that a task says at its end: its artifacts, and its last message."""
    parts = [part for artifact in task.artifacts for part in artifact.parts]
    parts += task.status.message.parts if task.status.message else ()
    return "".join(part.text if part.text is not None else json.dumps(part.value) for part in parts)


@dataclass(frozen=True)
class Case:
    """An agent, in ``tests/foreign/lines``, and a conversation with it.

    ``answers`` are those to its questions, with references to the task if ``refers``. ``final`` is in what it says
    at the end, unless its own code ``hides_errors``. ``effect`` begins the request to another service that it makes
    once. ``sdk`` is the version of the official SDK that it needs, or "". An executor's results are stored
    ``by_turn``. ``remembers`` is whether the next task of a conversation knows the one before, ``streams`` is the
    name of the artifact that comes in chunks. ``number`` is that of the agent, if there are several in one module.
    With a ``file`` the first message is that file, and has no text. ``published`` are the files of a package, below
    ``PUBLISHED``, that are served as they are. A client that ``blocks`` its thread, or the event
    loop, cannot be canceled.
    """

    name: str
    framework: str
    text: str
    final: str
    say: Callable[[ModelRequest], Said | int] = _silent
    serve: Callable[[str], Any] = _nothing
    answers: tuple[str, ...] = ()
    refers: bool = False
    effect: str = ""
    hides_errors: bool = False
    blocks: bool = False
    sdk: str = ""
    by_turn: bool = False
    remembers: bool = True
    streams: str = ""
    has_model: bool = True
    number: int | None = None
    file: str = ""
    published: str = ""

    @property
    def content(self) -> str | Part:
        """The message: its text, or its file."""
        return as_part(self.file) if self.file else self.text

    @property
    def id(self) -> str:
        """Names the case."""
        return self.name if self.number is None else f"{self.name}-{self.number}"

    @property
    def param(self) -> ParameterSet:
        """The case for ``parametrize``. It is skipped where its published files are not unpacked."""
        absent = bool(self.published) and not (PUBLISHED / self.published).exists()
        reason = f'its published files are not unpacked here: make foreign ARGS="-k {self.name}"'
        return pytest.param(self, id=self.id, marks=pytest.mark.skipif(absent, reason=reason))

    def agents(self) -> list[Agent]:
        """The agent, as the lines make it, before the others of its file."""
        module = import_module(f"tests.foreign.lines.{self.name}")
        if self.number is None:
            return [one for one in vars(module).values() if isinstance(one, Agent)]
        return [module.agents[self.number], *(one for one in module.agents if one is not module.agents[self.number])]


def as_part(text: str) -> Part:
    """A text as a file."""
    return Part(raw=b64encode(text.encode()).decode(), media_type="text/plain", filename="report.txt")


def words(text: str) -> Said:
    """A text in pieces."""
    return re.findall(r"\S+\s*", text)


def dice(request: ModelRequest) -> Said:
    """Rolls, checks, and says what was rolled."""
    match request.number:
        case 0:
            return [*words("I roll a die."), ToolCall("roll_dice", {"sides": 20})]
        case 1:
            rolled = json.loads(request.results[0])["result"]
            return [ToolCall("check_prime", {"nums": [rolled]})]
    return words(f"I have rolled {json.loads(request.results[0])['result']} for you.")


def currency(request: ModelRequest) -> Said:
    """Looks for the rate; then the graph asks for the answer in its form."""
    if "responseJsonSchema" in request.body.get("generationConfig", {}):
        return [json.dumps({"status": "completed", "message": f"The rate is {''.join(request.results[-1:])}"})]
    if request.number == 0:
        return [ToolCall("get_exchange_rate", {"currency_from": "USD", "currency_to": "INR"})]
    return words("One dollar is 83.2 rupees today.")


def bank_support(request: ModelRequest) -> Said:
    """Looks for the balance, and answers in the form."""
    if request.number == 0:
        return [ToolCall("customer_balance", {})]
    advice = {"support_advice": f"John, you have {request.results[-1]}", "block_card": False, "risk": 1}
    return [ToolCall("final_result", advice)]


def a2a_mcp(request: ModelRequest) -> Said:
    """Chooses a tool in a block of JSON; then it answers."""
    if " gave " not in request.text:
        tools = json.dumps([{"name": "fetch", "arguments": {"topic": "tasks"}}])
        return [*words("I look for that."), f"\n```json\n{tools}\n```"]
    return words("The documents say that tasks have states.")


def adk_skills(request: ModelRequest) -> Said:
    """Asks for the target currency, reads the skill, and looks for the rate."""
    if "INR" not in request.text:
        return _in_form(request, "input-required", "To which currency?")
    match request.number:
        case 0:
            return [ToolCall("load_skill", {"skill_name": "frankfurter"})]
        case 1:
            url = f"{os.environ['FRANKFURTER_URL']}/v1/latest"
            return [ToolCall("execute_http_request", {"url": url, "method": "GET", "params": {"base": "USD"}})]
    return _in_form(request, "completed", f"The rates: {request.results[-1]}")


def _in_form(request: ModelRequest, status: str, message: str) -> Said:
    """The answer in the agent's schema: by the framework's tool for it, or as JSON."""
    answer = {"status": status, "message": message}
    declared = [one["name"] for tool in request.body.get("tools", ()) for one in tool.get("functionDeclarations", ())]
    return [ToolCall("set_model_response", answer)] if "set_model_response" in declared else [json.dumps(answer)]


def content_planner(_: ModelRequest) -> Said:
    """An outline."""
    return words("1. Introduction 2. Main part 3. Summary")


def expense(request: ModelRequest) -> Said:
    """Makes a form and shows it; when the form comes back, it reimburses."""
    results = [json.loads(result) for turn in request.turns for result in turn.results]
    form: dict[str, Any] = next((result for result in results if "request_id" in result), {})
    if "lunch" not in request.text:
        return (
            [ToolCall("return_form", {"form_request": form})]
            if request.number
            else [ToolCall("create_request_form", {"amount": "20"})]
        )
    if request.number == 0:
        return [ToolCall("reimburse", {"request_id": form.get("request_id", "unknown")})]
    return words(f"It is {json.loads(request.results[-1])['status']}.")


def travel_planner(_: ModelRequest) -> Said:
    """A plan."""
    return words("Day one: the old town. Day two: the sea.")


def email_assistant(request: ModelRequest) -> Said:
    """Sorts the mail, writes an answer, and ends."""
    if "response_format" in request.body:
        return [json.dumps({"reasoning": "A colleague asks.", "classification": "respond"})]
    if request.number == 0:
        mail = {"to": "ann@example.com", "subject": "Re: Report", "content": "It comes tomorrow."}
        return [ToolCall("write_email", mail)]
    return [ToolCall("Done", {"done": True})]


def flight_booking(request: ModelRequest) -> Said:
    """Three agents: one reads the flights, one chooses, at first wrongly, and one reads the seat."""
    cheap = {"flight_number": "NYC-LA101", "price": 250, "origin": "SFO", "destination": "ANC", "date": "2025-01-10"}
    if request.system.startswith("Extract the details"):
        return [ToolCall("final_result", {"response": [cheap]})]
    if request.system.startswith("Extract the seat"):
        return [ToolCall("final_result_SeatPreference", {"row": 12, "seat": "A"})]
    match request.number:
        case 0:
            return [ToolCall("extract_flights", {})]
        case 1:
            return [ToolCall("final_result_FlightDetails", cheap | {"destination": "FAI"})]
    return [ToolCall("final_result_FlightDetails", cheap)]


def agents_as_tools(request: ModelRequest) -> Said:
    """Asks two specialists, saves what they say, and answers."""
    if request.system.startswith("You do research"):
        return words("Spain has seventeen regions.")
    if request.system.startswith("You plan journeys"):
        return words("Seven days: Madrid, Toledo, the sea.")
    match request.number:
        case 0:
            return [*words("I ask for facts."), ToolCall("research_assistant", {"query": "Spain"})]
        case 1:
            return [ToolCall("trip_planning_assistant", {"query": "Spain"})]
        case 2:
            return [ToolCall("save_note", {"text": "\n".join(request.results)})]
    return words(f"I have saved this: {request.results[0]}")


def airline(request: ModelRequest) -> Said:
    """Triage hands over to the agent for seats, who asks for the booking and changes it."""
    match request.text, request.number:
        case "I want another seat.", 0:
            return [ToolCall("transfer_to_seat_booking_agent", {})]
        case "I want another seat.", _:
            return words("What is your confirmation number, and which seat do you want?")
        case _, 0:
            return [ToolCall("update_seat", {"confirmation_number": "ABC123", "new_seat": "7A"})]
    return words("You have the seat 7A.")


def weather(request: ModelRequest) -> Said:
    """Looks for the place, then for its weather."""
    match request.number:
        case 0:
            return [ToolCall("get_lat_lng", {"location_description": "London"})]
        case 1:
            return [ToolCall("get_weather", json.loads(request.results[0]))]
    return words(f"In London it is {json.loads(request.results[-1])['description']}.")


def deep_research(request: ModelRequest) -> Said:
    """Saves the request and sends a researcher, who searches and thinks; then it writes and reads the report."""
    last, report = "".join(request.results[-1:]), "/final_report.md"
    researches: list[Said] = [
        [ToolCall("web_search", {"query": "leases"})],
        [ToolCall("think", {"reflection": "That is enough."})],
        words("A lease ends by itself. [1]"),
    ]
    leads: list[Said] = [
        [ToolCall("write_file", {"file_path": "/research_request.md", "content": request.text})],
        [ToolCall("task", {"description": "Leases", "subagent_type": "research-agent"})],
        [ToolCall("write_file", {"file_path": report, "content": last})],
        [ToolCall("read_file", {"file_path": report})],
        words(f"The report: {last}"),
    ]
    return (researches if request.system.startswith("You research") else leads)[request.number]


def garden_service(request: ModelRequest) -> Said:
    """Looks into the cart, tries the cart of another customer, changes the own one, and makes an appointment."""
    soil: dict[str, Any] = {"add": ["soil"], "remove": []}
    calls = [
        ToolCall("access_cart", {"customer_id": "123"}),
        ToolCall("modify_cart", {"customer_id": "456", **soil}),
        ToolCall("modify_cart", {"customer_id": "123", **soil}),
        ToolCall("ask_for_approval", {"discount_type": "percent", "value": 5, "reason": "loyal"}),
        ToolCall("schedule_planting", {"customer_id": "123", "when": "Monday 9-12"}),
    ]
    if request.number < len(calls):
        return [*words("Hello Alex." if request.number == 0 else ""), calls[request.number]]
    return words(f"Done: {request.results[-1]}, {request.results[-2]}")


def file_chat(request: ModelRequest) -> Said:
    """Says what the document is about; then it answers from the line about leases."""
    if "about?" in request.text:
        return words("This is about leases. What do you want to know?")
    if line := re.search(r"<line idx='(\d+)'>(A lease.*)\.</line>", request.system):
        return words(f"{line[2]} [{line[1]}].")
    return words("I see no document.")


def forecast(path: str) -> Any:
    """What the services for places, numbers and the weather say."""
    return {"latlng": {"lat": 51.5, "lng": -0.1}, "number": 21, "weather": "Sunny"}[path[1:].partition("?")[0]]


def search(_: str) -> Any:
    """What the search finds."""
    return {"results": [{"title": "Leases", "url": "https://example.com/leases", "content": "A lease ends by itself."}]}


def rates(_: str) -> Any:
    """What the service for rates says."""
    return {"rates": {"INR": 83.2}}


def parsed(_: str) -> Any:
    """What the parser makes of the report."""
    return {"markdown": REPORT}


REPORT = "# Leases\n\nA lease ends by itself.\nA lock does not."
GUESSES = json.dumps({"action": "shuffle", "history": [{"guess": "50"}, {"guess": "25"}]})
MAIL = json.dumps({"author": "Ann", "to": "me", "subject": "Report", "email_thread": "When does it come?"})
EXECUTOR: dict[str, Any] = {"sdk": "1", "by_turn": True, "remembers": False}
EXECUTOR_0_3: dict[str, Any] = {"sdk": "0.3", "by_turn": True, "remembers": False}
CASES = [
    Case("helloworld", "a2a-sdk 1", "Ada", "You wrote: AdaThat is all.", has_model=False, **EXECUTOR),
    *(
        Case("multitenancy", "a2a-sdk 1", "never odd or even", final, has_model=False, number=number, **EXECUTOR)
        for number, final in enumerate(['said: "never', "is a palindrome", "even or odd never"])
    ),
    Case(
        "a2a_mcp",
        "a2a-sdk 1",
        "What is a task?",
        "tasks have states",
        a2a_mcp,
        effect="MCP fetch tasks",
        blocks=True,
        **EXECUTOR,
    ),
    Case(
        "adk_skills",
        "a2a-sdk 1, ADK",
        "10 dollars, please.",
        "83.2",
        adk_skills,
        rates,
        answers=("INR",),
        effect="GET /v1/latest",
        **(EXECUTOR | {"remembers": True}),
    ),
    Case("dice", "ADK", "Roll a die.", "I have rolled ", dice, streams="answer"),
    Case(
        "expense",
        "a2a-sdk 0.3, ADK",
        "I want 20 dollars back.",
        "It is approved.",
        expense,
        answers=("2026-01-02, 20 dollars, lunch",),
        effect="POST /payments",
        hides_errors=True,
        **(EXECUTOR_0_3 | {"remembers": True}),
    ),
    Case("content_planner", "ADK", "A text about Lambda.", "3. Summary", content_planner, streams="answer"),
    Case(
        "travel_planner",
        "a2a-sdk 0.3, LangChain",
        "Two days in Split.",
        "Day one: the old town. Day two: the sea.",
        travel_planner,
        hides_errors=True,
        **EXECUTOR_0_3,
    ),
    Case(
        "currency",
        "LangGraph",
        "USD to INR?",
        "83.2",
        currency,
        rates,
        effect="GET /latest",
        streams="agent@3",
    ),
    Case("number_guessing", "a2a-sdk 0.3", "10", "Go higher", has_model=False, number=0, **EXECUTOR_0_3),
    Case(
        "number_guessing",
        "a2a-sdk 0.3",
        GUESSES,
        '"guess": "50"',
        answers=("Try again", "Well done!"),
        refers=True,
        has_model=False,
        number=1,
        **EXECUTOR_0_3,
    ),
    Case(
        "email_assistant",
        "LangGraph",
        MAIL,
        "",
        email_assistant,
        answers=("yes",),
        effect="POST /mails",
        blocks=True,
    ),
    Case(
        "airline",
        "OpenAI Agents",
        "I want another seat.",
        '"confirmation_number": "ABC123", "seat_number": "7A", "flight_number": "FLT-',
        airline,
        answers=("ABC123, and the seat 7A.", "bye"),
        streams="answer",
        remembers=False,
        published="examples",
    ),
    Case(
        "weather",
        "Pydantic AI",
        "What about London?",
        "Sunny",
        weather,
        forecast,
        effect="GET /weather",
        published="pydantic_ai_examples",
    ),
    Case(
        "deep_research",
        "deepagents",
        "What is a lease?",
        "A lease ends by itself. [1]",
        deep_research,
        search,
        effect="GET /search",
        blocks=True,
        streams="model@10",
    ),
    Case(
        "garden_service",
        "ADK",
        "I need soil.",
        "Monday 9-12",
        garden_service,
        effect="POST /carts/123/changes",
        streams="answer",
    ),
    Case(
        "file_chat",
        "LlamaIndex",
        "",
        'A lease ends by itself [2].{"2": "A lease ends by itself."}',
        file_chat,
        parsed,
        answers=("What is a lease?",),
        effect="POST /parse",
        streams="answer",
        file=REPORT,
    ),
    Case("bank_support", "Pydantic AI", "What is my balance?", "John, you have $123.45", bank_support),
    Case(
        "flight_booking",
        "Pydantic AI",
        "From SFO to ANC.",
        "Bought NYC-LA101, seat 12A.",
        flight_booking,
        answers=("buy", "12A"),
        effect="POST /bookings/NYC-LA101/12A",
        remembers=False,
    ),
    Case(
        "agents_as_tools",
        "Strands",
        "What about Spain?",
        "Spain has seventeen regions.",
        agents_as_tools,
        effect="POST /notes",
        blocks=True,
        streams="answer",
    ),
]
