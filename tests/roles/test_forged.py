"""What a function may write into the table of tasks admits nobody."""

from __future__ import annotations

import time
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.domain.access import digest_of
from tests.roles.account import KEY, Account, gateway_event, standing
from tests.roles.journeys import start
from tests.roles.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.enable_socket, pytest.mark.xdist_group("roles")]

FORGED: Final = "a2a_pass_" + "f" * 43
KEY_SHAPED: Final = "a2a_" + "f" * 43
OWNER: Final = {"tenant": {"S": "acme"}, "owner": {"S": "alice"}, "scopes": {"S": "a2a"}, "note": {"S": ""}}


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    """A stack that takes an issuer's tokens, too."""
    issuer = {"OidcIssuer": "https://issuer.example", "OidcAudience": "agents"}
    with standing(Recorder(), parameters=issuer) as made:
        start(made)
        yield made


def sha(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def forge(account: Account, sk: str, **more: dict[str, Any]) -> None:
    """Writes an item under ``ACCESS``, which no function may take for a key or a token."""
    ends = str(int(time.time()) + 3_600)
    item = {"pk": {"S": "ACCESS"}, "sk": {"S": sk}, "v": {"N": "1"}, "made_at": {"N": "0"}, "expires": {"N": ends}}
    account.aws["dynamodb"].put_item(TableName=account.name("Table"), Item=item | OWNER | more)


def answered(account: Account, key: str) -> int:
    headers = {"A2A-Version": "1.0", "X-API-Key": key}
    return int(account.invoke("api", gateway_event("GET", "/document/tasks", headers, b""))["statusCode"])


@pytest.mark.parametrize("parent", [{"parent": {"S": digest_of(KEY)}}, {}])
def test_a_pass_that_a_function_has_written_for_another_owner_admits_nobody(
    account: Account, parent: dict[str, Any]
) -> None:
    assert answered(account, KEY) == 200
    forge(account, f"pass-{sha(FORGED)}", **parent)
    assert answered(account, FORGED) == 401


def test_a_key_that_a_function_has_written_admits_nobody(account: Account) -> None:
    forge(account, sha(KEY_SHAPED))
    assert answered(account, KEY_SHAPED) == 401
