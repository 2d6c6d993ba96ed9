"""Answers mails, with a human in the loop: after src/email_assistant/email_assistant_hitl.py of
langchain-ai/agents-from-scratch at edf2c479191d.

As there: a router that answers in a schema, a graph that is a node of another one, ``Command(goto=...)``, and
interrupts in the form of the Agent Inbox whose answers accept, edit, ignore or respond. Changed: a mail is sent by a
request to a service that a variable names; shorter prompts; the tools of the calendar have one argument. Left out:
Gmail, memory.
"""

import os
from typing import Any, Literal, TypedDict

import httpx
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel, Field


class RouterSchema(BaseModel):
    """What is to be done with a mail."""

    reasoning: str = Field(description="Why.")
    classification: Literal["ignore", "respond", "notify"] = Field(
        description="ignore what does not matter, notify of what needs no answer, respond to the others"
    )


class StateInput(TypedDict):
    """The input of the graph."""

    email_input: dict[str, str]


class State(MessagesState):
    """The state of both graphs."""

    email_input: dict[str, str]
    classification_decision: Literal["ignore", "respond", "notify"]


@tool
def write_email(to: str, subject: str, content: str) -> str:
    """Writes and sends a mail."""
    mail = {"to": to, "subject": subject, "content": content}
    httpx.post(f"{os.environ['MAIL_URL']}/mails", json=mail).raise_for_status()
    return f"The mail to {to} was sent: {content}"


@tool
def schedule_meeting(subject: str) -> str:
    """Schedules a meeting."""
    return f"The meeting {subject!r} is in the calendar."


@tool
def check_calendar_availability(day: str) -> str:
    """Says when there is time on a day."""
    return f"There is time on {day} at 9 and at 14."


@tool
class Question(BaseModel):
    """A question to the user."""

    content: str


@tool
class Done(BaseModel):
    """The mail was sent."""

    done: bool


tools = [write_email, schedule_meeting, check_calendar_availability, Question, Done]
tools_by_name = {one.name: one for one in tools}
llm = ChatOpenAI(model="gpt-4.1", temperature=0.0)
llm_router = llm.with_structured_output(RouterSchema)
llm_with_tools = llm.bind_tools(tools, tool_choice="required")


def as_markdown(email: dict[str, str]) -> str:
    """The mail for people."""
    return f"**{email['subject']}**\nFrom: {email['author']}\nTo: {email['to']}\n\n{email['email_thread']}"


def triage_router(state: State) -> Command[Literal["triage_interrupt_handler", "response_agent", "__end__"]]:
    """Decides what is to be done with the mail."""
    email = as_markdown(state["email_input"])
    result = llm_router.invoke(
        [
            {"role": "system", "content": "You sort mails. Answer colleagues, ignore advertisements."},
            {"role": "user", "content": f"What is to be done with this mail?\n{email}"},
        ]
    )
    update: dict[str, Any] = {"classification_decision": result.classification}
    if result.classification == "respond":
        update["messages"] = [{"role": "user", "content": f"Respond to the mail: {email}"}]
        return Command(goto="response_agent", update=update)
    return Command(goto=END if result.classification == "ignore" else "triage_interrupt_handler", update=update)


def triage_interrupt_handler(state: State) -> Command[Literal["response_agent", "__end__"]]:
    """Asks whether a mail that needs no answer shall get one."""
    email = as_markdown(state["email_input"])
    request = {
        "action_request": {"action": f"Email Assistant: {state['classification_decision']}", "args": {}},
        "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": False, "allow_accept": False},
        "description": email,
    }
    response = interrupt([request])[0]
    messages = [{"role": "user", "content": f"Notify the user of the mail: {email}"}]
    if response["type"] == "ignore":
        return Command(goto=END, update={"messages": messages})
    messages.append({"role": "user", "content": f"The user wants to reply: {response['args']}"})
    return Command(goto="response_agent", update={"messages": messages})


def llm_call(state: State) -> dict[str, Any]:
    """Asks the model for the next tool call."""
    system = {"role": "system", "content": "You write mails for the user. Call one tool at a time, at last Done."}
    return {"messages": [llm_with_tools.invoke([system, *state["messages"]])]}


def interrupt_handler(state: State) -> Command[Literal["llm_call", "__end__"]]:
    """Lets the user review tool calls, and executes them."""
    result: list[Any] = []
    goto = "llm_call"
    for call in state["messages"][-1].tool_calls:
        chosen = tools_by_name[call["name"]]
        if call["name"] not in ["write_email", "schedule_meeting", "Question"]:
            result.append({"role": "tool", "content": str(chosen.invoke(call["args"])), "tool_call_id": call["id"]})
            continue
        acts = call["name"] != "Question"
        request = {
            "action_request": {"action": call["name"], "args": call["args"]},
            "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": acts, "allow_accept": acts},
            "description": f"{as_markdown(state['email_input'])}\n\n{call['name']}: {call['args']}",
        }
        response = interrupt([request])[0]
        if response["type"] == "accept":
            said = chosen.invoke(call["args"])
        elif response["type"] == "edit":
            said = chosen.invoke(response["args"]["args"])
        elif response["type"] == "ignore":
            said, goto = "The user ignores this. End here.", END
        else:
            said = f"The user says: {response['args']}"
        result.append({"role": "tool", "content": said, "tool_call_id": call["id"]})
    return Command(goto=goto, update={"messages": result})


def should_continue(state: State) -> Literal["interrupt_handler", "__end__"]:
    """Ends when the model has called Done."""
    calls = state["messages"][-1].tool_calls
    return END if not calls or calls[0]["name"] == "Done" else "interrupt_handler"


agent_builder = StateGraph(State)
agent_builder.add_node("llm_call", llm_call)
agent_builder.add_node("interrupt_handler", interrupt_handler)
agent_builder.add_edge(START, "llm_call")
agent_builder.add_conditional_edges("llm_call", should_continue)

email_assistant = (
    StateGraph(State, input_schema=StateInput)
    .add_node(triage_router)
    .add_node(triage_interrupt_handler)
    .add_node("response_agent", agent_builder.compile())
    .add_edge(START, "triage_router")
    .compile()
)
