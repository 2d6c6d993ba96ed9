"""The deployed template where nobody comes in without credentials, its agents included."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.adapters.kms import PURPOSE, SERVICE_TOKENS
from a2a_serverless.adapters.service_tokens import dump_claims
from a2a_serverless.client import Client, HttpError, text_message
from a2a_serverless.domain.access import SERVICE_TOKEN_PREFIX, ApiKey, ServiceToken, digest_of, encode_key
from a2a_serverless.domain.errors import TaskNotFound
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest, Task, TaskState
from a2a_serverless_tools.operators.deployed import StackName
from a2a_serverless_tools.operators.operations import make_api_keys
from tests.observed import observed
from tests.stack.local import eventually, paths_for, running_stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

KEY = "a2a_alice"
ALICE = Principal("acme", "alice")
TEXT = "# Sea\n\nThe sea is wide. Ships cross it every day. Lighthouses show them the way home at night."


@pytest.fixture(scope="module")
def signed_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack of its own, with one caller."""
    with running_stack(paths_for(tmp_path_factory), ANONYMOUS_ACCESS="off") as made:
        keys = make_api_keys(StackName("a2a-serverless", made.deployment.endpoint))
        keys.add(ApiKey(digest_of(KEY), ALICE, "", 0))
        yield made


def client(stack: LocalStack, agent: str, key: str) -> Client:
    url = stack.options.api_url
    return Client(f"{url}/{agent}", observed(url), {"X-API-Key": key})


def test_an_orchestrator_calls_its_siblings_with_service_tokens_that_kms_has_sealed(signed_in: LocalStack) -> None:
    orchestrator = client(signed_in, "orchestrator", KEY)
    sent = orchestrator.send(
        SendMessageRequest(message=text_message(TEXT), configuration=SendMessageConfiguration(return_immediately=True))
    )
    assert isinstance(sent, Task)
    task = eventually(lambda: ended(orchestrator.get(sent.id)))
    assert task.status.state is TaskState.COMPLETED
    asked = {agent: [*client(signed_in, agent, KEY).task_ids(sent.context_id)] for agent in ("outline", "document")}
    assert {agent: len(tasks) for agent, tasks in asked.items()} == {"outline": 1, "document": 1}, "the caller's own"


@pytest.mark.parametrize(("purpose", "admitted"), [(SERVICE_TOKENS, True), (PURPOSE, False), ({}, False)])
def test_the_emulator_s_kms_tells_purposes_apart(
    signed_in: LocalStack, purpose: dict[str, str], *, admitted: bool
) -> None:
    ends = time.time_ns() // 1_000_000 + 600_000
    claims = dump_claims(ServiceToken(ALICE, frozenset({"a2a"}), digest_of(KEY), ends)).encode()
    key = signed_in.output("SealingKeyId")
    made = signed_in.client("kms").encrypt(KeyId=key, Plaintext=claims, EncryptionContext=purpose)
    token = encode_key(made["CiphertextBlob"], SERVICE_TOKEN_PREFIX)
    with pytest.raises(TaskNotFound if admitted else HttpError):
        client(signed_in, "outline", token).get("task")


@pytest.mark.parametrize("key", ["", "a2a_unknown", "a2a_pass_" + "A" * 300], ids=["none", "unknown", "invented"])
def test_a_client_with_a_wrong_key_gets_401(signed_in: LocalStack, key: str) -> None:
    with pytest.raises(HttpError) as refused:
        client(signed_in, "outline", key).get("task")
    assert refused.value.status == 401


def ended(task: Task) -> Task | None:
    return task if task.status.state in TERMINAL else None
