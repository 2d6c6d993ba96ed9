"""What a document is read as."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_serverless.adapters.builtin.markdown import Block, plain, read


def kinds(source: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in read(source).blocks]


def test_marked_headings_of_both_styles_are_headings() -> None:
    assert kinds("# One #\n\nTwo\n---\n\n#hashtag") == [
        ("heading", "One"),
        ("heading", "Two"),
        ("paragraph", "#hashtag"),
    ]


def test_wrapped_lines_are_one_paragraph_and_chinese_ones_join_without_a_space() -> None:
    assert kinds("a line of text\nthat goes on\n\n这是第一行\n这是第二行") == [
        ("paragraph", "a line of text that goes on"),
        ("paragraph", "这是第一行这是第二行"),
    ]


def test_lines_of_a_dialog_are_paragraphs_each() -> None:
    assert len(read("Ann: Hello there.\nBob: Hi.\nAnn: Bye now.").blocks) == 3


def test_long_chinese_lines_are_paragraphs_each() -> None:
    line = "灯塔是建在海岸或岛屿上的高塔，夜里发出光亮，为过往的船只指明方向。" * 3
    assert len(read(f"{line}\n{line}").blocks) == 2


def test_a_list_keeps_what_hangs_below_its_items() -> None:
    source = "1. First:\n\n    ```sh\n    make # all\n    ```\n2. Second\n   goes on\n\nAfter."
    first, after = read(source).blocks
    assert first.items == ("1. First:\n\n    ```sh\n    make # all\n    ```", "2. Second\n   goes on")
    assert after == Block("paragraph", "After.")


def test_bullets_of_any_shape_become_markdown() -> None:
    assert read("• one\n• two").blocks[0].items == ("- one", "- two")
    assert read("1、甲\n2、乙").blocks[0].items == ("1. 甲", "2. 乙")


def test_a_fence_that_is_never_closed_is_closed() -> None:
    assert kinds("~~~\n# no heading") == [("code", "~~~\n# no heading\n~~~")]


def test_json_that_was_pasted_without_a_fence_is_code() -> None:
    assert kinds('It answers:\n{\n  "a": 1\n}\nand stops.')[1] == ("code", '```\n{\n  "a": 1\n}\n```')


def test_a_table_is_one_block() -> None:
    assert kinds("| a | b |\n|---|---|\n| 1 | 2 |\ntext")[0] == ("table", "| a | b |\n|---|---|\n| 1 | 2 |")


def test_indented_prose_is_no_code() -> None:
    assert [kind for kind, _ in kinds("    It was a dark night.\n\nx\n\n    x = y\n")] == [
        "paragraph",
        "paragraph",
        "code",
    ]


def test_html_goes_and_what_it_says_stays() -> None:
    source = "<!-- no -->\n<h2 id='x'>Tide</h2>\n<p>a <b>b</b> < c</p>\n<script>alert(1)</script>"
    assert kinds(source) == [("heading", "Tide"), ("paragraph", "a b < c")]


def test_a_script_that_never_ends_runs_nothing_and_loses_nothing() -> None:
    assert kinds("Before.\n\n<script>after")[-1] == ("paragraph", "after")


def test_html_in_code_stays() -> None:
    assert kinds("```html\n<p>x</p>\n```") == [("code", "```html\n<p>x</p>\n```")]


def test_pictures_and_tables_of_contents_are_left_out() -> None:
    assert kinds("![logo](logo.png)\n\n- [One](#one)\n  - [Two](#two)\n\nA ![x](y.png) b") == [("paragraph", "A  b")]


def test_links_keep_leading_somewhere() -> None:
    assert kinds("See [the list][l] and [above](#up).\n\n[l]: https://example.org 'List'") == [
        ("paragraph", "See [the list](https://example.org) and above.")
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_front_matter_gives_the_title_whatever_ends_its_lines(line_end: str) -> None:
    document = read(line_end.join(["---", 'title: "灯塔"', "order: 2", "---", "光。"]))
    assert document.title == "灯塔"
    assert [block.text for block in document.blocks] == ["光。"]


def test_a_rule_at_the_top_is_no_front_matter() -> None:
    assert kinds("---\nHello there.\n---\nMore.")[0] == ("heading", "Hello there.")


def test_plain_text_has_no_marks_but_keeps_those_that_are_code() -> None:
    assert plain("**a *b* c** `__init__` snake_case [x](y) <https://z.org> 2 * 3 * 4 \\*") == (
        "a b c __init__ snake_case x https://z.org 2 * 3 * 4 *"
    )


@given(st.text(alphabet=st.sampled_from("ab#*-_`~|>:.[]()!<>/ \t\n1灯。"), max_size=400))
@settings(deadline=None)
def test_any_text_is_read_and_no_block_is_empty(source: str) -> None:
    assert all(block.text.strip() for block in read(source).blocks)
