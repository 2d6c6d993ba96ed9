import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from a2a_serverless_tools.cli.terminal import Explained, Terminal, aligned, neutral, one_line, plain, program


def test_a_long_text_is_cut_to_one_line() -> None:
    assert one_line("one\n two\tthree", 100) == "one two three"
    assert one_line("x" * 20, 10) == "x" * 9 + "…"


def test_line_ends_and_tabs_are_no_control_characters() -> None:
    assert plain("a\tb\r\nc\rd\x07\x9b") == "a\tb\nc\ufffdd\ufffd\ufffd"


@pytest.mark.parametrize("char", [*"\u202e\u2066\u200f\u061c\u200b\ufeff\u2028\U000e0041"])
def test_characters_that_are_not_seen_or_turn_others_are_replaced(char: str) -> None:
    assert plain(f"invoice{char}fdp.exe") == "invoice\ufffdfdp.exe"
    assert one_line(f"invoice{char}fdp.exe", 40) == "invoice\ufffdfdp.exe"


@pytest.mark.parametrize("text", ["می‌خواهم", "👩‍🚀", "שלום 5", "tab\tand\nline", "数据"])
def test_plain_leaves_an_ordinary_text_unchanged(text: str) -> None:
    assert plain(text) == text


def printed(*, terminal: bool) -> tuple[Terminal, io.StringIO]:
    """A terminal (or a pipe), and what was written to it."""
    file = io.StringIO()
    console = neutral(Console(file=file, force_terminal=terminal, width=80))
    return Terminal(out=console, err=console), file


@pytest.mark.parametrize(
    "show",
    [
        lambda terminal: terminal.rows([("name", "a\u202eb\x1bc"), ("text", Text("a\u202eb\x1bc"))]),
        lambda terminal: terminal.result(None, "a\u202eb\x1bc"),
        lambda terminal: terminal.data("a\u202eb\x1bc"),
        lambda terminal: terminal.table(None, ("a\u202eb\x1bc",), [("a\u202eb\x1bc",)]),
        lambda terminal: terminal.fail(Explained("kind", "a\u202eb\x1bc", "a\u202eb\x1bc")),
        lambda terminal: terminal.note("a\u202eb\x1bc"),
        lambda terminal: terminal.out.print(Text("a\u202eb\x1bc", "red"), style="bold"),
    ],
)
def test_a_terminal_shows_texts_of_strangers_without_control_characters(show: Callable[[Terminal], None]) -> None:
    terminal, file = printed(terminal=True)
    show(terminal)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())
    assert "a\ufffdb" in shown
    assert not {*"\u202e\x1b"} & {*shown}


def test_programs_get_the_text_as_it_is() -> None:
    terminal, file = printed(terminal=False)
    terminal.data("a\u202eb")
    terminal.result(None, "a\u202eb")
    assert file.getvalue() == '"a\u202eb"\na\u202eb'


def test_the_consoles_of_the_program_are_neutral() -> None:
    assert all(console._render_hooks for console in (Terminal().out, Terminal().err))  # noqa: SLF001


def test_the_terminal_prints_no_colour_if_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=io.StringIO(), force_terminal=True)
    Terminal(out=console).out.print("x", style="green")
    assert "32m" not in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_program_that_is_not_on_the_path_is_called_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "bin" / "a2a-serverless"
    script.parent.mkdir()
    script.write_text("")
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.chdir(tmp_path)
    assert program() == "bin/a2a-serverless"
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "a2a-serverless"
    monkeypatch.setenv("UV_RUN_RECURSION_DEPTH", "1")
    assert program() == "uv run a2a-serverless", "as it was called: the PATH is uv's"


def test_a_program_whose_file_is_gone_is_called_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/nowhere/python"])
    assert program() == "a2a-serverless"


def test_columns_are_aligned_by_what_a_terminal_shows() -> None:
    assert [*aligned([("echo", "回声", "a"), ("slow", "Slow", "b"), ("x", "é", "c")])] == [
        "echo  回声  a\n",
        "slow  Slow  b\n",
        "x     é     c\n",
    ]
    assert [*aligned([])] == []


@pytest.mark.parametrize("screen", [True, False])
def test_a_table_has_a_head_on_a_terminal_only(*, screen: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=screen, color_system=None)
    Terminal(out=console).table([], ("AGENT", "NAME"), [("a", "回声代理代理")])
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines == (["AGENT  NAME", "a      回声代理代理"] if screen else ["a  回声代理代理"])


@pytest.mark.parametrize("interactive", [True, False])
def test_a_terminal_shows_for_what_a_command_waits(*, interactive: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, force_interactive=interactive, width=80)
    terminal = Terminal(err=console)
    with terminal.waiting("Waiting for [a.example]"), terminal.waiting("no second line"):
        pass
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert ("Waiting for [a.example]" in shown) is interactive
    assert "no second line" not in shown


def test_a_line_to_paste_has_no_line_end_on_a_narrow_screen() -> None:
    out = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=20, _environ={})
    Terminal(out).rows([("Try", "a2a-serverless send echo Hello --inbox http://127.0.0.1:8010"), ("", "")])
    assert isinstance(out.file, io.StringIO)
    first, *_ = out.file.getvalue().splitlines()
    assert first == "Try  a2a-serverless send echo Hello --inbox http://127.0.0.1:8010"


@pytest.mark.parametrize(("variables", "moves"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_without_colours_nothing_moves_the_cursor(variables: dict[str, str], *, moves: bool) -> None:
    err = Console(file=io.StringIO(), force_terminal=True, width=40, _environ=variables)
    with Terminal(err=err).waiting("Waiting"):
        pass
    assert isinstance(err.file, io.StringIO)
    assert ("\x1b[?25l" in err.file.getvalue()) == moves
