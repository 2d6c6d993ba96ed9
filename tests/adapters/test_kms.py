from __future__ import annotations

from base64 import urlsafe_b64decode
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from a2a_serverless.adapters.kms import KEY_LIFE_MS, KEYS_KEPT, PURPOSE, KmsSealer
from tests.adapters.clouds import cloud, error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOW = 1_790_000_000_000


class Counting:
    """A KMS client that counts its calls."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**parameters: Any) -> Any:
            assert parameters["EncryptionContext"] == PURPOSE
            self.calls.append(name)
            return getattr(self._client, name)(**parameters)

        return call


class Kms:
    """One key, sealers that use it, and their time."""

    def __init__(self, client: Any) -> None:
        self.now = NOW
        self.key_id = client.create_key()["KeyMetadata"]["KeyId"]
        self.client: Any = Counting(client)

    def sealer(self) -> KmsSealer:
        return KmsSealer(lambda: self.client, self.key_id, lambda: self.now)


@pytest.fixture
def kms() -> Iterator[Kms]:
    with cloud("kms") as client:
        yield Kms(client)


@pytest.mark.parametrize("secret", ["", "token", "令牌 \U0001f600", "x" * 4096])
def test_a_secret_opens_for_its_own_context_in_any_instance(kms: Kms, secret: str) -> None:
    sealed = kms.sealer().seal(secret, "task\nhook")
    assert kms.sealer().open(sealed, "task\nhook") == secret


@pytest.mark.parametrize("context", ["task\nother", "", "task\nhook "])
def test_a_secret_opens_for_no_other_context(kms: Kms, context: str) -> None:
    sealer = kms.sealer()
    with pytest.raises(ValueError, match="not sealed for this context"):
        sealer.open(sealer.seal("token", "task\nhook"), context)


@pytest.mark.requirement(117)
def test_a_sealed_text_shows_nothing_of_the_secret_and_never_repeats(kms: Kms) -> None:
    sealer = kms.sealer()
    one, other = sealer.seal("a secret token", "context"), sealer.seal("a secret token", "context")
    assert one != other
    assert b"secret" not in b"".join(urlsafe_b64decode(part + "==") for part in one.split(".")[1:])
    assert set(one) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


@pytest.mark.parametrize("place", [1, 2])
def test_a_sealed_text_that_was_changed_does_not_open(kms: Kms, place: int) -> None:
    sealer = kms.sealer()
    parts = sealer.seal("token", "context").split(".")
    middle = len(parts[place]) // 2
    letter = "A" if parts[place][middle] != "A" else "B"
    parts[place] = parts[place][:middle] + letter + parts[place][middle + 1 :]
    with pytest.raises(ValueError, match="not sealed"):
        sealer.open(".".join(parts), "context")


@pytest.mark.parametrize("text", ["", "token", "2.AAAA.AAAA", "1..", "1.AAAA", "1.AAAA.AAAA.AAAA", "1.A.A"])
def test_the_sealer_refuses_to_open_a_text_that_is_not_sealed(kms: Kms, text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        kms.sealer().open(text, "context")


def test_many_secrets_are_sealed_and_opened_with_one_call_each(kms: Kms) -> None:
    sealer, opener = kms.sealer(), kms.sealer()
    sealed = [sealer.seal(str(number), "context") for number in range(20)]
    assert [opener.open(one, "context") for one in sealed] == [str(number) for number in range(20)]
    assert kms.client.calls == ["generate_data_key", "decrypt"]


def test_a_data_key_is_replaced_when_it_is_old_and_what_it_sealed_still_opens(kms: Kms) -> None:
    sealer = kms.sealer()
    old = sealer.seal("old", "context")
    kms.now += KEY_LIFE_MS
    new = sealer.seal("new", "context")
    assert old.split(".")[1] != new.split(".")[1]
    assert kms.client.calls == ["generate_data_key", "generate_data_key"]
    assert (sealer.open(old, "context"), sealer.open(new, "context")) == ("old", "new")


def test_a_data_key_seals_a_bounded_number_of_secrets(kms: Kms) -> None:
    sealer = KmsSealer(lambda: kms.client, kms.key_id, lambda: NOW, uses=3)
    keys = [sealer.seal("secret", "context").split(".")[1] for _ in range(7)]
    assert [keys.count(key) for key in dict.fromkeys(keys)] == [3, 3, 1]


def test_an_opened_key_is_asked_for_again_when_it_is_old(kms: Kms) -> None:
    sealed, opener = kms.sealer().seal("token", "context"), kms.sealer()
    opener.open(sealed, "context")
    kms.now += KEY_LIFE_MS
    opener.open(sealed, "context")
    assert kms.client.calls.count("decrypt") == 2


def test_a_bounded_number_of_opened_keys_is_kept(kms: Kms) -> None:
    opener = kms.sealer()
    sealed = [kms.sealer().seal("token", "context") for _ in range(KEYS_KEPT + 1)]
    for one in sealed:
        opener.open(one, "context")
    opener.open(sealed[-1], "context")
    assert kms.client.calls.count("decrypt") == KEYS_KEPT + 1
    opener.open(sealed[0], "context")
    assert kms.client.calls.count("decrypt") == KEYS_KEPT + 2


def test_threads_share_one_data_key(kms: Kms) -> None:
    sealer = kms.sealer()
    with ThreadPoolExecutor(4) as threads:
        sealed = list(threads.map(lambda number: sealer.seal(str(number), "context"), range(40)))
        opened = list(threads.map(lambda one: sealer.open(one, "context"), sealed))
    assert opened == [str(number) for number in range(40)]
    assert kms.client.calls.count("generate_data_key") == 1


def test_a_key_that_may_not_be_used_is_an_error_of_its_own(kms: Kms) -> None:
    class Closed:
        def decrypt(self, **_: object) -> object:
            raise error("AccessDeniedException")

    closed: Any = Closed()
    with pytest.raises(ClientError, match="AccessDenied"):
        KmsSealer(lambda: closed, kms.key_id, lambda: NOW).open(kms.sealer().seal("token", "context"), "context")
