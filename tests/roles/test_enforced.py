"""The roles once more, by evaluators that are not ours: emulators that check the rights of each call.

Each function and each operator's command has the session of a role of its own, with the policies of the template and of
the documents. The emulator of `make setup` always plays; fakecloud plays if a variable names its program.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
import requests
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ClientError

from a2a_serverless import SigV4
from a2a_serverless.adapters.remote_auth import RemoteAuth
from a2a_serverless.http_client import open_request
from a2a_serverless.http_client.transport import ClientRequest
from tests.functions.template import functions
from tests.roles.clouds import FORBIDDEN, TLS, Cloud, denies, emulator
from tests.roles.fakecloud import fakecloud
from tests.roles.faults import NO_SIMULATED_CONTEXT, OF_EMULATOR, OF_FAKECLOUD, Fault, simulates
from tests.roles.journeys import SCENARIOS
from tests.roles.policies import covers, grants
from tests.roles.powers import GROUPS, HOLDERS, Ask, all_asks, holders, is_allowed, operator_statements
from tests.roles.recorder import PURPOSE, REGION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from tests.roles.account import Account
    from tests.roles.recorder import Kind

CLOUDS: Final[Mapping[str, tuple[Callable[[], AbstractContextManager[Cloud]], tuple[Fault, ...]]]] = {
    "emulator": (emulator, OF_EMULATOR),
    "fakecloud": (fakecloud, OF_FAKECLOUD),
}
pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.integration,
    pytest.mark.xdist_group("enforced"),
]
EACH_CLOUD = pytest.mark.parametrize("played", CLOUDS, indirect=True)
ROLES: Final = (*functions(), *GROUPS)
NAMES: Final = [journey.__name__ for one in SCENARIOS for journey in one.journeys]


class Played(NamedTuple):
    """A stack on an emulator on which the journeys have been made, and how each ended, in their order."""

    account: Account
    kinds: dict[Kind, Mapping[str, Any]]
    ends: list[tuple[str, BaseException | None]]

    @property
    def cloud(self) -> Cloud:
        return self.account.cloud

    def statements(self, role: str) -> list[dict[str, Any]]:
        stack = self.account.stack
        return operator_statements(stack, role) if role in GROUPS else stack.roles()[role]

    def client(self, role: str, service: str) -> Any:
        return self.cloud.session_client(service, self.account.sessions[role])

    def refused(self, role: str) -> Iterator[tuple[Kind, Mapping[str, Any]]]:
        """The calls of other roles that this one may not make, also by what stands for its statements."""
        statements = self.statements(role)
        allowed = [*grants(statements), *grants(self.cloud.amended(statements))]
        for kind, params in self.kinds.items():
            if not all(any(covers(grant, need) for grant in allowed) for need in kind[2]):
                yield kind, params


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest) -> Iterator[Played]:
    """The first scenario, with its stack; the other one is played before."""
    play, _ = CLOUDS[request.param]
    ends: list[tuple[str, BaseException | None]] = []
    kinds: dict[Kind, Mapping[str, Any]] = {}
    first, *others = SCENARIOS
    for one in others:
        with one.standing(play) as account:
            ends += [(journey.__name__, _end(journey, account)) for journey in one.journeys]
            kinds |= account.recorder.kinds
    with first.standing(play) as account:
        ends += [(journey.__name__, _end(journey, account)) for journey in first.journeys]
        yield Played(account, kinds | account.recorder.kinds, ends)


def _end(journey: Callable[[Account], None], account: Account) -> BaseException | None:
    try:
        journey(account)
    except (Exception, AssertionError) as error:  # noqa: BLE001 - a test of its own raises it
        return error
    return None


@EACH_CLOUD
@pytest.mark.parametrize("name", dict.fromkeys(NAMES))
def test_a_journey_is_made_by_the_rights_of_the_roles_alone(played: Played, name: str) -> None:
    for one, error in played.ends:
        if one == name and error:
            raise error


@EACH_CLOUD
def test_each_holder_signs_its_requests_by_its_own_session_alone(played: Played) -> None:
    sessions = played.account.sessions
    keys = {holder: {*used} for holder, used in played.account.recorder.keys.items()}
    assert keys == {holder: {sessions[holder]["AWS_ACCESS_KEY_ID"]} for holder in keys}
    assert keys.keys() == {*ROLES}


@EACH_CLOUD
@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_refused_each_kind_of_call_that_its_policy_does_not_allow(played: Played, role: str) -> None:
    calls = [*played.refused(role)]
    assert calls
    clients = {service: played.client(role, service) for service in {kind[0] for kind, _ in calls}}
    assert [kind for kind, params in calls if not _is_refused(clients[kind[0]], kind[1], params)] == []


def _is_refused(client: Any, operation: str, params: Mapping[str, Any]) -> bool:
    method = next(name for name, one in client.meta.method_to_api_mapping.items() if one == operation)
    try:
        # A link's call has no body, so its length would never come.
        getattr(client, method)(**{name: value for name, value in params.items() if name != "ContentLength"})
    except ClientError as error:
        return denies(error)
    return False


@EACH_CLOUD
@pytest.mark.parametrize("name", HOLDERS)
def test_the_simulator_of_policies_says_the_same_of_each_call(played: Played, name: str) -> None:
    statements, asks = holders()[name], _without_context(played.cloud, all_asks())
    assert _simulate(played.cloud, statements, asks) == [is_allowed(statements, one) for one in asks]


@EACH_CLOUD
@pytest.mark.parametrize("role", ROLES)
def test_the_simulator_allows_what_a_role_needs_and_no_other_purpose(played: Played, role: str) -> None:
    needs, statements = sorted(played.account.recorder.needs[role]), played.statements(role)
    asks = _without_context(played.cloud, [Ask(one.action, one.resource, dict(one.context)) for one in needs])
    others = [Ask(one.action, one.resource, {PURPOSE: "another"}) for one in needs if one.purpose]
    assert _simulate(played.cloud, statements, asks) == [True] * len(asks)
    assert _simulate(played.cloud, statements, others) == [False] * len(others)


def _without_context(cloud: Cloud, asks: list[Ask]) -> list[Ask]:
    return [ask for ask in asks if not ask.context] if NO_SIMULATED_CONTEXT in cloud.faults else asks


def _simulate(cloud: Cloud, statements: list[dict[str, Any]], asks: list[Ask]) -> list[bool]:
    iam = cloud.client("iam")
    return [simulates(iam, statements, one.action, one.resource, one.context) for one in asks]


# ---- Links, policies of the bucket and the queues, signatures


def _link(played: Played, role: str, name: str = "linked") -> str:
    place = {"Bucket": played.account.name("Blobs"), "Key": name}
    return str(played.client(role, "s3").generate_presigned_url("get_object", Params=place))


@EACH_CLOUD
def test_a_link_is_worth_what_its_signer_may_do_and_for_its_object_alone(played: Played) -> None:
    for name in ("linked", "linked-too"):
        played.account.aws["s3"].put_object(Bucket=played.account.name("Blobs"), Key=name, Body=b"content")
    link = _link(played, "api")
    statuses = [
        requests.get(url, headers=headers, timeout=10).status_code
        for url, headers in (
            (link, TLS),
            (link, {}),  # the bucket's policy takes TLS only
            (link.replace("linked", "linked-too"), TLS),
            (_link(played, "sweeper"), TLS),
        )
    ]
    assert statuses == [200, FORBIDDEN, FORBIDDEN, FORBIDDEN]


@EACH_CLOUD
@pytest.mark.parametrize("service", ["s3", "sqs"])
def test_the_bucket_and_the_queues_take_tls_only(played: Played, service: str) -> None:
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "s3": ("PutObject", {"Bucket": played.account.name("Blobs"), "Key": "sent", "Body": b"content"}),
        "sqs": ("SendMessage", {"QueueUrl": played.account.name("WorkQueue"), "MessageBody": "{}"}),
    }
    client = played.client("api", service)
    assert not _is_refused(client, *calls[service])
    client.meta.events.register_last("before-call", _without_tls)
    assert _is_refused(client, *calls[service])


def _without_tls(params: dict[str, Any], **_: object) -> None:
    for name in TLS:
        params["headers"].pop(name)


@EACH_CLOUD
def test_a_request_that_a_mirror_signs_is_taken_and_a_changed_one_is_refused(played: Played) -> None:
    body = json.dumps({"QueueUrl": played.account.name("WorkQueue"), "MessageBody": "{}"}).encode()
    headers = {**TLS, "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.SendMessage"}
    call = ClientRequest(f"{played.cloud.endpoint}/", headers, body)

    @contextmanager
    def changing(call: ClientRequest) -> Iterator[Any]:
        with open_request(ClientRequest(call.url, call.headers, body.replace(b"{}", b"[]"))) as answer:
            yield answer

    statuses = []
    for role, transport in (
        ("api", open_request),
        ("api", changing),
        ("rotator", open_request),
    ):
        keys = ReadOnlyCredentials(*played.account.sessions[role].values())
        auth = RemoteAuth(SigV4("sqs", REGION), str, credentials=partial(ReadOnlyCredentials, *keys))
        with auth.wrap(transport, call.url)(call) as answer:
            statuses.append(answer.status)
    assert statuses == [200, FORBIDDEN, FORBIDDEN]


# ---- What the emulators do otherwise than AWS


@pytest.mark.parametrize(("cloud", "fault"), [(cloud, one.name) for cloud, (_, of) in CLOUDS.items() for one in of])
def test_a_fault_of_an_emulator_is_still_there(cloud: str, fault: str) -> None:
    play, faults = CLOUDS[cloud]
    (one,) = [one for one in faults if one.name == fault]
    with play() as empty:
        assert one.shows(empty), f"{cloud} does it as {one.page} says: remove the fault"
