import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from a2a_serverless.domain.errors import InvalidRequest, ParseError
from a2a_serverless.domain.model import Json
from a2a_serverless.protocol.error_codes import BodyTooLarge
from a2a_serverless.protocol.strict_json import LIMITS, BadJson, Limits, check_depth, check_numbers, dumps, loads
from tests.protocol import strategies
from tests.protocol.strategies import SOME


@given(strategies.JSON)
@SOME
def test_a_value_that_dumps_prints_is_read_back_unchanged(value: Json) -> None:
    assert loads(dumps(value)) == value


@pytest.mark.requirement(35, 124)
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "Expecting value"),
        (b"{", "line 1, column 2"),
        (b'{"a": 1} x', "Extra data"),
        (b"NaN", "NaN is not a JSON number"),
        (b"[Infinity]", "Infinity is not a JSON number"),
        (b"[-Infinity]", "-Infinity is not a JSON number"),
        (b"1e999", "a number is too large"),
        (b"1" * 301, "an integer has more than 300 digits"),
        (b'[{"a": -' + b"1" * 301 + b"}]", "an integer has more than 300 digits"),
        (b"1" * 5_000_000, "an integer has more than 300 digits"),
        (b"-1e400", "a number is too large"),
        (b'{"a": 1, "a": 1}', "the same name twice"),
        (b'{"b": [{"a": 1, "\\u0061": 1}]}', "the same name twice"),
        (b'"\\ud800"', "lone surrogate"),
        (b'{"\\uDC00": 1}', "lone surrogate"),
        (b'"\xff"', "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        ("{}".encode("utf-16"), "not UTF-8"),
        (b"\xef\xbb\xbf{}", "Expecting value"),
        (b'"\x01"', "control character"),
    ],
)
def test_bytes_that_are_not_json_are_a_parse_error_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        loads(body)


@pytest.mark.parametrize("number", [10**300 - 1, 1 - 10**299, 2**53 + 1, 0])
def test_an_integer_with_as_many_digits_as_are_allowed_is_read(number: int) -> None:
    assert loads(dumps([number])) == [number]


@given(strategies.JSON)
@SOME
def test_a_value_that_can_be_read_passes_the_checks_for_printing(value: Json) -> None:
    check_numbers(dumps(value))
    check_depth(dumps(value), LIMITS.depth)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[NaN]", "NaN"),
        (b'{"a":-Infinity}', "-Infinity"),
        (b"[" + b"1" * 301 + b"]", "more than 300 digits"),
        (b'["\\\\",-' + b"1" * 301 + b"]", "more than 300 digits"),
        (b'["\\"",' + b"1" * 5000 + b"]", "more than 300 digits"),
    ],
    ids=["NaN", "infinity", "an integer", "after an escaped backslash", "after an escaped quote"],
)
def test_printed_json_with_a_number_that_readers_refuse_is_found(content: bytes, reason: str) -> None:
    with pytest.raises(BadJson, match=reason):
        check_numbers(content)


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1" * 5000, '"' + "1" * 400, "\\" + "1" * 400 + '\\"'])
def test_the_check_of_numbers_ignores_digits_in_texts(text: str) -> None:
    check_numbers(dumps([text, {text: text}]))


def test_levels_are_counted_outside_of_texts() -> None:
    flat = dumps(["[" * 100, {"{" * 100: '"[[["' * 100}] * 100)
    check_depth(flat, 2)
    with pytest.raises(BadJson, match="more than 1 levels"):
        check_depth(flat, 1)
    check_depth(b"[" * 64 + b"]" * 64, 64)
    with pytest.raises(BadJson, match="more than 64 levels"):
        check_depth(b"[" * 65 + b"]" * 65, 64)


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert loads(b'"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


@pytest.mark.parametrize("depth", [57, 1_000, 99_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_deep_nesting_is_refused_with_the_limit(depth: int, opening: bytes, closing: bytes) -> None:
    with pytest.raises(InvalidRequest, match="at most 56 levels"):
        loads(opening * depth + b"1" * (opening != b"[") + closing * depth)


def test_a_body_as_deep_as_the_limit_is_read() -> None:
    assert loads(b"[" * 56 + b"]" * 56) == json.loads("[" * 56 + "]" * 56)


def test_the_check_of_depth_accepts_many_brackets_side_by_side() -> None:
    assert loads(b"[" + b"[[]]," * 100 + b"[]]") == [[[]]] * 100 + [[]]


@pytest.mark.requirement(121)
def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(BodyTooLarge, match="6000000 bytes; at most 5800000"):
        loads(b"\xff" * 6_000_000)


def test_the_body_limit_is_inclusive() -> None:
    assert loads(b"[1]", Limits(body=3)) == [1]
    with pytest.raises(BodyTooLarge):
        loads(b"[12]", Limits(body=3))


def count(value: Json) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


@given(strategies.JSON, st.sampled_from([(",", ":"), (" , ", " : ")]))
@example(["[,{", '\\"', {"[]": []}, {}, [[]]], (",", ":"))
@SOME
def test_as_many_values_as_are_allowed_are_read_and_no_more(value: Json, separators: tuple[str, str]) -> None:
    body = json.dumps(value, separators=separators, ensure_ascii=False).replace("[]", "[ ]").encode()
    values = count(json.loads(body))
    assert loads(body, Limits(values=values)) == json.loads(body)
    with pytest.raises(BodyTooLarge, match=f"more than {values - 1} JSON values"):
        loads(body, Limits(values=values - 1))


@pytest.mark.parametrize(
    "body",
    [b"[" + b"[]," * 1_900_000 + b"[]]", b"[" + b'"",' * 1_900_000 + b'""]', b"[" + b"1," * 2_500_000 + b"1]"],
    ids=["lists", "texts", "numbers"],
)
def test_a_body_of_very_many_values_is_refused_before_any_of_them_is_made(body: bytes) -> None:
    with pytest.raises(BodyTooLarge, match="more than 100000 JSON values"):
        loads(body)
    with pytest.raises(BodyTooLarge, match="more than 100000 JSON values"):
        loads(body + b"no JSON")


def test_a_text_of_many_commas_and_brackets_is_one_value() -> None:
    text = '[{,\\"' * 500_000
    assert loads(dumps(text)) == text


@pytest.mark.requirement(124)
def test_dumps_prints_compact_json_in_utf_8() -> None:
    assert dumps({"a": [1, "漢"], "b": None}) == '{"a":[1,"漢"],"b":null}'.encode()


def test_printing_nan_as_json_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps(float("nan"))
