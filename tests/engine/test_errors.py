"""Which errors of steps are stored, so that a later run raises the same."""

from __future__ import annotations

import json
import subprocess
import sys
from types import ModuleType
from typing import Any, Final

import pytest

from a2a_serverless.domain.agent_errors import AgentCallFailed, TaskFailed
from a2a_serverless.domain.step_results import StoredError
from a2a_serverless.engine.step_errors import SIZE_LIMIT, dump_error, load_error


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


EMPTY: Final = json.dumps(["builtins", "ValueError", [""], None], separators=(",", ":"))
OWN: Final = frozenset({__name__.partition(".")[0]})


def with_note() -> ValueError:
    error = ValueError("no")
    error.add_note("because")
    return error


def with_attribute(value: object = 3) -> TaskFailed:
    error = TaskFailed("in words")
    error.amount = value  # type: ignore[attr-defined]
    return error


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
        ValueError("x" * (SIZE_LIMIT - len(EMPTY))),
    ],
)
def test_an_error_that_can_be_made_again_from_its_arguments_is_stored(error: Exception) -> None:
    dumped = StoredError(*json.loads(json.dumps(dump_error(error, OWN))))
    again = load_error(dumped, OWN)
    assert again
    assert (type(again), again.args, vars(again)) == (type(error), error.args, vars(error))
    assert again.__reduce__() == error.__reduce__()


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
        ValueError(
            "x" * (SIZE_LIMIT + 1 - len(json.dumps(["builtins", "ValueError", [""], None], separators=(",", ":"))))
        ),
        with_attribute(b"bytes"),
        with_attribute((1, 2)),
        local(),
        Worded(3),
        Choosy("mine"),
    ],
)
def test_an_error_that_would_come_back_as_another_one_is_not_stored(error: Exception) -> None:
    assert dump_error(error, OWN) is None


def test_an_error_of_the_standard_library_is_read_where_its_module_is_not_imported() -> None:
    read = (
        "from a2a_serverless.domain.step_results import StoredError; import sys;"
        "from a2a_serverless.engine.step_errors import load_error;"
        "assert 'poplib' not in sys.modules;"
        "print(repr(load_error(StoredError('poplib', 'error_proto', ['no']), frozenset())))"
    )
    done = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "error_proto('no')\n"


def test_an_error_of_a_library_is_not_stored() -> None:
    assert dump_error(Declined("card"), frozenset()) is None
    assert dump_error(Declined("card"), frozenset({"elsewhere"})) is None


@pytest.mark.parametrize("name", ["Gone", "Declined.Gone", "OWN", "KeyboardInterrupt", "local", "int"])
def test_an_error_whose_type_is_gone_or_is_no_error_any_more_is_read_as_none(name: str) -> None:
    module: Any = ModuleType("changed")
    module.Declined, module.OWN, module.local = Declined, OWN, local
    module.KeyboardInterrupt, module.int = KeyboardInterrupt, int
    sys.modules["changed"] = module
    try:
        assert load_error(StoredError("changed", name, []), frozenset({"changed"})) is None
        assert load_error(StoredError("changed", "Declined", ["x"]), frozenset({"changed"})) is not None
    finally:
        del sys.modules["changed"]
    assert load_error(StoredError("changed", "Declined", ["x"]), frozenset({"changed"})) is None
