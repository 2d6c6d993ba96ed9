import asyncio
import base64
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from fastapi import FastAPI
from mangum import Mangum

from a2a_webhook_receiver.expectations import Expectation, digest
from a2a_webhook_receiver.http import VerifiedWebhook, create_app, install
from a2a_webhook_receiver.inbox import TaskLine
from a2a_webhook_receiver.jwks import JwksCache
from a2a_webhook_receiver.outbound import Unreachable
from a2a_webhook_receiver.receive import Receiver, WebhookRequest, begin
from a2a_webhook_receiver.tasks import Delivery
from tests.webhook_receiver.asgi import Answer, Call, call, post
from tests.webhook_receiver.sending import EXPECTED, event, receiving, settings_for, signed
from vectors.cases import CHALLENGE, NOW, TASK, TOKEN, good_headers, good_token

LOCAL = settings_for(AUDIENCE="http://127.0.0.1:8010/webhook")
HERE = (("Host", "127.0.0.1:8010"),)
JSON = (*HERE, ("Content-Type", "application/json"))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving(EXPECTED) as receiver:
        yield receiver


@pytest.fixture
def app(receiver: Receiver) -> FastAPI:
    return create_app(receiver, LOCAL)


@pytest.fixture
def event_loop_of_lambda() -> Iterator[None]:
    """Mangum takes the thread's event loop and leaves it open, as befits a function that is frozen and not ended."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    asyncio.set_event_loop(None)


def unauthenticated(answer: Answer) -> bool:
    return (answer.status, answer.body, answer.headers["www-authenticate"]) == (
        401,
        b'{"error":"unauthenticated"}',
        "Bearer",
    )


def test_a_genuine_notification_is_answered_200(app: FastAPI) -> None:
    answer = post(app, event(1))
    assert (answer.status, answer.json) == (200, {"received": True, "duplicate": False, "late": False})


def test_a_duplicate_is_answered_200_and_has_no_effect(app: FastAPI, receiver: Receiver) -> None:
    post(app, event(1))
    answer = post(app, event(1, attempt=2))
    assert (answer.status, answer.json) == (200, {"received": True, "duplicate": True})
    assert [entry.outcome for entry in receiver.inbox.after(0)] == ["accepted", "duplicate"]


def test_an_old_event_is_answered_200_kept_and_marked(app: FastAPI, receiver: Receiver) -> None:
    post(app, event(2))
    assert post(app, event(1)).json == {"received": True, "duplicate": False, "late": True}
    assert [entry.outcome for entry in receiver.inbox.after(0)] == ["accepted", "late"]


def test_all_notifications_that_are_not_authentic_get_the_same_answer(app: FastAPI) -> None:
    plain = (("Content-Type", "application/json"),)
    answers = [
        post(app, WebhookRequest(plain, b"{}")),
        post(app, WebhookRequest((*plain, ("Authorization", "Bearer x")), b"{}")),
        post(app, event(1, iss="https://evil.example")),
        post(app, event(1, aud="https://evil.example")),
        post(app, event(1, sub="stranger", taskId="stranger")),
        post(app, WebhookRequest(event(1).headers, b"{}")),
        post(app, WebhookRequest((*event(1).headers, ("Authorization", "Bearer x")), event(1).body)),
        post(app, WebhookRequest(tuple(good_headers(good_token(), X_A2A_Notification_Token="x")), event(1).body)),
    ]
    assert all(unauthenticated(answer) for answer in answers)
    assert len({tuple(sorted(answer.headers.items())) for answer in answers}) == 1


def test_a_replayed_token_with_another_body_is_unauthenticated(app: FastAPI) -> None:
    post(app, event(1, jti="same"))
    assert unauthenticated(post(app, event(2, jti="same")))


def test_an_authentic_body_that_is_no_notification_is_told_so(app: FastAPI) -> None:
    answer = post(app, signed({"statusUpdate": {"taskId": TASK}}))
    assert (answer.status, answer.json) == (400, {"error": "unreadable-body"})


def test_a_body_of_one_mebibyte_is_read_and_a_longer_one_is_not(app: FastAPI) -> None:
    for size, status in ((1024 * 1024, 401), (1024 * 1024 + 1, 413)):
        assert post(app, WebhookRequest(event(1).headers, b"x" * size)).status == status


def test_a_body_is_not_read_beyond_the_limit(app: FastAPI) -> None:
    chunks = tuple(b"x" * 65536 for _ in range(17))
    assert call(app, Call("POST", "/webhook", event(1).headers, chunks, stalls=True)).status == 413


@pytest.mark.parametrize("length", ["1048577", "99999999999999999999", "-1", "x", "1e3"])
def test_a_length_that_is_too_long_or_none_is_refused_unread(app: FastAPI, length: str) -> None:
    headers = (*event(1).headers, ("Content-Length", length))
    assert call(app, Call("POST", "/webhook", headers, (b"",), stalls=True)).status == 413


def test_a_body_that_does_not_arrive_is_given_up(receiver: Receiver) -> None:
    app = create_app(receiver, replace(LOCAL, body_seconds=0))
    answer = call(app, Call("POST", "/webhook", event(1).headers, (b"{",), stalls=True))
    assert (answer.status, answer.json["error"]) == (408, "too-slow")


def test_a_client_that_leaves_before_its_body_is_there_is_no_fault_of_ours(app: FastAPI) -> None:
    answer = call(app, Call("POST", "/webhook", event(1).headers, (b"{",), stalls=True, leaves=True))
    assert (answer.status, answer.json["error"]) == (408, "too-slow")


@pytest.mark.parametrize(
    "changes", [{"Content_Type": "text/plain"}, {"Content_Type": ...}, {"Content_Encoding": "gzip"}]
)
def test_a_notification_that_is_not_plain_json_is_answered_415(app: FastAPI, changes: dict[str, Any]) -> None:
    request = WebhookRequest(tuple(good_headers(good_token(), **changes)), event(1).body)
    assert post(app, request).status == 415


def test_without_keys_the_sender_is_asked_to_come_back() -> None:
    def fetch() -> bytes:
        raise Unreachable("down")

    with receiving(EXPECTED, keys=JwksCache(fetch)) as receiver:
        answer = post(create_app(receiver, LOCAL), event(1))
    assert (answer.status, answer.headers["retry-after"]) == (503, "30")


def test_a_handler_that_fails_has_the_notification_again() -> None:
    got: list[int] = []

    def relay(delivery: Delivery) -> None:
        got.append(delivery.notification.subject.event_number)
        if len(got) == 1:
            raise Unreachable("down")

    with receiving(EXPECTED, relays=(relay,)) as receiver:
        app = create_app(receiver, LOCAL)
        with pytest.raises(Unreachable):
            post(app, event(1))
        assert post(app, event(1, attempt=2)).json["duplicate"] is False
        assert post(app, event(1, attempt=3)).json["duplicate"] is True
    assert got == [1, 1]


def test_an_attempt_that_is_being_worked_on_makes_the_next_one_wait(app: FastAPI, receiver: Receiver) -> None:
    begin(receiver, event(1))
    answer = post(app, event(1, attempt=2))
    assert (answer.status, answer.headers["retry-after"]) == (503, "61")


def test_a_challenge_is_echoed_while_something_is_expected(app: FastAPI) -> None:
    answer = post(app, signed(CHALLENGE, challenge=True))
    assert (answer.status, answer.json) == (200, {"challenge": CHALLENGE["challenge"]})


def test_a_challenge_is_refused_while_nothing_is_expected() -> None:
    with receiving() as receiver:
        assert unauthenticated(post(create_app(receiver, LOCAL), signed(CHALLENGE, challenge=True)))


def test_an_application_of_ones_own_receives_by_a_dependency(receiver: Receiver) -> None:
    own = FastAPI()
    install(own, receiver, LOCAL)
    got: list[str] = []

    @own.post("/hooks/a2a")
    def hook(claimed: VerifiedWebhook) -> dict[str, str]:
        got.append(claimed.notification.subject.notification_id)
        return {"thanks": "yes"}

    assert post(own, event(1), "/hooks/a2a").json == {"thanks": "yes"}
    assert post(own, event(1, attempt=2), "/hooks/a2a").json == {"received": True, "duplicate": True}
    assert unauthenticated(post(own, event(2, iss="https://evil.example"), "/hooks/a2a"))
    assert got == ["n-1"]


def expect(app: FastAPI, body: bytes, headers: tuple[tuple[str, str], ...] = JSON) -> Answer:
    return call(app, Call("POST", "/expectations", headers, (body,)))


def test_saying_what_to_expect_makes_a_token(app: FastAPI, receiver: Receiver) -> None:
    answer = expect(app, b"{}")
    config = answer.json["pushNotificationConfig"]
    assert answer.status == 201
    assert config["url"] == receiver.audience
    assert len(config["token"]) == 32
    assert receiver.expectations.find("any", digest(config["token"]), NOW)[0].expires == NOW + 7 * 86_400_000


def test_a_token_or_a_task_of_ones_own_can_be_expected(app: FastAPI, receiver: Receiver) -> None:
    answer = expect(
        app, b'{"token":"mine","taskId":"t-9","agentUrl":"http://127.0.0.1:8000/outline","authorization":"Basic x"}'
    )
    assert "token" not in answer.json["pushNotificationConfig"]
    assert b"mine" not in answer.body
    found = receiver.expectations.find("t-9", None, NOW)
    assert (found[0].agent_url, found[0].authorization_digest) == ("http://127.0.0.1:8000/outline", digest("Basic x"))
    assert expect(app, b'{"taskId":"t-10"}').json["taskId"] == "t-10"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"task":"t"}',
        b'{"taskId":""}',
        b'{"taskId":"a b"}',
        b'{"taskId":7}',
        b'{"token":"line\\nbreak"}',
        b'{"token":"%s"}' % (b"x" * 257),
        b'{"agentUrl":"http://10.0.0.1/agent"}',
        b'{"agentUrl":"file:///etc/passwd"}',
    ],
)
def test_an_impossible_expectation_is_answered_with_422(app: FastAPI, body: bytes) -> None:
    assert expect(app, body).status == 422


def test_a_form_of_another_site_cannot_say_what_to_expect(app: FastAPI) -> None:
    assert expect(app, b"{}", (*HERE, ("Content-Type", "text/plain"))).status == 422
    assert expect(app, b"{}", (*JSON, ("Sec-Fetch-Site", "cross-site"))).status == 403


def test_a_receiver_on_the_net_fetches_nothing_from_its_own_machine(receiver: Receiver) -> None:
    guarded = create_app(receiver, settings_for(ADMIN_TOKEN_SHA256=sha256(b"pw").hexdigest()))
    headers = (("Host", "app.example.net"), ("Content-Type", "application/json"), ("Authorization", "Bearer pw"))
    assert expect(guarded, b'{"agentUrl":"http://127.0.0.1:9001/x"}', headers).status == 422
    assert expect(guarded, b'{"agentUrl":"https://agents.example.com/x"}', headers).status == 201


@pytest.mark.parametrize(
    "path",
    ["/", "/events", "/expectations", "/api/notifications", "/api/notifications/1", "/api/notifications/1/parts/0"],
)
def test_the_inbox_is_for_admins(app: FastAPI, path: str) -> None:
    stranger = Call("GET", path, HERE, peer="192.0.2.1")
    assert call(app, stranger).status == 403
    assert call(app, Call("GET", path, (("Host", "evil.example"),))).status == 403


def test_the_inbox_asks_for_its_password(receiver: Receiver) -> None:
    guarded = create_app(receiver, settings_for(ADMIN_TOKEN_SHA256="0" * 64))
    answer = call(guarded, Call("GET", "/", HERE))
    assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Basic realm="inbox", charset="UTF-8"')


def test_the_page_runs_its_own_script_and_nothing_else(app: FastAPI) -> None:
    first, second = (call(app, Call("GET", "/", HERE)) for _ in range(2))
    policy = first.headers["content-security-policy"]
    nonce = policy.partition("script-src 'nonce-")[2].partition("'")[0]
    assert re.findall(r"<(?:script|link|style)[^>]*>", first.body.decode()) == [
        '<link rel="icon" href="data:,">',
        f'<link rel="stylesheet" href="-/page.css" nonce="{nonce}">',
        f'<script type="module" src="-/page.js" nonce="{nonce}">',
    ]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "{{" not in first.body.decode()
    assert policy != second.headers["content-security-policy"]


def test_the_page_asks_nothing_of_other_hosts(app: FastAPI) -> None:
    for path in ("/", "/-/page.css", "/-/page.js", "/-/dom.js", "/-/markdown.js"):
        page = call(app, Call("GET", path, HERE)).body.decode()
        assert len(page) > 1000
        assert "http://" not in page
        assert "https://" not in page
        assert not re.search(r"innerHTML|insertAdjacent|document\.write|\beval\b", page)


@pytest.mark.parametrize("name", ["page.html", "http.py", "..%2fhttp.py", ""])
def test_no_other_file_of_the_package_is_served(app: FastAPI, name: str) -> None:
    assert call(app, Call("GET", f"/-/{name}", HERE)).status in {404, 422}


def test_only_an_admin_gets_the_files_of_the_page(app: FastAPI) -> None:
    assert call(app, Call("GET", "/-/page.js")).status == 403


def test_no_answer_is_stored_or_sniffed(app: FastAPI) -> None:
    for wanted in (Call("GET", "/", HERE), Call("GET", "/healthz"), Call("POST", "/webhook"), Call("GET", "/nothing")):
        headers = call(app, wanted).headers
        assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")


def test_the_list_says_who_we_are_and_what_came_after(app: FastAPI, receiver: Receiver) -> None:
    post(app, event(1))
    post(app, event(2, iss="https://evil.example"))
    everything = call(app, Call("GET", "/api/notifications", HERE)).json
    assert everything["receiver"] == {
        "issuer": receiver.issuer,
        "audience": receiver.audience,
        "jwksUrl": f"{receiver.issuer}/.well-known/jwks.json",
        "documentsUrl": "",
        "live": True,
        "expecting": True,
    }
    assert everything["outcomes"] == {"accepted": 1, "refused": 1}
    assert [entry["outcome"] for entry in everything["entries"]] == ["accepted", "refused"]
    assert everything["entries"][1]["refusal"]["code"] == "wrong-issuer"
    assert everything["tasks"] == [TaskLine(TASK, 1, "working").as_json()]
    after = call(app, Call("GET", "/api/notifications", HERE, query=f"after={everything['entries'][0]['number']}"))
    assert len(after.json["entries"]) == 1


def get(app: FastAPI, path: str) -> Answer:
    return call(app, Call("GET", path, HERE))


def test_a_request_is_kept_with_its_answer_and_without_its_secrets(app: FastAPI) -> None:
    request = event(1)
    post(app, WebhookRequest((*request.headers, ("Cookie", "session=1"), ("X-Trace", "t-1")), request.body))
    shown = get(app, "/api/notifications/1").json
    headers = dict(shown["request"]["headers"])
    assert headers["cookie"] == headers["x-a2a-notification-token"] == "<redacted>"
    assert (headers["x-trace"], headers["authorization"]) == ("t-1", dict(request.headers)["Authorization"])
    assert (shown["request"]["body"], shown["request"]["bytes"]) == (request.body.decode(), len(request.body))
    assert shown["answer"] == {"status": 200, "ms": 0}
    assert TOKEN not in get(app, "/api/notifications/1").body.decode()


def test_a_refused_request_is_kept_with_its_answer_and_whatever_it_holds(app: FastAPI) -> None:
    strange = (("Content-Type", "application/json"), ("Authorization", "Bearer of-a-stranger"))
    post(app, WebhookRequest(strange, b"\xff"))
    post(app, WebhookRequest(event(1).headers, bytes(1024 * 1024 + 1)))
    refused, large = (get(app, f"/api/notifications/{number}").json for number in (1, 2))
    assert dict(refused["request"]["headers"])["authorization"] == "<redacted>"
    assert (refused["request"]["bodyBase64"], refused["answer"]["status"]) == ("/w==", 401)
    assert (large["request"]["body"], large["answer"]["status"]) == ("", 413)
    assert get(app, "/api/notifications").json["refused"] == {"malformed-token": 1, "too-large": 1}


def test_a_picture_of_300_kilobytes_can_be_seen_and_no_part_of_a_refused_request(app: FastAPI) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(300_000)
    part = {"raw": base64.b64encode(picture).decode(), "mediaType": "image/png"}
    artifact = {"artifactId": "a-1", "parts": [part]}
    body = {"artifactUpdate": {"taskId": TASK, "contextId": "c", "artifact": artifact}}
    post(app, event(1, body=body))
    post(app, event(2, body=body, aud="https://another.example"))
    assert get(app, "/api/notifications/1/parts/0").json["source"].startswith("data:image/png;base64,iVBOR")
    assert len(get(app, "/api/notifications").body) < 10_000
    for path in ("1/parts/1", "2/parts/0", "3/parts/0"):
        assert get(app, f"/api/notifications/{path}").status == 404
    assert get(app, "/api/notifications/3").status == 404


def test_tokens_are_listed_by_agent_and_task_and_never_shown(app: FastAPI, receiver: Receiver) -> None:
    answer = call(app, Call("POST", "/expectations", JSON, (b"{}",), query="agent=document"))
    post(app, event(1))
    listed = get(app, "/expectations").json["expectations"]
    assert [(each["agent"], each["taskId"], each["standing"]) for each in listed] == [
        ("document", None, False),
        (None, TASK, False),
    ]
    assert answer.json["pushNotificationConfig"]["token"] not in get(app, "/expectations").body.decode()
    assert receiver.inbox.label_of(answer.json["id"]) == "document"


def test_a_task_has_the_agent_of_its_token_and_the_clients_first_words(app: FastAPI) -> None:
    made = call(app, Call("POST", "/expectations", JSON, (b"{}",), query="agent=image")).json
    history = [{"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Draw a boat."}]}]
    status = {"state": "TASK_STATE_SUBMITTED"}
    body = {"task": {"id": "new", "contextId": "c", "status": status, "history": history}}
    request = event(1, body=body, sub="new", taskId="new")
    headers = dict(request.headers) | {"X-A2A-Notification-Token": made["pushNotificationConfig"]["token"]}
    assert post(app, replace(request, headers=tuple(headers.items()))).status == 200
    assert get(app, "/api/notifications").json["tasks"] == [
        {"taskId": "new", "eventNumber": 1, "state": "submitted", "agent": "image", "prompt": "Draw a boat."}
    ]


def test_the_health_is_shown_to_another_machine(app: FastAPI) -> None:
    assert call(app, Call("GET", "/healthz", peer="192.0.2.1")).json == {"status": "ok"}


def test_no_documentation_is_served_beside_it(app: FastAPI) -> None:
    assert [call(app, Call("GET", path, HERE)).status for path in ("/docs", "/redoc", "/openapi.json")] == [404] * 3


def test_the_log_names_codes_and_ids_and_no_content(app: FastAPI, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    post(app, event(1))
    post(app, event(2, iss="https://evil.example"))
    assert [record.getMessage() for record in caplog.records] == [
        f"accepted task={TASK} event=1",
        "refused code=wrong-issuer: the token is of another issuer than ISSUER",
    ]


@pytest.mark.usefixtures("event_loop_of_lambda")
def test_the_receiver_works_behind_api_gateway_without_streams(receiver: Receiver) -> None:
    request = event(1)
    handler = Mangum(create_app(receiver, replace(LOCAL, live=False)), lifespan="off")
    answer = handler(gateway_event("POST", "/webhook", dict(request.headers), request.body.decode()), None)  # type: ignore[arg-type]
    assert (answer["statusCode"], answer["body"]) == (200, '{"received":true,"duplicate":false,"late":false}')
    streaming = handler(gateway_event("GET", "/events", dict(HERE), None), None)  # type: ignore[arg-type]
    assert streaming["statusCode"] == 204


def gateway_event(method: str, path: str, headers: dict[str, str], body: str | None) -> dict[str, Any]:
    return {
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": method,
        "headers": headers,
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "requestContext": {"identity": {"sourceIp": "127.0.0.1"}, "stage": "Prod"},
        "body": body,
        "isBase64Encoded": False,
    }


@pytest.mark.usefixtures("event_loop_of_lambda")
def test_two_headers_of_one_name_are_seen_behind_api_gateway(receiver: Receiver) -> None:
    request = event(1)
    handler = Mangum(create_app(receiver, LOCAL), lifespan="off")
    twice = gateway_event("POST", "/webhook", dict(request.headers), request.body.decode())
    twice["multiValueHeaders"]["X-A2A-Notification-Token"] = [TOKEN, "another"]
    assert handler(twice, None)["statusCode"] == 401  # type: ignore[arg-type]


def test_an_expectation_for_later_does_not_disturb_this_one(app: FastAPI, receiver: Receiver) -> None:
    receiver.expectations.add(Expectation("e-9", NOW + 1, task_id="later"))
    assert post(app, event(1)).status == 200
