"""Bugs for the property test to find: counters that run through the whole task, and orders that are not kept."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, Final

from a2a_serverless.engine import steps
from a2a_serverless.engine.artifact_writer import ArtifactWriter
from a2a_serverless.engine.endings import Endings
from a2a_serverless.engine.journal import Journal
from a2a_serverless.engine.loop import AgentTask
from a2a_serverless.engine.result_codecs import TypeCodec
from a2a_serverless.engine.scopes import Scope
from a2a_serverless.engine.steps import Steps
from a2a_serverless.engine.task_values import RunValues
from tests.removed_guards import RemovedGuard

_inner = Scope.inner


def _inner_that_counts_on(self: Scope, path: str, step: Any, attempt: int = 1) -> Scope:
    """The scope inside counts on with the numbers of the scope around it."""
    scope = _inner(self, path, step, attempt)
    scope._equals = self._equals  # noqa: SLF001
    return scope


def _inner_of_any_try(self: Scope, path: str, step: Any, attempt: int = 1) -> Scope:
    """Messages of a second try have the ids of those of the first."""
    del attempt
    return _inner(self, path, step)


def _id_of_text(_: Scope, task_id: str, kind: str, content: Any) -> str:
    """The id of a message, whatever scope it is in."""
    scope = Scope("", "", None)
    scope._equals = _ALL.setdefault(task_id, defaultdict(int))  # noqa: SLF001
    return _message_id(scope, task_id, kind, content)


_message_id = Scope.message_id
_ALL: Final[dict[str, defaultdict[str, int]]] = {}


def _load_by_alias(self: TypeCodec[Any], stored: Any) -> Any:
    return self._adapter.validate_json(json.dumps(stored))


def _do_anew(_: RunValues, __: str, ___: str, perform: Any) -> Any:
    return perform()


class _InSameContext:
    """Awaits the work as it is."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def __await__(self) -> Any:
        return self._work.__await__()


async def _at_once(*_: Any) -> None:
    return


PLANTED: Final = tuple(
    RemovedGuard(name, guard, swaps)
    for name, guard, swaps in (
        ("numbers run on in scopes", "A scope counts from its start.", ((Scope, "inner", _inner_that_counts_on),)),
        ("tries share ids", "A second try's messages are others.", ((Scope, "inner", _inner_of_any_try),)),
        ("one count of messages", "Messages are counted in their scope.", ((Scope, "message_id", _id_of_text),)),
        ("endings in any order", "Stored endings come in their order.", ((Endings, "end", _at_once),)),
        ("no gates", "No work begins before stored endings.", ((Endings, "start", _at_once),)),
        ("no numbers of endings", "Endings have numbers.", ((Journal, "next_number", lambda _: 0),)),
        (
            "errors are not stored",
            "A later run raises what a step has raised.",
            ((Steps, "_store_error", lambda *_: None),),
        ),
        ("results are read by alias", "Results are read by name.", ((TypeCodec, "load", _load_by_alias),)),
        ("errors lose their type", "Each run gets a copy.", ((steps, "load_error", lambda _: None),)),
        ("steps share the context", "A step has a context.", ((steps, "InCopiedContext", _InSameContext),)),
        ("tasks have addresses", "Tasks have numbers.", ((AgentTask, "__hash__", object.__hash__),)),
        ("values are read anew", "Values are acts.", ((RunValues, "_replay", _do_anew),)),
        ("attempts are not settled", "An artifact has what counts.", ((ArtifactWriter, "settle", lambda *_: None),)),
    )
)

SHOWN_BY: Final = {
    "numbers run on in scopes": "repeated steps that raise",
    "tries share ids": "repeated steps that raise",
    "one count of messages": "a question in repeated steps",
    "endings in any order": "races whose winners decide names",
    "no gates": "durable time limits",
    "no numbers of endings": "races whose winners decide names",
    "errors are not stored": "plans that an error decides",
    "results are read by alias": "models of steps",
    "errors lose their type": "errors with causes",
    "steps share the context": "contexts that steps set",
    "tasks have addresses": "sets of tasks",
    "values are read anew": "values outside of steps",
    "attempts are not settled": "a streaming step that is tried again",
}
"""By bug, the programs that show it (``FEW`` of the test)."""
