import pytest

from a2a_serverless.domain.errors import ContentTypeNotSupported, InvalidParams, MethodNotFound, ParseError
from a2a_serverless.protocol.errors import VerbNotAllowed
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.wire import rest

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


@pytest.mark.parametrize(("verb", "path", "operation", "fields"), PATHS)
def test_a_path_without_v1_is_an_operation_of_1_0(
    verb: str, path: str, operation: Operation, fields: dict[str, str]
) -> None:
    found = rest.match(verb, path)
    assert (found.route.operation, found.route.version, found.fields) == (operation, "1.0", fields)


@pytest.mark.parametrize(("verb", "path", "operation", "fields"), PATHS)
def test_a_path_may_begin_with_a_tenant(verb: str, path: str, operation: Operation, fields: dict[str, str]) -> None:
    found = rest.match(verb, "/acme%20inc" + path)
    assert (found.route.operation, found.route.version) == (operation, "1.0")
    assert found.fields == {"tenant": "acme inc", **fields}


@pytest.mark.parametrize(("verb", "path", "operation", "fields"), OLD_PATHS)
def test_a_path_below_v1_is_an_operation_of_0_3(
    verb: str, path: str, operation: Operation, fields: dict[str, str]
) -> None:
    found = rest.match(verb, path)
    assert (found.route.operation, found.route.version, found.fields) == (operation, "0.3", fields)


def test_every_route_is_tested() -> None:
    assert len(rest.ROUTES) == len(PATHS) + len(OLD_PATHS)
    assert len(rest.TENANT_ROUTES) == len(PATHS)


def test_a_router_that_takes_the_first_match_is_not_led_astray() -> None:
    templates = [route.template for route in rest.ROUTES if route.version == "1.0"]
    assert templates.index("/tasks/{id}:cancel") < templates.index("/tasks/{id}")
    assert templates.index("/tasks/{id}:subscribe") < templates.index("/tasks/{id}")


def test_what_the_path_says_is_decoded() -> None:
    assert rest.match("GET", "/tasks/a%2Fb%3A%E6%BC%A2").fields == {"id": "a/b:漢"}


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/tasks/",
        "/tasks/t1/",
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
    with pytest.raises(MethodNotFound) as caught:
        rest.match("GET", path)
    assert not isinstance(caught.value, VerbNotAllowed)


@pytest.mark.parametrize(
    ("verb", "path", "allowed"),
    [
        ("GET", "/message:send", ("POST",)),
        ("PUT", "/tasks/t1", ("GET",)),
        ("DELETE", "/tasks/t1:subscribe", ("GET", "POST")),
        ("PATCH", f"/acme/tasks/t1/{CONFIGS}/p", ("DELETE", "GET")),
    ],
)
def test_a_wrong_verb_is_answered_with_the_right_ones(verb: str, path: str, allowed: tuple[str, ...]) -> None:
    with pytest.raises(VerbNotAllowed) as caught:
        rest.match(verb, path)
    assert caught.value.allowed == allowed


def test_the_path_goes_before_the_body() -> None:
    found = rest.match("POST", f"/acme/tasks/t1/{CONFIGS}")
    params = rest.params(found, [("taskId", "query")], b'{"taskId": "body", "tenant": "other", "url": "u"}')
    assert params == {"taskId": "t1", "tenant": "acme", "url": "u"}


def test_a_get_reads_the_query_and_no_body() -> None:
    found = rest.match("GET", "/tasks/t1")
    assert rest.params(found, [("historyLength", "2"), ("A2A-Version", "1.0")], b"not json") == {
        "historyLength": "2",
        "A2A-Version": "1.0",
        "id": "t1",
    }


def test_a_parameter_given_twice_is_refused() -> None:
    with pytest.raises(InvalidParams) as caught:
        rest.params(rest.match("GET", "/tasks"), [("pageSize", "1"), ("pageSize", "2")], b"")
    assert [violation.field for violation in caught.value.violations] == ["pageSize"]


@pytest.mark.parametrize("body", [b"", b" \n", b"{}", b"null", b" null\n"])
def test_a_post_may_have_no_body(body: bytes) -> None:
    assert rest.params(rest.match("POST", "/tasks/t1:cancel"), [], body) == {"id": "t1"}


@pytest.mark.parametrize(("body", "error"), [(b"[]", InvalidParams), (b"5", InvalidParams), (b"{", ParseError)])
def test_a_body_that_is_no_object_is_refused(body: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        rest.params(rest.match("POST", "/message:send"), [], body)


@pytest.mark.requirement(110)
@pytest.mark.parametrize(
    "content_type",
    [None, "application/json", "application/a2a+json", "Application/JSON; charset=utf-8", " application/json "],
)
def test_json_is_read_under_both_its_names(content_type: str | None) -> None:
    rest.check_content_type(content_type)


@pytest.mark.requirement(121)
@pytest.mark.parametrize("content_type", ["", "text/plain", "application/jsonp", "application/xml, application/json"])
def test_any_other_content_type_is_refused(content_type: str) -> None:
    with pytest.raises(ContentTypeNotSupported, match=r"Send application/json or application/a2a\+json"):
        rest.check_content_type(content_type)


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
    assert rest.only_streams(accept) is expected


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
    assert rest.answer_type(accept, content_type) == expected
