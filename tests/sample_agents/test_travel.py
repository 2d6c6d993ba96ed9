"""The travel agent: follow-ups side by side in one conversation, each a task that stands on an earlier booking."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_serverless import Message, Part, Task, TaskState
from a2a_serverless.domain.contents import references_in
from a2a_serverless.testing import AgentTestHarness, Reply
from sample_agents.travel import travel

ASKS = TaskState.INPUT_REQUIRED
TRIPS = [
    pytest.param(
        "Book a flight to Helsinki.",
        "Based on the flight, book a hotel.",
        "Based on the flight, book a snowmobile activity.",
        "Add a spa booking to the hotel reservation.",
        "Helsinki",
        "nothing was booked",
        id="English",
    ),
    pytest.param(
        "预订飞往赫尔辛基的航班。",
        "基于航班，预订酒店。",
        "基于航班，预订雪地摩托活动。",
        "向酒店预订添加水疗预订。",
        "赫尔辛基",
        "并未真正预订",
        id="Chinese",
    ),
]


def booking(reply: Reply) -> dict[str, Any]:
    assert reply.state is TaskState.COMPLETED, reply.said
    ((_, artifact),) = reply.artifacts.items()
    data = artifact.data()
    assert isinstance(data, dict)
    return dict(data)


def stands_on(reply: Reply) -> str:
    (artifact,) = reply.task.artifacts
    (reference,) = references_in(artifact.parts)
    return reference.task_id


@pytest.mark.requirement(51, 57)
@pytest.mark.parametrize(("flight", "hotel", "snowmobile", "spa", "place", "note"), TRIPS)
def test_hotel_and_snowmobile_stand_on_the_flight_side_by_side_and_the_spa_on_the_hotel(
    flight: str, hotel: str, snowmobile: str, spa: str, place: str, note: str
) -> None:
    world = AgentTestHarness(travel)
    first = world.send(flight)
    one, context = first.task.id, first.task.context_id
    begun = [world.begin(text, context_id=context, references=[one]) for text in (hotel, snowmobile)]
    two, three = [task.id for task in begun if isinstance(task, Task)]
    assert {world.reply(task).state for task in (two, three)} == {TaskState.SUBMITTED}, "both are under way"
    world.settle()
    four = world.send(spa, context_id=context, references=[two])
    replies = [world.reply(task_id) for task_id in (one, two, three, four.task.id)]
    assert [booking(reply)["kind"] for reply in replies] == ["flight", "hotel", "snowmobile", "spa"]
    assert {booking(reply)["place"] for reply in replies} == {place}
    assert [stands_on(reply) for reply in replies[1:]] == [one, one, two]
    assert all(note in reply.said and note in booking(reply)["note"] for reply in replies)
    assert all(reply.task.status.message and reply.task.status.message.data() == booking(reply) for reply in replies)
    assert {reply.task.context_id for reply in replies} == {context}


@pytest.mark.parametrize(("text", "part"), [("What can you do?", "flight"), ("你好，你能做什么？", "航班")])
def test_a_question_about_what_it_does_is_answered_with_a_message_and_makes_no_task(text: str, part: str) -> None:
    reply = AgentTestHarness(travel).send(text)
    assert isinstance(reply.answer, Message)
    assert part in reply.said


@pytest.mark.parametrize(
    ("text", "answer", "place"), [("Book a flight", "To Oslo, please", "Oslo"), ("预订机票", "东京", "东京")]
)
def test_a_flight_to_nowhere_is_asked_about(text: str, answer: str, place: str) -> None:
    world = AgentTestHarness(travel)
    asked = world.send(text)
    assert asked.state is ASKS
    assert booking(world.send(answer, task_id=asked.task.id))["place"] == place


def test_the_date_of_the_flight_is_that_of_what_stands_on_it_unless_it_has_its_own() -> None:
    world = AgentTestHarness(travel)
    context = world.send("Book a flight from Berlin to Helsinki on 2027-01-08").task.context_id
    hotel = booking(world.send("Book a hotel", context_id=context))
    tour = booking(world.send("Book a snowmobile tour on 2027-1-10", context_id=context))
    assert (hotel["date"], tour["date"]) == ("2027-01-08", "2027-01-10")


def test_without_the_booking_that_it_stands_on_it_asks_and_looks_again_after_the_answer() -> None:
    world = AgentTestHarness(travel)
    asked = world.send("Book a hotel")
    assert (asked.state, "no flight booking" in asked.said) == (ASKS, True)
    flight = world.send("Book a flight to Rome", context_id=asked.task.context_id).task
    part = Part(text="done", metadata={"taskId": flight.id, "artifactId": flight.artifacts[0].artifact_id})
    assert booking(world.send([part], task_id=asked.task.id))["place"] == "Rome"


@pytest.mark.parametrize("answer", ["The one to Rome", "(2)", "第二个"])
def test_of_two_flights_it_asks_which_one_is_meant(answer: str) -> None:
    world = AgentTestHarness(travel)
    context = world.send("Book a flight to Rome").task.context_id
    world.wait(1000)
    world.send("Book a flight to Oslo", context_id=context)
    asked = world.send("Book a hotel", context_id=context)
    assert (asked.state, "(2)" in asked.said) == (ASKS, True)
    assert booking(world.send(answer, task_id=asked.task.id))["place"] == "Rome"


def test_a_reference_decides_between_two_flights() -> None:
    world = AgentTestHarness(travel)
    rome = world.send("Book a flight to Rome").task
    world.send("Book a flight to Oslo", context_id=rome.context_id)
    hotel = world.send("Book a hotel", context_id=rome.context_id, references=[rome.id])
    assert booking(hotel)["place"] == "Rome"


def test_the_same_request_gives_the_same_booking() -> None:
    first, second = (booking(AgentTestHarness(travel).send("Book a flight to Oslo")) for _ in range(2))
    assert first == second


def test_questions_without_end_are_given_up() -> None:
    world = AgentTestHarness(travel)
    reply = world.send("Book a hotel")
    for _ in range(5):
        assert reply.state is ASKS
        reply = world.send("hm", task_id=reply.task.id)
    assert reply.state is TaskState.REJECTED


APPROVALS = [
    pytest.param("Book a flight to Oslo. Ask me for approval first.", "Yes.", "no", "Not booked", id="English"),
    pytest.param("预订飞往奥斯陆的航班，先请我批准。", "可以", "不", "没有预订", id="Chinese"),
]


def asked_for_approval(world: AgentTestHarness, text: str) -> str:
    """The id of a task that waits for its approval, and was asked for it twice."""
    task = world.begin(text)
    assert isinstance(task, Task)
    world.settle(90_000)
    reply = world.reply(task.id)
    assert reply.state is ASKS
    assert [one.text() for one in reply.task.history].count(reply.said) == 1, "the reminder is the status message"
    assert {wait.kind for wait in world.waits(task.id)} == {"question", "timeout", "reminder"}
    return task.id


@pytest.mark.parametrize(("text", "yes", "no", "refusal"), APPROVALS)
def test_a_flight_that_needs_an_approval_is_booked_with_it_only(text: str, yes: str, no: str, refusal: str) -> None:
    world = AgentTestHarness(travel)
    assert booking(world.send(yes, task_id=asked_for_approval(world, text)))["place"] in {"Oslo", "奥斯陆"}
    refused = world.send(no, task_id=asked_for_approval(world, text))
    assert (refused.artifacts, refusal in refused.said) == ({}, True)


@pytest.mark.parametrize(("text", "yes", "no", "refusal"), APPROVALS)
def test_without_an_approval_nothing_is_booked_after_ten_minutes(text: str, yes: str, no: str, refusal: str) -> None:
    del yes, no
    reply = AgentTestHarness(travel).send(text)
    assert (reply.artifacts, refusal in reply.said) == ({}, True)
