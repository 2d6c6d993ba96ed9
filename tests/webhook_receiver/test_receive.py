from dataclasses import replace

import pytest
from jwt.utils import base64url_decode

from a2a_webhook_receiver.errors import KeysUnavailable, Replayed, Unauthentic, UnknownTask
from a2a_webhook_receiver.expectations import Expectation, digest
from a2a_webhook_receiver.jwks import JwksCache
from a2a_webhook_receiver.outbound import Unreachable
from a2a_webhook_receiver.receive import Claimed, Repeated, begin, finish, release, settle
from a2a_webhook_receiver.store_sqlite import SqliteStore
from a2a_webhook_receiver.tasks import Delivery
from a2a_webhook_receiver.verifier import VerifiedChallenge
from tests.webhook_receiver.sending import EXPECTED, event, receiving, signed
from vectors.cases import CHALLENGE, NOW, TASK, TOKEN, good_headers
from vectors.forge import ORDER, encode

BY_TOKEN = Expectation("e-2", NOW + 86_400_000, token_digest=digest(TOKEN))


def body_of(task: str) -> object:
    return {"statusUpdate": {"taskId": task, "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}


def test_a_notification_is_claimed_handled_and_settled() -> None:
    with receiving(EXPECTED) as receiver:
        claimed = begin(receiver, event(1))
        assert isinstance(claimed, Claimed)
        finish(receiver, claimed)
        settle(receiver, claimed)
        assert isinstance(begin(receiver, event(1, attempt=2)), Repeated)
    assert [entry.outcome for entry in receiver.inbox.after(0)] == ["accepted", "duplicate"]


def test_a_relay_that_fails_gets_the_notification_again() -> None:
    got: list[int] = []

    def relay(delivery: Delivery) -> None:
        got.append(delivery.notification.subject.event_number)
        if len(got) == 1:
            raise Unreachable("down")

    with receiving(EXPECTED, relays=(relay,)) as receiver:
        first = begin(receiver, event(1))
        assert isinstance(first, Claimed)
        with pytest.raises(Unreachable):
            finish(receiver, first)
        release(receiver, first)
        second = begin(receiver, event(1, attempt=2))
        assert isinstance(second, Claimed)
        finish(receiver, second)
    assert got == [1, 1]


def test_a_token_binds_to_the_first_task_that_comes_with_it() -> None:
    with receiving(BY_TOKEN) as receiver:
        assert isinstance(begin(receiver, event(1)), Claimed)
        assert isinstance(begin(receiver, event(2)), Claimed)
        with pytest.raises(UnknownTask):
            begin(receiver, event(3, body=body_of("another"), sub="another", taskId="another"))


class Late(SqliteStore):
    """A store whose answers are older than its content, as when two tasks come with one token at once."""

    def find(self, task_id: str, token_digest: str | None, now: int) -> tuple[Expectation, ...]:
        return tuple(replace(found, task_id=None) for found in super().find(task_id, token_digest, now))


def test_of_two_tasks_that_come_with_one_token_at_once_one_is_refused() -> None:
    store = Late(":memory:")
    store.add(BY_TOKEN)
    with receiving(expectations=store) as receiver:
        assert isinstance(begin(receiver, event(1)), Claimed)
        with pytest.raises(UnknownTask, match="another task"):
            begin(receiver, event(2, body=body_of("another"), sub="another", taskId="another"))
    store.close()


def test_a_request_that_is_refused_binds_nothing() -> None:
    with receiving(BY_TOKEN) as receiver:
        for refused in (
            event(1, body=body_of("thief"), sub="thief", taskId="thief", aud="https://elsewhere.example"),
            event(1, body=body_of("another"), sub="thief", taskId="thief"),
            replace(event(1, body=body_of("thief"), sub="thief", taskId="thief"), body=b"{}"),
        ):
            with pytest.raises(Unauthentic):
                begin(receiver, refused)
        assert isinstance(begin(receiver, event(1)), Claimed)


def test_a_token_that_is_used_for_something_else_is_a_replay() -> None:
    with receiving(EXPECTED) as receiver:
        begin(receiver, event(1, jti="same"))
        with pytest.raises(Replayed):
            begin(receiver, event(2, jti="same"))


def test_both_signatures_of_one_message_have_one_effect() -> None:
    """ECDSA is malleable: (r, s) and (r, n - s) are both good. The token's id makes them one."""
    request = event(1)
    token = dict(request.headers)["Authorization"].removeprefix("Bearer ")
    signed_part, _, signature = token.rpartition(".")
    raw = base64url_decode(signature)
    mirrored = raw[:32] + (ORDER - int.from_bytes(raw[32:])).to_bytes(32)
    twin = replace(request, headers=tuple(good_headers(f"{signed_part}.{encode(mirrored)}")))
    with receiving(EXPECTED) as receiver:
        claimed = begin(receiver, request)
        assert isinstance(claimed, Claimed)
        settle(receiver, claimed)
        assert isinstance(begin(receiver, twin), Repeated)


def test_a_challenge_is_answered_while_something_is_expected() -> None:
    with receiving(EXPECTED) as receiver:
        answer = begin(receiver, signed(CHALLENGE, challenge=True))
    assert isinstance(answer, VerifiedChallenge)
    assert answer.challenge == CHALLENGE["challenge"]


def test_a_request_that_is_not_authentic_leaves_no_entry_in_the_inbox() -> None:
    def fetch() -> bytes:
        raise Unreachable("down")

    with receiving(EXPECTED, keys=JwksCache(fetch)) as receiver:
        with pytest.raises(KeysUnavailable):
            begin(receiver, event(1))
        assert receiver.inbox.after(0) == ()
        fixed = replace(receiver, keys=JwksCache(lambda: b""))
        with pytest.raises(KeysUnavailable):
            begin(fixed, event(1))


def test_events_of_a_task_are_told_apart_by_number_whatever_order_they_come_in() -> None:
    with receiving(EXPECTED) as receiver:
        for number in (3, 1, 2):
            claimed = begin(receiver, event(number))
            assert isinstance(claimed, Claimed)
            finish(receiver, claimed)
    assert [entry.outcome for entry in receiver.inbox.after(0)] == ["accepted", "late", "late"]
    assert [(line.task_id, line.event_number) for line in receiver.inbox.tasks()] == [(TASK, 3)]
