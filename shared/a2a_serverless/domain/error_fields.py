"""Log fields for an exception: its class and where it was raised, without its text, which may quote client data."""

from __future__ import annotations

from collections.abc import Iterator


def safe_error_fields(error: BaseException) -> dict[str, object]:
    """Fields for a log line: ``error`` has the classes of the exception and its causes, ``raised_at`` the traceback."""
    chain = list(causes_of(error))
    kinds = " < ".join(_kind(cause) for cause in chain)
    fields: dict[str, object] = {"error": kinds}
    if "UnknownServiceError" in kinds:
        fields["remedy"] = "the zip has data of AWS services only whose names stand as text in the project's code"
    return fields | {"raised_at": [place for cause in reversed(chain) for place in _places(cause)]}


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """The error, then its causes and contexts."""
    ids: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in ids:
        ids.add(id(cause))
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _kind(error: BaseException) -> str:
    """The class; for an AWS error also the operation and the error code, which never contain client data."""
    fields = vars(error)  # without properties, which may raise
    answer = fields.get("response")
    code = answer.get("Error", {}).get("Code") if isinstance(answer, dict) else None
    return f"{type(error).__name__}({fields.get('operation_name', '')}: {code})" if code else type(error).__name__


def text_of(error: BaseException) -> str:
    """The error's text; "" if the error's own code for its text raises."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - any exception of that code
        return ""


def _places(error: BaseException) -> Iterator[str]:
    step = error.__traceback__
    while step:
        code = step.tb_frame.f_code
        yield f"{code.co_filename}:{step.tb_lineno} {code.co_name}"
        step = step.tb_next
