"""The page docs/call-from.md has the code of the programs that the foreign clients run, and a reason for every loss."""

from __future__ import annotations

import ast
import re
from typing import Final

import pytest

from tests.docs.documents import blocks
from tests.foreign.flows import CALLERS, FLOWS, ROOT, program_of

PAGE: Final = ROOT / "docs" / "call-from.md"


def test_every_flow_of_every_client_is_run_or_has_a_reason() -> None:
    for name, caller in CALLERS.items():
        assert {*caller.seen} | {*caller.without} == {*FLOWS}, name
        assert not {*caller.seen} & {*caller.without}, name


@pytest.mark.parametrize("name", CALLERS)
def test_the_page_has_code_of_each_program(name: str) -> None:
    program = statements(program_of(name).read_text())
    assert any(statements(block.text) <= program for block in blocks("python", PAGE))


def test_all_code_of_the_page_is_in_a_program() -> None:
    programs = [statements(program_of(name).read_text()) for name in CALLERS]
    assert [
        block.text
        for block in blocks("python", PAGE)
        if not any(statements(block.text) <= program for program in programs)
    ] == []


def statements(code: str) -> set[str]:
    """The statements of a module, each imported name alone."""
    return {
        part
        for node in ast.parse(code).body
        for part in (
            [f"{getattr(node, 'module', '')}: {name.name}" for name in node.names]
            if isinstance(node, ast.Import | ast.ImportFrom)
            else [ast.unparse(node)]
        )
    }


def test_the_makefile_lists_the_environment_of_every_caller() -> None:
    (listed,) = re.findall(r"^CALLERS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed.split() == sorted({caller.environment or name for name, caller in CALLERS.items()})
