"""What is a topic, what is a text, and what is a request for something."""

from __future__ import annotations

import pytest

from a2a_serverless.adapters.builtin.topics import topic_of, without_request


@pytest.mark.parametrize(
    ("request_text", "topic"),
    [
        ("lighthouses", "lighthouses"),
        ("# Lighthouses", "Lighthouses"),
        ("How do lighthouses work?", "How do lighthouses work?"),
        ("Write a short article about the history of sail.", "the history of sail"),
        ("Please can you create an outline for a talk on tides", "a talk on tides"),
        ("I'd like you to explain tides.", "tides"),
        ("Tell me about tides!", "tides"),
        ("Text mining", "Text mining"),
        ("请写一篇关于灯塔的文章。", "灯塔"),
        ("介绍一下潮汐", "潮汐"),
        ("帮我生成一份关于冷启动的报告", "冷启动"),
        ("写作技巧", "写作技巧"),
        ("任务的生命周期", "任务的生命周期"),
    ],
)
def test_a_request_names_its_topic(request_text: str, topic: str) -> None:
    assert topic_of(request_text) == topic


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The Fresnel lens was invented in 1822.",
        "It rained. We stayed.",
        "灯塔建于公元前三世纪，是当时最高的建筑之一。",
        "First line\nsecond line",
    ],
)
def test_a_statement_is_a_text_of_its_own(text: str) -> None:
    assert topic_of(text) is None


def test_a_request_above_a_text_is_taken_off() -> None:
    assert without_request("Please summarise the following text:\n\nTides come twice.").strip() == "Tides come twice."
    assert without_request("请为下面的文章写大纲：\n潮汐每天两次。") == "潮汐每天两次。"


def test_a_first_line_that_asks_nothing_stays() -> None:
    assert without_request("Three things matter:\n\nTides.") == "Three things matter:\n\nTides."
