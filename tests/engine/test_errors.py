"""The errors of steps as they are stored: each run raises the same copy."""

from __future__ import annotations

import json
import subprocess
import sys
from types import ModuleType
from typing import Any
from zipimport import ZipImportError

import pytest

from a2a_serverless.domain.agent_errors import AgentCallFailed, StepFailed, TaskFailed, TaskRejected
from a2a_serverless.domain.step_results import StoredError
from a2a_serverless.engine.step_errors import SIZE_LIMIT, dump_error, load_error
from a2a_serverless.protocol.v1 import Message, Part, Role


class Declined(Exception):
    """An error of the project's own."""

    class Twice(Exception):
        """One inside of a class."""


class Worded(Exception):
    """Makes another message of what it gets."""

    def __init__(self, amount: int) -> None:
        super().__init__(f"{amount} are too many")


class Choosy(Exception):
    """Takes nothing but its own words."""

    def __init__(self, said: str) -> None:
        if said != "mine":
            raise RuntimeError
        super().__init__("another's")


class Response:
    """Holds a socket, as those of HTTP libraries do."""


class HttpStatusError(Exception):
    """As those of HTTP libraries: it takes more than its text, and holds an object."""

    def __init__(self, text: str, *, response: Response, code: int) -> None:
        super().__init__(text)
        self.response, self.code = response, code


class Counted(Exception):
    """Its text needs an object, of which its arguments have nothing."""

    def __init__(self, *, items: set[int]) -> None:
        super().__init__()
        self.items = items

    def __str__(self) -> str:
        return f"{len(self.items)} are too many"


def with_note() -> ValueError:
    error = ValueError("no")
    error.add_note("because")
    return error


def with_attribute(value: object = 3) -> TaskFailed:
    error = TaskFailed("in words")
    error.amount = value  # type: ignore[attr-defined]
    return error


def copy_of(error: Exception) -> Any:
    """The copy that a later run makes in another process."""
    return load_error(StoredError(*json.loads(json.dumps(dump_error(error)))))


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no", 3, None, [1.5]),
        KeyError("name"),
        TimeoutError(),
        AgentCallFailed("it is away"),
        Declined("card", {"left": 2}),
        Declined.Twice("card"),
        FileNotFoundError(2, "No such file", "plan.txt"),
        json.JSONDecodeError("no JSON", "{", 1),
        with_note(),
        with_attribute(),
        ValueError("x" * (SIZE_LIMIT - 100)),
        Worded(3),
        Choosy("mine"),
        ZipImportError("no such file"),
        TaskRejected([Part(text="no"), Part(data={"code": 3})]),
        TaskFailed(Message(message_id="1", role=Role.AGENT, parts=(Part(text="no"),), metadata={"a": 1})),
    ],
)
def test_a_copy_has_the_type_the_arguments_the_text_and_the_attributes(error: Exception) -> None:
    copy = copy_of(error)
    assert (type(copy), copy.args, str(copy), vars(copy)) == (type(error), error.args, str(error), vars(error))
    assert copy.__reduce__() == error.__reduce__()


@pytest.mark.parametrize("value", [b"bytes", (1, 2), {1}, Response()])
def test_an_attribute_that_is_no_json_value_is_left_out(value: object) -> None:
    copy = copy_of(with_attribute(value))
    assert (type(copy), str(copy), hasattr(copy, "amount")) == (TaskFailed, "in words", False)


def test_an_error_of_an_http_library_keeps_its_type_and_its_text_and_what_is_a_json_value() -> None:
    copy = copy_of(HttpStatusError("404 Not Found", response=Response(), code=404))
    assert (type(copy), str(copy), vars(copy)) == (HttpStatusError, "404 Not Found", {"code": 404})


def test_a_group_has_the_copies_of_its_errors() -> None:
    group = ExceptionGroup("two", [ValueError("no"), ExceptionGroup("inner", [Declined("card"), local()])])
    group.add_note("because")
    copy = copy_of(group)
    assert (copy.message, copy.__notes__) == ("two", ["because"])
    assert repr(copy.exceptions[0]) == "ValueError('no')"
    declined, lost = copy.exceptions[1].exceptions
    assert (repr(declined), type(lost)) == ("Declined('card')", StepFailed)
    assert str(lost).startswith("A step raised local.<locals>.Local, which a later run cannot raise again.")


def local() -> Exception:
    class Local(Exception):
        """Nobody finds it by its name."""

    return Local("here")


@pytest.mark.parametrize(
    "error",
    [
        ValueError(("a", "tuple")),
        ValueError(b"bytes"),
        ValueError(float("nan")),
        ValueError(float("inf")),
        ValueError("x" * (SIZE_LIMIT + 1)),
        local(),
        Counted(items={1, 2}),
    ],
)
def test_an_error_whose_copy_would_have_another_text_or_type_is_stored_by_its_name_only(error: Exception) -> None:
    kind = type(error)
    assert dump_error(error) == StoredError(kind.__module__, kind.__qualname__, None)
    assert copy_of(error) is None


def test_an_error_is_read_where_its_module_is_not_imported() -> None:
    read = (
        "from a2a_serverless.domain.step_results import StoredError; import sys;"
        "from a2a_serverless.engine.step_errors import load_error;"
        "assert 'poplib' not in sys.modules;"
        "print(repr(load_error(StoredError('poplib', 'error_proto', ['no']))))"
    )
    done = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "error_proto('no')\n"


@pytest.mark.parametrize("name", ["Gone", "Declined.Gone", "NUMBER", "KeyboardInterrupt", "local", "int"])
def test_an_error_whose_type_is_gone_or_is_no_error_any_more_is_read_as_none(name: str) -> None:
    module: Any = ModuleType("changed")
    module.Declined, module.NUMBER, module.local = Declined, 1, local
    module.KeyboardInterrupt, module.int = KeyboardInterrupt, int
    sys.modules["changed"] = module
    try:
        assert load_error(StoredError("changed", name, [])) is None
        assert load_error(StoredError("changed", "Declined", ["x"])) is not None
    finally:
        del sys.modules["changed"]
    assert load_error(StoredError("changed", "Declined", ["x"])) is None
