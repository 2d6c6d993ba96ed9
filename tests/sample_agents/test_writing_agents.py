"""The writing agents, each by itself: outline (a task with a data part), document (a task that grows), summary."""

from __future__ import annotations

import pytest

from a2a_serverless import Message, Part, TaskState
from a2a_serverless.domain.events import ArtifactEvent
from a2a_serverless.testing import CLIENT, AgentTestHarness
from sample_agents.document import document
from sample_agents.outline import outline
from sample_agents.summary import summary
from sample_agents.writing import outline_from_json

ENGLISH = """# Bees in the city

Bees live well in cities. Parks and balconies flower from March to October, and nobody sprays them.

## What a hive needs

A hive needs sun in the morning, shelter from the wind and water nearby. It weighs up to eighty kilograms.

## What the keeper needs

A keeper needs a veil, a smoker and an hour a week. The neighbours need to be asked first.
"""
CHINESE = """# 城市养蜂

蜜蜂在城市里生活得很好。公园和阳台从三月到十月都开花，也没有人喷洒农药。

## 蜂箱需要什么

蜂箱需要早晨的阳光、避风的位置和附近的水源。它重达八十公斤。

## 养蜂人需要什么

养蜂人需要面纱、喷烟器和每周一个小时。首先要征求邻居的同意。
"""
TEXTS = [pytest.param(ENGLISH, "Bees in the city", id="English"), pytest.param(CHINESE, "城市养蜂", id="Chinese")]


@pytest.mark.parametrize(("text", "title"), TEXTS)
def test_an_outline_is_a_data_part_that_the_document_writer_takes_as_it_is(text: str, title: str) -> None:
    planned = AgentTestHarness(outline).send(text)
    assert planned.state is TaskState.COMPLETED
    plan = outline_from_json(planned.data("outline.json"))
    assert plan.title == title
    parts = [Part(text=text), Part(data=planned.data("outline.json"))]
    written = AgentTestHarness(document).send(parts).text("document.md")
    assert [line[3:] for line in written.splitlines() if line.startswith("## ")] == [one.title for one in plan.sections]


@pytest.mark.parametrize(("text", "title"), TEXTS)
def test_a_document_grows_by_a_chunk_for_each_section_and_the_last_chunk_is_the_whole(text: str, title: str) -> None:
    harness = AgentTestHarness(document)
    reply = harness.send(text)
    events = harness.table.read(CLIENT.key(reply.task.id), 0, 100)
    first, *sections, last = (event for event in events if isinstance(event, ArtifactEvent))
    assert first.artifact.text().startswith(f"# {title}\n")
    assert sections
    assert all(one.append and one.artifact.text().startswith("## ") for one in sections)
    assert (last.append, last.last_chunk, last.artifact.text()) == (False, True, reply.text("document.md"))
    assert (last.artifact.description, reply.said) == (title, "")


@pytest.mark.parametrize(("text", "words"), [(ENGLISH, "hive"), (CHINESE, "蜂")])
def test_a_summary_is_a_message_and_makes_no_task(text: str, words: str) -> None:
    reply = AgentTestHarness(summary).send(text)
    assert isinstance(reply.answer, Message)
    assert words in reply.said
    assert len(reply.said) < len(text)


@pytest.mark.parametrize("agent", [outline, document, summary], ids=lambda agent: agent.id)
def test_a_message_without_a_text_is_rejected_with_what_to_send(agent: object) -> None:
    reply = AgentTestHarness(agent).send("   ")  # type: ignore[arg-type]
    assert reply.state is TaskState.REJECTED
    assert "Send a text" in reply.said


def test_an_outline_that_cannot_be_read_is_rejected_with_the_field_that_is_wrong() -> None:
    reply = AgentTestHarness(document).send({"title": "Bees", "sections": [{"name": "Hives"}]})
    assert reply.state is TaskState.REJECTED
    assert "sections[0].title" in reply.said
