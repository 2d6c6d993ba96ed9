import pytest
from botocore.exceptions import ClientError, UnknownServiceError

from a2a_serverless.domain.errors import safe_error_fields


def fails() -> None:
    raise ValueError("what a client said")


def rethrows() -> None:
    try:
        fails()
    except ValueError as error:
        raise KeyError("x") from error


def test_a_failure_is_told_by_its_class_and_its_way_and_not_by_its_text() -> None:
    with pytest.raises(ValueError, match="client") as raised:
        fails()
    said = safe_error_fields(raised.value)
    assert said["error"] == "ValueError"
    assert str(said["raised_at"]).endswith(" fails']")
    assert "client" not in str(said)


def test_causes_are_told_too_the_first_one_first_and_a_suppressed_one_is_not() -> None:
    with pytest.raises(KeyError) as raised:
        rethrows()
    said = safe_error_fields(raised.value)
    assert said["error"] == "KeyError < ValueError"
    assert str(said["raised_at"]).endswith(" rethrows']")
    raised.value.__cause__ = None
    assert safe_error_fields(raised.value)["error"] == "KeyError"


def test_an_aws_error_is_told_with_what_was_asked_and_its_code() -> None:
    error = ClientError({"Error": {"Code": "AccessDenied", "Message": "what a client said"}}, "PutItem")
    assert safe_error_fields(error)["error"] == "ClientError(PutItem: AccessDenied)"


def test_exceptions_that_point_at_each_other_are_told_once() -> None:
    one, two = ValueError(), KeyError()
    one.__cause__, two.__cause__ = two, one
    assert safe_error_fields(one) == {"error": "ValueError < KeyError", "raised_at": []}


def test_an_aws_service_that_was_left_out_of_the_zip_is_told_with_what_helps() -> None:
    error = UnknownServiceError(service_name="textract", known_service_names=["s3"])
    assert "names stand as text" in str(safe_error_fields(error)["remedy"])
