"""Versions and extensions as requests name them and answers echo them, over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.card import Extension
from a2a_serverless.wire.operations import STREAMING, Operation
from tests.client.deployment import Deployment
from tests.echo import Asker
from tests.handlers.requests import BINDINGS, Names

if TYPE_CHECKING:
    from a2a_serverless.handlers.exchange import HttpAnswer

NEW, OLD = ("1.0 JSON-RPC", "1.0 REST"), ("0.3 JSON-RPC", "0.3 REST")
ECHOED = dict.fromkeys(NEW, "a2a-extensions") | dict.fromkeys(OLD, "x-a2a-extensions")
NEEDED, OFFERED = Extension("urn:needed", required=True), Extension("urn:offered")


class Place:
    """An agent with extensions, one of them required."""

    def __init__(self, *extensions: Extension) -> None:
        self.deployment = Deployment(replace(Asker().agent, extensions=extensions))

    def ask(
        self, binding: str, operation: Operation = Operation.SEND, query: str | None = None, **headers: str
    ) -> HttpAnswer:
        """The answer to a request that says what it wants in these headers and in the query, and nowhere else."""
        request = BINDINGS[binding][operation](Names())
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        asked = (*request.query, *([("A2A-Version", query)] if query is not None else []))
        return self.deployment.edge.answer(
            replace(request, headers={"content-type": "application/json", **said}, query=asked)
        )


def headers_of(answer: HttpAnswer) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}


def served(answer: HttpAnswer) -> bool:
    return answer.stream is not None or "error" not in json.loads(answer.body)


@pytest.mark.requirement(63, 64)
@pytest.mark.parametrize("binding", [*NEW, *OLD])
def test_a_version_may_stand_in_the_query_and_the_header_goes_before_it(binding: str) -> None:
    place = Place()
    assert served(place.ask(binding, query="1.0"))
    assert not served(place.ask(binding, query="2.0"))
    assert served(place.ask(binding, query="2.0", a2a_version="1.0"))
    assert not served(place.ask(binding, query="1.0", a2a_version="2.0"))
    assert served(place.ask(binding, query="")) == (binding in OLD)
    assert served(place.ask(binding, query="0.3")) == (binding in OLD)


@pytest.mark.requirement(46, 78)
@pytest.mark.parametrize("operation", [Operation.SEND, Operation.STREAM])
@pytest.mark.parametrize("header", ["a2a_extensions", "x_a2a_extensions"])
@pytest.mark.parametrize("binding", [*NEW, *OLD])
def test_extensions_are_read_from_either_header_and_echoed_in_that_of_the_version_in_streams_too(
    binding: str, header: str, operation: Operation
) -> None:
    answer = Place(NEEDED, OFFERED).ask(
        binding, operation, a2a_version=binding[:3], **{header: "urn:offered,urn:unknown , urn:needed,urn:needed"}
    )
    assert served(answer)
    assert (answer.stream is not None) == (operation in STREAMING)
    assert headers_of(answer)[ECHOED[binding]] == "urn:offered, urn:needed"
    assert len(headers_of(answer).keys() & {*ECHOED.values()}) == 1


@pytest.mark.parametrize("binding", [*NEW, *OLD])
def test_who_names_no_extension_is_told_of_none(binding: str) -> None:
    answer = Place(OFFERED).ask(binding, a2a_version=binding[:3])
    assert served(answer)
    assert not headers_of(answer).keys() & {*ECHOED.values()}
