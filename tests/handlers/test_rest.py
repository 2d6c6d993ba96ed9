"""Which path is which operation, what is wrong with a path or a verb, and which media types are read and answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from starlette.routing import Match, Route

from a2a_serverless.domain.errors import ContentTypeNotSupported
from a2a_serverless.http.messages import HttpRequest, encoded_path
from a2a_serverless.http.routes import ROUTES, TENANT_ROUTES
from a2a_serverless.protocol.operations import Operation
from tests.handlers.hostile import TASK
from tests.handlers.test_hostile import Place

if TYPE_CHECKING:
    from tests.edge import HttpResponse

CONFIGS = "pushNotificationConfigs"
PATHS = [
    ("POST", "/message:send", Operation.SEND, {}),
    ("POST", "/message:stream", Operation.STREAM, {}),
    ("GET", "/tasks", Operation.LIST, {}),
    ("GET", "/tasks/t1", Operation.GET, {"id": "t1"}),
    ("POST", "/tasks/t1:cancel", Operation.CANCEL, {"id": "t1"}),
    ("POST", "/tasks/t1:subscribe", Operation.SUBSCRIBE, {"id": "t1"}),
    ("GET", "/tasks/t1:subscribe", Operation.SUBSCRIBE, {"id": "t1"}),
    ("POST", f"/tasks/t1/{CONFIGS}", Operation.PUSH_CREATE, {"taskId": "t1"}),
    ("GET", f"/tasks/t1/{CONFIGS}", Operation.PUSH_LIST, {"taskId": "t1"}),
    ("GET", f"/tasks/t1/{CONFIGS}/p", Operation.PUSH_GET, {"taskId": "t1", "id": "p"}),
    ("DELETE", f"/tasks/t1/{CONFIGS}/p:1", Operation.PUSH_DELETE, {"taskId": "t1", "id": "p:1"}),
    ("GET", "/extendedAgentCard", Operation.CARD, {}),
]
OLD_PATHS = [
    ("POST", "/v1/message:send", Operation.SEND, {}),
    ("POST", "/v1/message:stream", Operation.STREAM, {}),
    ("GET", "/v1/tasks/t1", Operation.GET, {"id": "t1"}),
    ("POST", "/v1/tasks/t1:cancel", Operation.CANCEL, {"id": "t1"}),
    ("POST", "/v1/tasks/t1:subscribe", Operation.SUBSCRIBE, {"id": "t1"}),
    ("GET", "/v1/tasks/t1:subscribe", Operation.SUBSCRIBE, {"id": "t1"}),
    ("POST", f"/v1/tasks/t1/{CONFIGS}", Operation.PUSH_CREATE, {"taskId": "t1"}),
    ("GET", f"/v1/tasks/t1/{CONFIGS}", Operation.PUSH_LIST, {"id": "t1"}),
    ("GET", f"/v1/tasks/t1/{CONFIGS}/p", Operation.PUSH_GET, {"id": "t1", "pushNotificationConfigId": "p"}),
    ("DELETE", f"/v1/tasks/t1/{CONFIGS}/p", Operation.PUSH_DELETE, {"id": "t1", "pushNotificationConfigId": "p"}),
    ("GET", "/v1/card", Operation.CARD, {}),
]


def found(verb: str, path: str) -> tuple[Operation, str, dict[str, Any]]:
    """Operation, version and fields of the first route that takes the path, as Starlette takes it."""
    scope = {"type": "http", "method": verb, "path": f"/echo{path}"}
    for route in (*ROUTES, *TENANT_ROUTES):
        match, child = Route("/{agent:agent}" + route.template, found, methods=[route.verb]).matches(scope)
        if match is Match.FULL:
            return route.operation, route.version, route.fields(HttpRequest(verb, path, params=child["path_params"]))
    raise LookupError(path)


def ask(verb: str, path: str, body: bytes = b"", *query: tuple[str, str]) -> HttpResponse:
    return Place().edge.answer(HttpRequest(verb, f"/echo{path}", {"a2a-version": "1.0"}, query, body))


def violations(answer: HttpResponse) -> list[str]:
    details = json.loads(answer.body)["error"]["details"]
    return [one["field"] for detail in details for one in detail.get("fieldViolations", [])]


@pytest.mark.parametrize(("verb", "path", "operation", "fields"), PATHS)
def test_a_path_without_v1_is_an_operation_of_1_0(
    verb: str, path: str, operation: Operation, fields: dict[str, str]
) -> None:
    assert found(verb, path) == (operation, "1.0", fields)


@pytest.mark.parametrize(("verb", "path", "operation", "fields"), PATHS)
def test_a_path_may_begin_with_a_tenant(verb: str, path: str, operation: Operation, fields: dict[str, str]) -> None:
    assert found(verb, "/acme%20inc" + path) == (operation, "1.0", {"tenant": "acme inc", **fields})


@pytest.mark.parametrize(("verb", "path", "operation", "fields"), OLD_PATHS)
def test_a_path_below_v1_is_an_operation_of_0_3(
    verb: str, path: str, operation: Operation, fields: dict[str, str]
) -> None:
    assert found(verb, path) == (operation, "0.3", fields)


def test_the_routes_in_this_test_are_all_routes() -> None:
    assert len(ROUTES) == len(PATHS) + len(OLD_PATHS)
    assert len(TENANT_ROUTES) == len(PATHS)


def test_the_ids_in_a_path_are_decoded() -> None:
    assert found("GET", "/tasks/a%2Fb%3A%E6%BC%A2") == (Operation.GET, "1.0", {"id": "a/b:漢"})


VERBS = [(verb, path) for verb, path, _, _ in PATHS + OLD_PATHS if ":" in path and CONFIGS not in path]


@pytest.mark.parametrize("colon", ["%3A", "%3a"])
@pytest.mark.parametrize(("verb", "path"), VERBS)
def test_the_colon_of_an_operation_may_be_encoded(verb: str, path: str, colon: str) -> None:
    plain, encoded = (ask(verb, path.replace(":", sign), b"{}") for sign in (":", colon))
    assert (encoded.status, encoded.body) == (plain.status, plain.body)
    assert b"no such path" not in plain.body


@pytest.mark.parametrize("raw", [b"/echo/message%3Asend", b""])
def test_a_scope_is_the_same_request_whether_its_path_came_encoded_or_not(raw: bytes) -> None:
    assert encoded_path({"raw_path": raw, "path": "/echo/message:send"}) == "/echo/message:send"


def test_an_encoded_slash_belongs_to_the_name() -> None:
    hook = json.dumps({"id": "a/b", "url": "https://hooks.example.com/"}).encode()
    place = Place()

    def asked(verb: str, path: str, body: bytes = b"") -> HttpResponse:
        where = f"/echo/tasks/{TASK}/{CONFIGS}{path}"
        return place.edge.answer(HttpRequest(verb, where, {"a2a-version": "1.0"}, body=body))

    assert asked("POST", "", hook).status == 200
    assert json.loads(asked("GET", "/a%2Fb").body)["id"] == "a/b"
    assert asked("GET", "/a/b").status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/tasks/t1:pause",
        "/tasks/t1:cancel/x",
        "/tasks/:cancel",
        "/tasks/tasks/t1",
        "/v1/tasks",
        "/v1/v1/tasks",
        "/acme/v1/card",
        "/message",
        "/message:sends",
        "/v1/extendedAgentCard",
        "/.well-known/tasks",
        "/extendedAgentCard/tasks",
    ],
)
def test_any_other_path_is_not_found(path: str) -> None:
    answer = ask("GET", path)
    assert (answer.status, "allow" in answer.headers) == (404, False)


@pytest.mark.parametrize(
    ("verb", "path", "allowed"),
    [
        ("GET", "/message:send", "POST"),
        ("PUT", "/tasks/t1", "GET"),
        ("HEAD", "/tasks", "GET"),
        ("DELETE", "/tasks/t1:subscribe", "GET, POST"),
        ("PATCH", f"/acme/tasks/t1/{CONFIGS}/p", "DELETE, GET"),
    ],
)
def test_a_wrong_verb_is_answered_with_the_right_ones(verb: str, path: str, allowed: str) -> None:
    answer = ask(verb, path)
    assert (answer.status, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize("name", ["send", "sendSubscribe", "cancel"])
def test_clients_from_before_0_3_are_told_their_address(name: str) -> None:
    answer = ask("POST", f"/tasks/{name}", b"{}")
    text = f"This path takes GET only. Clients from before A2A 0.3 are served at /legacy/echo/tasks/{name}."
    assert (answer.status, json.loads(answer.body)["error"]["message"]) == (405, text)


def test_a_task_is_canceled_in_the_form_from_before_0_3() -> None:
    place, headers = Place(), {"content-type": "application/json"}

    def cancel(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        answer = place.edge.answer(
            HttpRequest("POST", "/legacy/echo/tasks/cancel", headers, body=json.dumps(body).encode())
        )
        return answer.status, json.loads(answer.body)

    status, task = cancel({"id": TASK})
    assert (status, task["id"], task["status"]["state"]) == (200, TASK, "canceled")
    assert cancel({"id": TASK})[0] == 409
    assert cancel({"id": "another"})[0] == 404
    assert cancel({})[1]["type"] == "InvalidParamsError"


HOOK = {"url": "https://hooks.example.com/"}
DIFFERENT: list[tuple[str, str, Any, tuple[tuple[str, str], ...], str]] = [
    ("POST", f"/tasks/{TASK}/{CONFIGS}", HOOK | {"taskId": "another"}, (), "taskId"),
    ("POST", f"/tasks/{TASK}/{CONFIGS}", HOOK | {"task_id": "another"}, (), "taskId"),
    ("POST", f"/tasks/{TASK}/{CONFIGS}", HOOK | {"taskId": 5}, (), "taskId"),
    ("POST", f"/v1/tasks/{TASK}/{CONFIGS}", {"config": HOOK, "taskId": "another"}, (), "taskId"),
    ("POST", f"/acme/tasks/{TASK}/{CONFIGS}", HOOK | {"tenant": "another"}, (), "tenant"),
    ("POST", f"/tasks/{TASK}:cancel", {"id": "another"}, (), "id"),
    ("POST", f"/v1/tasks/{TASK}:cancel", {"id": "another"}, (), "id"),
    ("GET", f"/tasks/{TASK}", None, (("id", "another"),), "id"),
    ("GET", f"/tasks/{TASK}/{CONFIGS}", None, (("taskId", "another"),), "taskId"),
    ("DELETE", f"/tasks/{TASK}/{CONFIGS}/p", None, (("id", "another"),), "id"),
]


@pytest.mark.parametrize(("verb", "path", "body", "query", "field"), DIFFERENT)
def test_another_value_than_in_the_path_is_refused(
    verb: str, path: str, body: Any, query: tuple[tuple[str, str], ...], field: str
) -> None:
    answer = ask(verb, path, b"" if body is None else json.dumps(body).encode(), *query)
    assert (answer.status, violations(answer)) == (400, [field])


@pytest.mark.parametrize("same", [{"taskId": TASK}, {"task_id": TASK}, {"taskId": ""}, {"taskId": None}, {}])
@pytest.mark.parametrize("path", ["", "/v1"])
def test_the_value_of_the_path_may_be_repeated(path: str, same: dict[str, Any]) -> None:
    answer = ask("POST", f"{path}/tasks/{TASK}/{CONFIGS}", json.dumps(HOOK | same).encode(), ("taskId", "of no use"))
    assert answer.status == 200


def test_a_get_reads_the_query_and_no_body() -> None:
    answer = ask("GET", f"/tasks/{TASK}", b"not json", ("historyLength", "0"), ("A2A-Version", "1.0"))
    assert (answer.status, "history" in json.loads(answer.body)) == (200, False)


def test_a_parameter_given_twice_is_refused() -> None:
    answer = ask("GET", "/tasks", b"", ("pageSize", "1"), ("pageSize", "2"))
    assert (answer.status, violations(answer)) == (400, ["pageSize"])


@pytest.mark.parametrize("body", [b"", b" \n", b"{}", b"null", b" null\n"])
def test_a_post_may_have_no_body(body: bytes) -> None:
    assert ask("POST", f"/tasks/{TASK}:cancel", body).status == 200


@pytest.mark.parametrize("body", [b"[]", b"5", b"{"])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    assert ask("POST", "/message:send", body).status == 400


def request_of(accept: str | None, content_type: str | None) -> HttpRequest:
    headers = {"accept": accept, "content-type": content_type}
    return HttpRequest("POST", "/", {name: value for name, value in headers.items() if value is not None})


@pytest.mark.requirement(110)
@pytest.mark.parametrize(
    "content_type",
    [None, "application/json", "application/a2a+json", "Application/JSON; charset=utf-8", " application/json "],
)
def test_json_is_read_under_both_its_names(content_type: str | None) -> None:
    request_of(None, content_type).check_content()


@pytest.mark.requirement(121)
@pytest.mark.parametrize("content_type", ["", "text/plain", "application/jsonp", "application/xml, application/json"])
def test_any_other_content_type_is_refused(content_type: str) -> None:
    with pytest.raises(ContentTypeNotSupported, match=r"Send application/json or application/a2a\+json"):
        request_of(None, content_type).check_content()


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("text/event-stream", True),
        ("Text/Event-Stream; charset=utf-8", True),
        ("text/event-stream, text/html", True),
        (None, False),
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("application/json, text/event-stream", False),
        ("text/event-stream, application/a2a+json", False),
        ("text/event-stream, */*;q=0.1", False),
    ],
)
def test_a_client_that_names_the_type_of_streams_alone_takes_nothing_else(
    accept: str | None, *, expected: bool
) -> None:
    assert request_of(accept, None).only_streams is expected


@pytest.mark.requirement(110)
@pytest.mark.parametrize(
    ("accept", "content_type", "expected"),
    [
        (None, None, "application/json"),
        (None, "application/json", "application/json"),
        (None, "application/a2a+json", "application/a2a+json"),
        ("*/*", "application/a2a+json; charset=utf-8", "application/a2a+json"),
        ("application/a2a+json", "application/json", "application/a2a+json"),
        ("application/json", "application/a2a+json", "application/json"),
        ("text/html, application/a2a+json;q=0.9, application/json", None, "application/a2a+json"),
        ("text/event-stream", None, "application/json"),
    ],
)
def test_the_answer_has_the_type_that_the_client_speaks(
    accept: str | None, content_type: str | None, expected: str
) -> None:
    assert request_of(accept, content_type).answer_type == expected
