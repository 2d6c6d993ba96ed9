import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_webhook_receiver import strict_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_the_parser_reads_values_back_that_json_writes(value: object) -> None:
    assert strict_json.parse(json.dumps(value).encode()) == value


@given(VALUES)
def test_letters_beyond_ascii_may_stand_for_themselves(value: object) -> None:
    assert strict_json.parse(json.dumps(value, ensure_ascii=False).encode()) == value


SPELLED = st.text(alphabet='{}[]",: 019.eE-+ntrufalsé\\', max_size=12).map(str.encode)


@given(st.one_of(st.binary(max_size=40), SPELLED, VALUES.map(json.dumps).map(str.encode)))
def test_any_bytes_are_read_or_refused_with_a_value_error(raw: bytes) -> None:
    try:
        value = strict_json.parse(raw)
    except ValueError:
        return
    assert value == json.loads(raw)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"a":1,"a":1}', "twice"),
        (b'{"a":1,"\\u0061":2}', "twice"),
        (b'[{"a":{"b":1,"b":2}}]', "twice"),
        (b"NaN", "NaN"),
        (b"[-Infinity]", "-Infinity"),
        (b"1e999", "range"),
        (b"-1e999", "range"),
        (b"9" * 301, "range"),
        (b'"\\ud800"', "surrogate"),
        (b'{"\\udfff":1}', "surrogate"),
        (b"[" * 65 + b"]" * 65, "deep"),
        (b"[" * 100_000, "deep"),
        (b"\xef\xbb\xbf{}", "BOM|Expecting"),
        (b"\xff", "decode"),
        (b"", "Expecting"),
    ],
)
def test_json_that_two_readers_could_understand_differently_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        strict_json.parse(raw)


def test_the_limits_themselves_are_allowed() -> None:
    assert strict_json.parse(b"[" * 64 + b"]" * 64)
    assert strict_json.parse(b"9" * 300) == int("9" * 300)


@pytest.mark.parametrize("raw", [b"[]", b"null", b'"x"', b"1"])
def test_an_object_is_asked_for_and_nothing_else_is_given(raw: bytes) -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        strict_json.parse_object(raw)
