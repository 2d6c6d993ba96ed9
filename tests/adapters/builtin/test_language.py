"""Where sentences end, and what they are about."""

from __future__ import annotations

import pytest

from a2a_serverless.adapters.builtin.language import LONGEST_SENTENCE, sentences, stem, terms


@pytest.mark.parametrize(
    "expected",
    [
        ["Dr. J. R. R. Tolkien met Mr. Smith.", "He left."],
        ["The ship was 3.5 m long.", "See https://example.org/a.b for more."],
        ["She served in the U.S. Navy.", "He sailed from the U.S.", "The end."],
        ["Use pairs, e.g. Two lenses, i.e. Four prisms.", "Done."],
        ["It opened on Feb. 27 as No. 5 of the line.", "I said no.", "Then I left."],
        ["It took 20 ms.", "See below."],
        ["It stands on Pier St.", '"If it falls, we go."', "Nobody spoke."],
        ["Call `a. B` first.", "Then read [the v. 2 notes](http://example.org/x.y)."],
        ["**Safe.**", "Nothing is lost."],
        ["Wait... what?", "Yes!"],
        ["1. First we look.", "2. Then we leap."],
        ["مرحبا؟", "أهلا بك."],
        ["他说：“你好。”", "然后走了！", "真的吗？", "是的。"],
        ["任务（例如，预订。退订。）已完成。", "Version 2.0 已发布。", "好。"],
        ["风小的时候划桨；风大的时候升帆。", "到了。"],
    ],
    ids=lambda sentences: sentences[0][:24],
)
def test_sentences_end_where_a_reader_ends_them(expected: list[str]) -> None:
    chinese = any("\u4e00" <= character <= "\u9fff" for character in expected[0])
    assert sentences(("" if chinese else " ").join(expected)) == expected


def test_a_chinese_semicolon_ends_only_what_is_long_already() -> None:
    half = "风" * 70 + "；"
    assert sentences(half + "雨来了。") == [half, "雨来了。"]


def test_a_text_without_any_full_stop_is_cut_between_words() -> None:
    pieces = sentences("word " * 1_000)
    assert len(pieces) > 1
    assert all(len(piece) <= LONGEST_SENTENCE for piece in pieces)
    assert " ".join(pieces).split() == ["word"] * 1_000


def test_one_word_of_any_length_is_cut_somewhere() -> None:
    assert "".join(sentences("x" * 2_500)) == "x" * 2_500


def test_nothing_has_no_sentences() -> None:
    assert sentences(" \n\t ") == []


@pytest.mark.parametrize(
    ("word", "folded"),
    [
        ("Lighthouse's", "lighthouse"),
        ("cities", "city"),
        ("lenses", "lens"),
        ("glass", "glass"),
        ("sailors’", "sailor"),
    ],
)
def test_forms_of_one_word_are_folded_together(word: str, folded: str) -> None:
    assert stem(word) == folded


def test_terms_are_words_without_stop_words_and_chinese_in_pairs() -> None:
    assert terms("The lenses of a lighthouse") == ["lens", "lighthouse"]
    assert terms("灯塔的光") == ["灯塔"]
