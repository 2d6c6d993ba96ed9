import pytest

from a2a_serverless.domain.errors import FieldViolation, InvalidAgentResponse, InvalidParams
from a2a_serverless.domain.model import Json
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.wire.fields import Fields, read, read_peer


def wrong(value: Json, getter: str, *args: object, limits: Limits = LIMITS) -> str:
    """What a getter says is wrong with the field ``x``."""
    with pytest.raises(InvalidParams) as caught:
        read({"x": value}, limits, lambda fields: getattr(fields, getter)("x", *args))
    (violation,) = caught.value.violations
    assert violation.field == "x"
    return violation.description


def got(value: Json, getter: str, *args: object) -> object:
    return read({"x": value}, LIMITS, lambda fields: getattr(fields, getter)("x", *args))


@pytest.mark.parametrize(
    ("getter", "args", "value", "expected"),
    [
        ("text", (), "", ""),
        ("text", (), None, None),
        ("ident", (), "", None),
        ("ident", (), "a b/漢", "a b/漢"),
        ("whole", (), 0, 0),
        ("whole", (), "7", 7),
        ("whole", (), 7.0, 7),
        ("whole", (), "0007", 7),
        ("flag", (), False, False),
        ("flag", (), "true", True),
        ("choice", ({"A": 1, 2: 3},), "A", 1),
        ("choice", ({"A": 1, 2: 3},), 2, 3),
        ("moment", (), "1970-01-01T00:00:01Z", 1000),
        ("base64", (), "", ""),
        ("base64", (), "-_8", "+/8="),
        ("base64", (), "+/8=", "+/8="),
        ("struct", (), {"a": None}, {"a": None}),
        ("strings", (), ["a", "b"], ("a", "b")),
        ("strings", (), [], ()),
    ],
)
def test_a_getter_gives_what_was_sent(getter: str, args: tuple[object, ...], value: Json, expected: object) -> None:
    assert got(value, getter, *args) == expected


@pytest.mark.parametrize(
    ("getter", "args", "value", "description"),
    [
        ("text", (), 5, "must be a string"),
        ("text", (2,), "abc", "must have at most 2 characters"),
        ("need_text", (2,), "", "is required"),
        ("need_text", (2,), None, "is required"),
        ("ident", (), "a\nb", "without control characters"),
        ("ident", (), "漢" * 86, "1 to 256 bytes"),
        ("ident", (), "a" * 257, "1 to 256 bytes"),
        ("ident", (), ["a"], "must be a string"),
        ("need_ident", (), None, "is required"),
        ("need_ident", (), "", "is required"),
        ("need_ident", (), 5, "must be a string"),
        ("whole", (), -1, "from 0 to 2147483647"),
        ("whole", (1, 100), 101, "from 1 to 100"),
        ("whole", (), 2**31, "from 0 to 2147483647"),
        ("whole", (), True, "must be an integer"),
        ("whole", (), 1.5, "must be an integer"),
        ("whole", (), "1.5", "must be an integer"),
        ("whole", (), "٣", "must be an integer"),
        ("whole", (), "9" * 5000, "must be an integer"),
        ("whole", (), [], "must be an integer"),
        ("flag", (), 1, "must be true or false"),
        ("flag", (), "yes", "must be true or false"),
        ("choice", ({"A": 1, 2: 3},), "B", "must be one of A"),
        ("choice", ({"A": 1, 1: 3},), True, "must be one of A"),
        ("choice", ({"A": 1},), ["A"], "must be one of A"),
        ("moment", (), "now", "must be a timestamp such as"),
        ("moment", (), 5, "must be a timestamp such as"),
        ("base64", (), "a", "must be base64"),
        ("base64", (), "!!!!", "must be base64"),
        ("base64", (), "YQ==YQ==", "must be base64"),
        ("base64", (), "漢", "must be base64"),
        ("base64", (), 5, "must be base64"),
        ("struct", (), [], "must be an object"),
        ("strings", (), "a", "must be a list of at most 64"),
        ("strings", (), ["a"] * 65, "must be a list of at most 64"),
        ("children", (3,), [{}] * 4, "must be a list of at most 3"),
        ("child", (), "a", "must be an object"),
    ],
)
def test_a_getter_says_what_would_be_valid(
    getter: str, args: tuple[object, ...], value: Json, description: str
) -> None:
    assert description in wrong(value, getter, *args)


def test_a_field_may_come_in_snake_case() -> None:
    assert read({"message_id": "m"}, LIMITS, lambda fields: fields.need_ident("messageId")) == "m"


def test_camel_case_goes_before_snake_case() -> None:
    value: Json = {"message_id": "old", "messageId": "new"}
    assert read(value, LIMITS, lambda fields: fields.need_ident("messageId")) == "new"


def test_every_violation_is_reported_under_its_path() -> None:
    def parse(fields: Fields) -> None:
        outer = fields.child("outer")
        assert outer is not None
        for one in outer.children("list", 5):
            one.need_ident("id")
        outer.strings("names")
        fields.whole("count")

    value: Json = {"outer": {"list": [{"id": "a"}, {}, 5], "names": ["ok", 5]}, "count": "many"}
    with pytest.raises(InvalidParams) as caught:
        read(value, LIMITS, parse)
    assert [violation.field for violation in caught.value.violations] == [
        "outer.list[2]",
        "outer.list[1].id",
        "outer.names[1]",
        "count",
    ]
    assert str(caught.value) == (
        "outer.list[2] must be an object. outer.list[1].id is required. "
        "outer.names[1] must be a string of 1 to 1024 bytes. 1 more under fieldViolations."
    )


def test_the_number_of_reported_violations_is_bounded() -> None:
    with pytest.raises(InvalidParams) as caught:
        read({"x": [5] * 60}, LIMITS, lambda fields: fields.strings("x"))
    assert len(caught.value.violations) == LIMITS.violations


def test_a_single_violation_is_the_text_of_the_error() -> None:
    with pytest.raises(InvalidParams, match=r"^x is required\.$") as caught:
        read({}, LIMITS, lambda fields: fields.need_ident("x"))
    assert caught.value.violations == (FieldViolation("x", "is required"),)


@pytest.mark.parametrize("value", [None, [], "x", 5, True])
def test_parameters_that_are_not_an_object_are_refused(value: Json) -> None:
    with pytest.raises(InvalidParams, match="must be an object"):
        read(value, LIMITS, lambda fields: fields)


def test_a_violation_does_not_repeat_what_was_sent() -> None:
    with pytest.raises(InvalidParams) as caught:
        read({"token": ["hunter2"]}, LIMITS, lambda fields: fields.text("token"))
    assert "hunter2" not in repr(caught.value.violations) + str(caught.value)


def test_a_bad_answer_of_a_peer_is_the_peers_fault() -> None:
    with pytest.raises(InvalidAgentResponse, match="x is required"):
        read_peer({}, LIMITS, lambda fields: fields.need_ident("x"))
