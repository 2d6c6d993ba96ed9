"""The documents stay short, and each is of one kind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.docs import words

if TYPE_CHECKING:
    import pytest

WORDS = 30_700  # in English
CHINESE_WORDS = 8_000  # a reader reads the pages of one language


def test_the_documents_have_no_more_words_than_the_bounds() -> None:
    counted = {kind: sum(of.values()) for kind, of in words.count().items()}
    assert counted.pop("中文") <= CHINESE_WORDS
    assert sum(counted.values()) <= WORDS


def test_every_page_is_of_one_kind() -> None:
    assert set(words.count()) <= set(words.KINDS)


def test_tables_count_and_code_comments_and_generated_parts_do_not() -> None:
    page = "# Two words\n\n| a | 1 |\n|---|---|\n\n<!-- drawn: x -->\n\nnot read\n\n<!-- end -->\n\n```sh\nls -l\n```\n"
    assert (words.words(page), words.words_with_code(page)) == (4, 7)


def test_the_command_prints_the_words_of_each_page_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    words.main(["--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["total"] == sum(said["kinds"].values()) == sum(sum(of.values()) for of in said["pages"].values())
