"""A host that answers no challenge gets few of them, whatever number of webhooks an owner registers there."""

from __future__ import annotations

from a2a_serverless.domain.challenges import (
    CHALLENGE_BURST,
    RECHECK_MS,
    WEBHOOKS,
    ChallengeState,
    add_challenge,
    add_webhook,
    next_check_at,
)

NOW = 1_790_000_000_000
DAY_MS = 86_400_000


def test_at_most_twenty_webhooks_wait_for_the_answer_of_a_host() -> None:
    asked, count = ChallengeState(), 0
    while (more := add_webhook(asked)) is not None:
        asked, count = more, count + 1
    assert count == WEBHOOKS == 20


def test_twenty_challenges_are_sent_at_once_and_later_challenges_with_growing_waits() -> None:
    asked, now, sent = ChallengeState(), NOW, list[int]()
    while now < NOW + 3 * DAY_MS:
        after = add_challenge(asked, now)
        if after is None:
            assert add_challenge(asked, asked.next_at - 1) is None
            now = asked.next_at
            continue
        asked = after
        sent.append((now - NOW) // 1000)
    assert sent[:CHALLENGE_BURST] == [0] * 20
    assert sent[CHALLENGE_BURST:] == [30, 150, 750, 2550, 6150, 13350, 27750, 56550, 99750, 171750, 243750]


def test_a_webhook_that_waits_long_checks_earlier_whether_the_host_has_answered() -> None:
    assert next_check_at(ChallengeState(sent=21, next_at=NOW + 5), NOW) == NOW + 5
    assert next_check_at(ChallengeState(sent=28, next_at=NOW + DAY_MS), NOW) == NOW + RECHECK_MS
