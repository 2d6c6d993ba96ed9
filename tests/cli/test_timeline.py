import re

from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless_tools.cli.timeline import Phase, draw


def test_the_phases_of_a_demo_are_drawn_on_one_scale() -> None:
    lines = draw([Phase("send", 0.0, 1.0), Phase("webhooks", 1.0, 3.0), Phase("get", 3.0, 4.0)], width=8)
    assert lines == [
        "send      ━━          1.0 s   from 0.0 s",
        "webhooks    ━━━━      2.0 s   from 1.0 s",
        "get             ━━    1.0 s   from 3.0 s",
    ]


def test_a_timeline_without_spans_has_no_lines() -> None:
    assert draw([]) == []


TIMES = st.floats(0, 1e4)


@given(st.lists(st.tuples(TIMES, TIMES).map(sorted), min_size=1, max_size=8), st.integers(1, 80))
def test_every_phase_has_a_mark_and_no_line_is_wider_than_another(spans: list[list[float]], width: int) -> None:
    lines = draw([Phase("x", begin, end) for begin, end in spans], width)
    assert all("━" in line for line in lines)
    assert {len(line[: width + 5].rstrip()) <= width + 3 for line in lines} == {True}
    assert all(re.fullmatch(r" {2,6}[0-9.]+ (s |ms)  from [0-9.]+ s", line[width + 3 :]) for line in lines)


def test_a_timeline_shows_less_than_a_second_in_milliseconds() -> None:
    assert draw([Phase("step", 0.0, 0.0421)], width=2) == ["step  ━━     42 ms  from 0.0 s"]


def test_bars_begin_below_each_other_also_behind_chinese_names() -> None:
    lines = draw([Phase("回声.txt", 0.0, 1.0), Phase("GetTask", 1.0, 2.0)], width=8)
    assert lines == ["回声.txt  ━━━━        1.0 s   from 0.0 s", "GetTask       ━━━━    1.0 s   from 1.0 s"]
