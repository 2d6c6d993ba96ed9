"""Versions and extensions as requests name them and answers echo them, over HTTP."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.agent import AgentExtension
from a2a_serverless.protocol.operations import Operation
from tests.client.deployment import Deployment, Locked
from tests.echo import Asker
from tests.handlers.requests import BINDINGS, Names

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.edge import HttpResponse

NEW, OLD = ("1.0 JSON-RPC", "1.0 REST"), ("0.3 JSON-RPC", "0.3 REST")
ECHOED = dict.fromkeys(NEW, "a2a-extensions") | dict.fromkeys(OLD, "x-a2a-extensions")
NEEDED, OFFERED = AgentExtension("urn:needed", required=True), AgentExtension("urn:offered")


class Place:
    """An agent with extensions, one of them required."""

    def __init__(self, *extensions: AgentExtension) -> None:
        self.deployment = Deployment(replace(Asker().agent, extensions=extensions))

    def ask(
        self, binding: str, operation: Operation = Operation.SEND, query: str | None = None, **headers: str
    ) -> HttpResponse:
        """The answer to a request that says what it wants in these headers and in the query, and nowhere else."""
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        asked = (("A2A-Version", query),) if query is not None else ()
        return self.answer(binding, said, operation, query=asked)

    def answer(
        self, binding: str, headers: dict[str, str], operation: Operation = Operation.SEND, **other: Any
    ) -> HttpResponse:
        """The answer to an operation's request with these headers, and what ``other`` says besides."""
        request = BINDINGS[binding][operation](Names(task="task-1" if operation is Operation.SUBSCRIBE else None))
        return self.deployment.edge.answer(
            request._replace(headers={"content-type": "application/json", **headers}, **other)
        )


def headers_of(answer: HttpResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}


def served(answer: HttpResponse) -> bool:
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
    assert (answer.stream is not None) == (operation.streams)
    assert headers_of(answer)[ECHOED[binding]] == "urn:offered, urn:needed"
    assert len(headers_of(answer).keys() & {*ECHOED.values()}) == 1


@pytest.mark.requirement(63, 64)
@pytest.mark.parametrize("binding", NEW)
@pytest.mark.parametrize("asked", [{}, {"a2a-version": "0.3"}])
def test_a_client_that_asks_1_0_for_0_3_reads_the_header_and_the_paths_of_0_3(
    binding: str, asked: dict[str, str]
) -> None:
    refusal = json.loads(Place().answer(binding, asked).body)["error"]
    assert (refusal.get("data") or refusal["details"])[0]["reason"] == "VERSION_NOT_SUPPORTED"
    for said in ("A2A-Version: 1.0", "/v1/message:send", "message/send"):
        assert said in refusal["message"]


TYPES = ("application/json", "application/a2a+json")


@pytest.mark.requirement(110)
@pytest.mark.parametrize("header", ["accept", "content-type"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("binding", ["1.0 REST", "0.3 REST"])
def test_a_refusal_over_rest_has_the_type_that_was_asked_for_or_sent(binding: str, kind: str, header: str) -> None:
    place, said = Place(NEEDED), {header: kind, "a2a-version": binding[:3]}
    refused = place.answer(binding, said)
    unread = place.answer(binding, said, body=b"{")
    unknown = place.answer(binding, said, path="/echo/nowhere")
    strange = place.answer(binding, said, path="/nobody/tasks/t")
    assert [one.status for one in (refused, unread, unknown, strange)] == [400, 400, 404, 404]
    assert {headers_of(one)["content-type"] for one in (refused, unread, unknown, strange)} == {kind}


@pytest.mark.requirement(30, 110)
@pytest.mark.parametrize("kind", TYPES)
def test_a_client_without_credentials_gets_its_401_in_the_type_that_it_accepts(kind: str) -> None:
    place = Place()
    place.deployment = Deployment(Asker().agent, authenticator=Locked())
    for binding in ("1.0 REST", "0.3 REST"):
        answer = place.ask(binding, accept=kind)
        assert (answer.status, headers_of(answer)["content-type"]) == (401, kind)
    for binding in ("1.0 JSON-RPC", "0.3 JSON-RPC"):
        assert headers_of(place.ask(binding, accept=kind))["content-type"] == "application/json"


@pytest.mark.parametrize("operation", [Operation.STREAM, Operation.SUBSCRIBE])
@pytest.mark.parametrize(
    ("accept", "binding", "streams"),
    [
        ("text/event-stream", "1.0 JSON-RPC", True),
        ("text/event-stream, application/json", "1.0 JSON-RPC", False),
        ("application/json", "1.0 JSON-RPC", False),
        (None, "1.0 JSON-RPC", False),
        (None, "0.3 JSON-RPC", True),
        ("application/json", "0.3 JSON-RPC", True),
        ("text/event-stream", "1.0 REST", False),
        ("text/event-stream", "0.3 REST", False),
    ],
)
def test_a_refused_stream_over_json_rpc_is_a_stream_for_those_who_read_nothing_else(
    operation: Operation, accept: str | None, binding: str, *, streams: bool
) -> None:
    said = {"a2a-version": binding[:3]} | ({"accept": accept} if accept else {})
    answer = Place(NEEDED).answer(binding, said, operation)
    assert (answer.stream is not None) is streams
    assert answer.status == (400 if binding.endswith("REST") else 200)
    if answer.stream is not None:
        (frame,) = asyncio.run(all_of(answer.stream))
        assert json.loads(frame.removeprefix(b"data: "))["error"]["code"] in {-32008, -32603}


async def all_of(stream: AsyncIterator[bytes]) -> list[bytes]:
    return [frame async for frame in stream]


@pytest.mark.parametrize("binding", [*NEW, *OLD])
def test_a_client_that_names_no_extension_gets_no_header_of_extensions(binding: str) -> None:
    answer = Place(OFFERED).ask(binding, a2a_version=binding[:3])
    assert served(answer)
    assert not headers_of(answer).keys() & {*ECHOED.values()}


@pytest.mark.requirement(121)
@pytest.mark.parametrize("binding", NEW + OLD)
@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "identity, gzip", "zstd"])
def test_a_coded_body_is_refused_by_the_name_of_the_header(coding: str, binding: str) -> None:
    answer = Place().answer(binding, {"content-encoding": coding, "a2a-version": binding[:3]}, body=b"\x1f\x8b\x08")
    assert (answer.status, headers_of(answer)["accept-encoding"]) == (415, "identity")
    assert b"Content-Encoding" in answer.body


@pytest.mark.parametrize("binding", NEW + OLD)
@pytest.mark.parametrize("coding", ["", "identity", "Identity"])
def test_a_body_that_says_that_it_is_not_coded_is_read(coding: str, binding: str) -> None:
    assert served(Place().answer(binding, {"content-encoding": coding, "a2a-version": binding[:3]}))
