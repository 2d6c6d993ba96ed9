from dataclasses import replace

import pytest

from a2a_webhook_receiver.errors import UnknownTask, WrongToken
from a2a_webhook_receiver.expectations import Expectation, Presented, WithStaticToken, digest, match
from a2a_webhook_receiver.receive import register_token
from tests.webhook_receiver.sending import receiving
from vectors.cases import AUDIENCE, NOW

TASK_AND_TOKEN = Expectation("e-1", NOW + 1, task_id="task", token_digest=digest("token"))
ONLY_TOKEN = Expectation("e-2", NOW + 1, token_digest=digest("token"))
ONLY_TASK = Expectation("e-3", NOW + 1, task_id="task")
SHOWN = Presented("task", "token", None)


def test_an_expectation_names_a_task_or_a_token() -> None:
    with pytest.raises(ValueError, match="a task, a token, or both"):
        Expectation("e", NOW)


def test_a_secret_is_kept_as_its_hash_only() -> None:
    assert "token" not in repr(ONLY_TOKEN).replace("token_digest", "")
    assert ONLY_TOKEN.token_digest == digest("token")


@pytest.mark.parametrize("expectation", [TASK_AND_TOKEN, ONLY_TOKEN, ONLY_TASK])
def test_a_notification_meets_the_expectation_that_fits(expectation: Expectation) -> None:
    assert match(SHOWN, [expectation], NOW) is expectation


def test_an_expectation_that_names_the_task_goes_before_one_that_does_not() -> None:
    assert match(SHOWN, [ONLY_TOKEN, TASK_AND_TOKEN], NOW) is TASK_AND_TOKEN
    assert match(SHOWN, [TASK_AND_TOKEN, ONLY_TOKEN], NOW) is TASK_AND_TOKEN


def test_a_token_that_is_bound_to_a_task_is_good_for_no_other() -> None:
    with pytest.raises(UnknownTask):
        match(replace(SHOWN, task_id="another"), [ONLY_TOKEN.bound_to("task")], NOW)


def test_a_wrong_token_is_called_that_only_for_a_task_that_we_know() -> None:
    with pytest.raises(WrongToken):
        match(replace(SHOWN, token="wrong"), [TASK_AND_TOKEN], NOW)
    with pytest.raises(UnknownTask):
        match(replace(SHOWN, token="wrong"), [ONLY_TOKEN], NOW)


@pytest.mark.parametrize(("token", "why"), [(None, "it has no token"), ("wrong", "its token is not registered")])
def test_a_missing_token_and_an_unknown_one_have_different_reasons(token: str | None, why: str) -> None:
    with pytest.raises(UnknownTask, match=why):
        match(Presented("task", token, None), [ONLY_TOKEN], NOW)


def test_a_token_with_half_a_character_is_just_wrong() -> None:
    with pytest.raises(WrongToken):
        match(replace(SHOWN, token="\ud800"), [TASK_AND_TOKEN], NOW)


def test_a_static_token_is_good_for_any_number_of_tasks_and_another_token_is_not() -> None:
    with receiving() as receiver:
        kept = WithStaticToken(receiver.expectations, "a-token-for-all-tasks")
        for task_id in ("t-1", "t-2"):
            met = match(Presented(task_id, "a-token-for-all-tasks", None), kept.find(task_id, None, NOW), NOW)
            assert kept.bind(met, task_id)
        with pytest.raises(UnknownTask):
            match(Presented("t-3", "another", None), kept.find("t-3", digest("another"), NOW), NOW)
        assert kept.any_open(NOW)


def test_beside_a_static_token_registered_ones_are_bound_to_their_tasks() -> None:
    with receiving() as receiver:
        kept = WithStaticToken(receiver.expectations, "a-token-for-all-tasks")
        kept.add(ONLY_TOKEN)
        met = match(SHOWN, kept.find("task", digest("token"), NOW), NOW)
        assert (met.id, kept.bind(met, "task"), kept.bind(met, "another")) == ("e-2", True, False)


def test_a_registered_token_is_good_for_the_first_task_that_comes_with_it_until_it_expires() -> None:
    with receiving(expectation_seconds=60) as receiver:
        config = register_token(receiver)
        assert config["url"] == AUDIENCE
        shown = Presented("task", config["token"], None)
        kept = receiver.expectations.find("task", shown.token_digest, NOW)
        assert match(shown, kept, NOW).expires == NOW + 60_000
        assert receiver.expectations.find("task", shown.token_digest, NOW + 60_000) == ()
