"""A webhook's address is looked up once, when it is registered; what that finds decides, within bounds."""

from __future__ import annotations

import socket
from threading import Event
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.adapters.egress import addresses_of
from a2a_serverless.domain.cursors import Verification
from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.domain.notifications import notification_claims
from a2a_serverless.domain.outbound import EgressPolicy, NameUnresolved, UrlNotAllowed, check_url
from a2a_serverless.protocol.codecs import codec
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.protocol.v1 import AuthenticationInfo, TaskPushNotificationConfig
from a2a_serverless.services import webhooks
from tests.echo import Writer
from tests.world import HOOK, ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.protocol.versions import ProtocolVersion

MESSAGE: JsonObject = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
OLD_MESSAGE: JsonObject = {
    "kind": "message",
    "messageId": "m-1",
    "role": "user",
    "parts": [{"kind": "text", "text": "hi"}],
}


def world_with(addresses: tuple[str, ...]) -> World:
    world = World([Writer().agent])
    world.resolver.addresses["hooks.example.com"] = addresses
    return world


def refusal(world: World, wanted: TaskPushNotificationConfig) -> list[tuple[str, str]]:
    with pytest.raises(InvalidParams) as refused:
        webhooks.new_config(world.service.webhooks(), ME.key("task"), wanted, "1.0")
    return [(found.field, found.description) for found in refused.value.violations]


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "169.254.169.254", "fd00::1"])
def test_a_name_with_an_address_that_is_not_public_is_refused_for_good(address: str) -> None:
    world = world_with(("93.184.215.14", address))
    assert refusal(world, TaskPushNotificationConfig(url=HOOK)) == [
        ("url", "is refused: the name has an address that is not public")
    ]


def test_a_name_that_has_no_address_now_is_kept_unverified() -> None:
    world = world_with(())
    _, cursor = webhooks.new_config(
        world.service.webhooks(), ME.key("task"), TaskPushNotificationConfig(url=HOOK), "1.0"
    )
    assert cursor.verification is Verification.UNVERIFIED


def test_a_refused_webhook_of_a_new_task_makes_no_task() -> None:
    world = world_with(("10.0.0.1",))
    with pytest.raises(InvalidParams):
        world.send("hello")
    assert world.table.feed == []


SEND: JsonObject = {"message": MESSAGE, "configuration": {"taskPushNotificationConfig": {"url": HOOK}}}
OLD_SEND: JsonObject = {"message": OLD_MESSAGE, "configuration": {"pushNotificationConfig": {"url": HOOK}}}


@pytest.mark.parametrize(
    ("version", "operation", "params", "field"),
    [
        ("1.0", Operation.PUSH_CREATE, {"taskId": "t", "url": HOOK}, "url"),
        ("1.0", Operation.SEND, SEND, "configuration.taskPushNotificationConfig.url"),
        ("0.3", Operation.SEND, OLD_SEND, "configuration.pushNotificationConfig.url"),
    ],
)
def test_a_wrong_field_is_named_as_the_client_wrote_it(
    version: ProtocolVersion, operation: Operation, params: JsonObject, field: str
) -> None:
    request = codec("jsonrpc", version, 0).read(operation, params)
    config = request if operation is Operation.PUSH_CREATE else request.configuration.task_push_notification_config
    assert refusal(world_with(("10.0.0.1",)), config)[0][0] == field


TARGET = check_url(HOOK, EgressPolicy())


def test_the_resolver_of_the_system_is_asked_for_every_address() -> None:
    with pytest.raises(UrlNotAllowed):
        addresses_of(TARGET, lambda _host, _port: ["93.184.215.14", "10.0.0.1"])
    addresses_of(TARGET, lambda _host, _port: ["93.184.215.14"])


def test_a_name_that_the_resolver_does_not_know_is_unresolved() -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, f"{host}:{port}")

    with pytest.raises(NameUnresolved):
        addresses_of(TARGET, unknown)


def test_a_resolver_that_hangs_is_waited_for_in_bounds() -> None:
    hangs = Event()

    def hanging(host: str, port: int) -> list[str]:
        hangs.wait()
        return [host, str(port)]

    with pytest.raises(NameUnresolved):
        addresses_of(TARGET, hanging)
    hangs.set()


(BASE,) = World([]).service.webhooks().own_urls()


def expecting(**claims: str) -> TaskPushNotificationConfig:
    """A webhook of a client that expects these claims in its tokens."""
    return TaskPushNotificationConfig(url=HOOK, authentication=AuthenticationInfo(scheme="Bearer", **claims))


@pytest.mark.parametrize(
    ("wanted", "audience"),
    [
        ({}, HOOK),
        ({"issuer": BASE}, HOOK),
        ({"audience": "https://hooks.example.com"}, "https://hooks.example.com"),
        ({"audience": "https://hooks.example.com:443/other?a=b"}, "https://hooks.example.com:443/other?a=b"),
        ({"issuer": BASE, "audience": HOOK}, HOOK),
    ],
)
def test_the_audience_that_a_client_expects_is_signed(wanted: dict[str, str], audience: str) -> None:
    world = World([Writer().agent])
    config, _ = webhooks.new_config(world.service.webhooks(), ME.key("task"), expecting(**wanted), "1.0")
    claims = notification_claims(ME.key("task"), config, 1, b"{}", issuer=BASE, now=0, jti="j")
    assert (claims["iss"], claims["aud"]) == (BASE, audience)
    assert "audience" not in str(as_json(webhooks.show("task", config)))


@pytest.mark.parametrize(
    "audience",
    [
        "https://other.example.com/a2a",
        "https://hooks.example.com:8443/a2a",
        "http://hooks.example.com/a2a",
        "https://hooks.example.com.evil.example/",
        "https://hooks.example.com@evil.example/",
        "https://hooks.example.com\\@evil.example/",
        "my-receiver",
        "urn:my:receiver",
    ],
)
def test_an_audience_at_another_origin_is_refused_with_the_rule(audience: str) -> None:
    ((field, why),) = refusal(world_with(("93.184.215.14",)), expecting(audience=audience))
    assert (field, "scheme, host and port of the url" in why) == ("authentication.audience", True)


def test_a_webhook_that_expects_another_issuer_is_refused_with_the_right_issuer() -> None:
    world = World([Writer().agent])
    violation = ("authentication.issuer", f"is {BASE}, which signs, or left out")
    assert refusal(world, expecting(issuer="https://other.example")) == [violation]


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize(("member", "value"), [("audience", "https://other.example/"), ("issuer", "https://x.example")])
def test_an_issuer_or_audience_that_a_message_expects_is_never_dropped(
    version: ProtocolVersion, member: str, value: str
) -> None:
    scheme: JsonObject = {"scheme": "Bearer"} if version == "1.0" else {"schemes": ["Bearer"]}
    hook: JsonObject = {"url": HOOK, "authentication": scheme | {member: value}}
    params: JsonObject = {"message": MESSAGE if version == "1.0" else OLD_MESSAGE}
    name = "taskPushNotificationConfig" if version == "1.0" else "pushNotificationConfig"
    request = codec("jsonrpc", version, 0).read(Operation.SEND, params | {"configuration": {name: hook}})
    violations = refusal(world_with(("93.184.215.14",)), request.configuration.task_push_notification_config)
    assert [field for field, _ in violations] == [f"configuration.{name}.authentication.{member}"]
