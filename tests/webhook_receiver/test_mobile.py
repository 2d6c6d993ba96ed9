"""``examples/mobile``: a real delivery becomes a push in SNS, and the app reads the task with its user's sign-in."""

from __future__ import annotations

import json
import re
import subprocess
import time
from contextlib import ExitStack
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import boto3
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.sns.models import sns_backends

from a2a_serverless.adapters.clock import SystemClock
from a2a_serverless.adapters.oidc import OidcTokenVerifier
from a2a_serverless.domain.access import TrustedIssuer
from a2a_serverless.http.api import OidcOrApiKey
from a2a_webhook_receiver.aws_lambda import make_handler
from a2a_webhook_receiver.settings import read_settings
from a2a_webhook_receiver.testing import StubIssuer, lambda_event
from a2a_webhook_receiver.wiring import build_receiver
from tests.conformance.live import serving
from tests.docs.documents import ROOT
from tests.echo import Writer
from tests.webhook_receiver.test_real_deliveries import answering
from tests.webhook_receiver.test_stores import make_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SDK = ROOT / ".a2a/venvs/sdk-1/bin/python"
APP = Path(__file__).parent / "mobile/app.py"
SIGN_IN, AUDIENCE = "https://sign-in.example.com", "agents"
KEY = ec.generate_private_key(ec.SECP256R1())


def load(path: Path) -> Any:
    """The module in a file that nothing imports."""
    spec = spec_from_file_location(f"example_{path.parent.name}", path)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


function = load(ROOT / "examples/mobile/function.py")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any, dict[str, str]]]:
    """DynamoDB with the table, SNS, and the platform applications in it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made-up")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        sns: Any = boto3.client("sns")
        platforms = {"fcm": "GCM", "apns": "APNS"}
        made = {
            name: sns.create_platform_application(Name="app", Platform=platform, Attributes={})[
                "PlatformApplicationArn"
            ]
            for name, platform in platforms.items()
        }
        yield make_table(), sns, made


@pytest.mark.parametrize("example", ["mobile", "workflow"])
def test_the_functions_may_use_the_resources_of_their_own_application_only(example: str) -> None:
    template = (ROOT / "examples" / example / "template.yaml").read_text()
    assert re.findall(r".*(?:stateMachine:|app/|endpoint/)\*.*", template) == []


def signed_in(user: str, route: str, **asked: str) -> dict[str, Any]:
    """The event of an HTTP API after its JWT authorizer."""
    claims = {"jwt": {"claims": {"sub": user}}}
    return {"routeKey": f"POST {route}", "requestContext": {"authorizer": claims}, "body": json.dumps(asked)}


class Backend:
    """The function, and the pushes in SNS by the user's device."""

    def __init__(self, aws: tuple[Any, Any, dict[str, str]], receiver: Any, settings: Any) -> None:
        table, self.sns, applications = aws
        mobile = function.MobilePush(receiver, table, self.sns, "receiver", applications)
        self.route = function.make_routes(mobile, make_handler(mobile.push, lambda: (receiver, settings)))

    def ask(self, event: dict[str, Any], status: int = 200) -> Any:
        answer = self.route(event, None)
        assert answer["statusCode"] == status
        return json.loads(answer["body"])

    def webhook(self, request: Any) -> int:
        status: int = self.route({"routeKey": "POST /webhook", **lambda_event(request)}, None)["statusCode"]
        return status

    def pushes(self) -> dict[str, list[dict[str, Any]]]:
        """What devices got, by their platform and token."""
        endpoints = sns_backends[DEFAULT_ACCOUNT_ID]["us-east-1"].platform_endpoints.values()
        return {one.token: [json.loads(text) for text in one.messages.values()] for one in endpoints}


@pytest.fixture
def issuer() -> StubIssuer:
    return StubIssuer(WEBHOOK_TOKEN="")


@pytest.fixture
def backend(aws: tuple[Any, Any, dict[str, str]], issuer: StubIssuer) -> Backend:
    return Backend(aws, *issuer.build())


def config_of(backend: Backend, user: str) -> str:
    return str(backend.ask(signed_in(user, "/push-configs", agent="echo"))["token"])


def test_a_task_that_ends_is_pushed_with_ids_and_without_content(backend: Backend, issuer: StubIssuer) -> None:
    backend.ask(signed_in("alice", "/devices", platform="fcm", deviceToken="android-1"))
    backend.ask(signed_in("alice", "/devices", platform="apns", deviceToken="iphone-1"))
    token = config_of(backend, "alice")
    for number, state in enumerate(("working", "input-required"), 1):
        assert backend.webhook(issuer.notification("task-1", state, number=number, token=token)) == 200
    ids = {"taskId": "task-1", "agent": "echo", "state": "input-required"}
    (android,), (iphone,) = backend.pushes()["android-1"], backend.pushes()["iphone-1"]
    assert json.loads(android["GCM"]) == {"fcmV1Message": {"message": {"data": ids, "android": {"priority": "high"}}}}
    assert json.loads(iphone["APNS"]) == {
        "aps": {"alert": {"loc-key": "TASK_input-required"}, "mutable-content": 1},
        **ids,
    }


def test_a_push_for_apns_replaces_the_last_one_of_its_task() -> None:
    push = function.push_of("arn:aws:sns:eu-central-1:1:endpoint/APNS_SANDBOX/app/1", "t" * 100, "echo", "failed")
    assert json.loads(json.loads(push["Message"])["APNS_SANDBOX"])["state"] == "failed"
    values = {name: value["StringValue"] for name, value in push["MessageAttributes"].items()}
    assert values == {
        "AWS.SNS.MOBILE.APNS.PUSH_TYPE": "alert",
        "AWS.SNS.MOBILE.APNS.PRIORITY": "10",
        "AWS.SNS.MOBILE.APNS.COLLAPSE_ID": "t" * 64,
    }


def test_a_device_gets_the_pushes_of_the_user_who_signed_in_last(backend: Backend, issuer: StubIssuer) -> None:
    for user in ("alice", "bob"):
        backend.ask(signed_in(user, "/devices", platform="fcm", deviceToken="shared"))
    assert backend.webhook(issuer.notification("task-1", token=config_of(backend, "alice"))) == 200
    assert backend.pushes()["shared"] == []
    assert backend.webhook(issuer.notification("task-2", token=config_of(backend, "bob"))) == 200
    assert len(backend.pushes()["shared"]) == 1


def test_an_app_that_was_removed_is_forgotten_until_it_registers_again(backend: Backend, issuer: StubIssuer) -> None:
    backend.ask(signed_in("alice", "/devices", platform="fcm", deviceToken="android-1"))
    (endpoint,) = sns_backends[DEFAULT_ACCOUNT_ID]["us-east-1"].platform_endpoints
    backend.sns.set_endpoint_attributes(EndpointArn=endpoint, Attributes={"Enabled": "false"})
    assert backend.webhook(issuer.notification("task-1", token=config_of(backend, "alice"))) == 200
    backend.sns.set_endpoint_attributes(EndpointArn=endpoint, Attributes={"Enabled": "true"})
    assert backend.webhook(issuer.notification("task-2", token=config_of(backend, "alice"))) == 200
    assert backend.pushes()["android-1"] == []
    backend.ask(signed_in("alice", "/devices", platform="fcm", deviceToken="android-1"))
    assert backend.webhook(issuer.notification("task-3", token=config_of(backend, "alice"))) == 200
    assert len(backend.pushes()["android-1"]) == 1


@pytest.mark.parametrize(
    ("route", "asked"),
    [
        ("/devices", {}),
        ("/devices", {"platform": "fax", "deviceToken": "x"}),
        ("/devices", {"platform": "fcm", "deviceToken": "a b"}),
        ("/push-configs", {"agent": "../echo"}),
    ],
)
def test_the_backend_refuses_requests_that_the_app_must_not_send(
    backend: Backend, route: str, asked: dict[str, str]
) -> None:
    assert "error" in backend.ask(signed_in("alice", route, **asked), 400)
    assert "error" in backend.ask(signed_in("alice", route) | {"body": "["}, 400)


def test_an_unsigned_notification_is_refused_and_pushes_nothing(backend: Backend) -> None:
    backend.ask(signed_in("alice", "/devices", platform="fcm", deviceToken="android-1"))
    other = StubIssuer(WEBHOOK_TOKEN="")
    assert backend.webhook(other.notification("task-1", token=config_of(backend, "alice"))) == 401
    assert backend.pushes()["android-1"] == []


def signs_in(user: str) -> str:
    claims = {"iss": SIGN_IN, "aud": AUDIENCE, "sub": user, "exp": int(time.time()) + 3600}
    return jwt.encode(claims, KEY, "ES256", {"kid": "k"})


def users() -> OidcOrApiKey:
    """The sign-in of a deployment with an OpenID Connect issuer."""
    jwk = {**ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "k", "use": "sig", "alg": "ES256"}
    trust = TrustedIssuer(SIGN_IN, AUDIENCE, f"{SIGN_IN}/keys")
    verifier = OidcTokenVerifier(trust, lambda _: json.dumps({"keys": [jwk]}), SystemClock().now)
    return OidcOrApiKey(lambda _: None, verifier.verify)


@pytest.mark.enable_socket
@pytest.mark.skipif(not SDK.exists(), reason="MOBILE APP NOT TESTED: it needs `make setup`")
def test_the_app_reads_the_task_of_a_push_with_its_user_s_sign_in(aws: tuple[Any, Any, dict[str, str]]) -> None:
    with ExitStack() as end:
        base = end.enter_context(serving([Writer(seconds=0).agent], authenticator=users()))
        serve: list[Callable[..., Any]] = []
        has_ended = Event()

        def receive(_path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
            answer = serve[0]({"routeKey": "POST /webhook", "headers": headers, "body": body.decode()}, None)
            if b"COMPLETED" in body:
                has_ended.set()
            return answer["statusCode"], answer["body"].encode()

        port = end.enter_context(answering(receive))
        described = {"ISSUER": base, "AUDIENCE": f"http://127.0.0.1:{port}/webhook", "REPLAY_DB": ":memory:"}
        settings = read_settings(described)
        backend = Backend(aws, build_receiver(settings), settings)
        serve.append(backend.route)

        backend.ask(signed_in("alice", "/devices", platform="fcm", deviceToken="android-1"))
        config = backend.ask(signed_in("alice", "/push-configs", agent="echo"))
        command = [str(SDK), str(APP), f"{base}/echo", signs_in("alice"), signs_in("bob")]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        app = end.enter_context(subprocess.Popen(command, text=True, **pipes))  # noqa: S603
        end.callback(app.kill)
        task = tell(app, config)
        assert has_ended.wait(60)
        (pushed,) = backend.pushes()["android-1"]
        data = json.loads(pushed["GCM"])["fcmV1Message"]["message"]["data"]
        assert data == {"taskId": task, "agent": "echo", "state": "completed"}
        mine, another = tell(app, data["taskId"])
    assert mine == ["TASK_STATE_COMPLETED", "one: The sea. two: The sea. three: The sea. "]
    assert another == ["TaskNotFoundError"]


def tell(app: subprocess.Popen[str], value: object) -> Any:
    """Writes a line to the app and reads the next line of it."""
    assert app.stdin
    assert app.stdout
    app.stdin.write(json.dumps(value) + "\n")
    app.stdin.flush()
    return json.loads(app.stdout.readline())
