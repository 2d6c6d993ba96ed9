"""Webhook configurations: what may be registered, what is stored of it, and how one goes away."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from a2a_serverless.domain import cursors
from a2a_serverless.domain.cursors import Cursor, CursorState, Verification
from a2a_serverless.domain.decisions import GRACE_MS
from a2a_serverless.domain.errors import InvalidParams, TaskNotFound, TooManyRequests
from a2a_serverless.domain.model import DAY_MS
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.push_configs import PushConfig
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.protocol.v1 import AuthenticationInfo, TaskPushNotificationConfig
from a2a_serverless.services import webhooks
from a2a_serverless.services.webhook_statuses import list_deliveries
from tests.echo import Writer
from tests.faults.plans import At, Count, kill_at
from tests.world import HOOK, ME, World, configured, webhook

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "s3cret-token"
CREDENTIALS = "dXNlcjpwYXNz"
OTHER_HOOK = "https://other.example.com/a2a"
TRUSTING = EgressPolicy(trusted_domains=("example.com",))
Act: TypeAlias = "Callable[[World, str], Callable[[], int]]"


def world_with_task(**fields: Any) -> tuple[World, str]:
    """A world in which nothing happens by itself, and a task in it."""
    world = World([Writer().agent], **fields)
    task = world.send("hello", push=False)
    world.queue.clear()
    return world, task.id


def add(world: World, task_id: str, request: TaskPushNotificationConfig) -> PushConfig:
    return webhooks.add(world.service.webhooks(), ME.key(task_id), "echo", request, "1.0")


def delete(world: World, task_id: str, config_id: str) -> None:
    webhooks.delete(world.service.webhooks(), ME.key(task_id), "echo", config_id)


def refusal(world: World, task_id: str, request: TaskPushNotificationConfig) -> list[str]:
    """The names of the fields for which the webhook is refused."""
    with pytest.raises(InvalidParams) as refused:
        add(world, task_id, request)
    assert world.table.list_configs(ME.key(task_id)) == []
    return [violation.field for violation in refused.value.violations]


# ---- What is stored


@pytest.mark.requirement(16, 117)
def test_a_webhook_is_stored_with_its_secrets_sealed_and_enqueued_at_once() -> None:
    world, task_id = world_with_task()
    config = add(
        world,
        task_id,
        TaskPushNotificationConfig(
            url=HOOK,
            id="hook",
            token=SECRET,
            authentication=AuthenticationInfo(scheme="Basic", credentials=CREDENTIALS),
        ),
    )
    key = ME.key(task_id)
    assert world.table.list_configs(key) == [config]
    assert config == PushConfig(
        config_id="hook",
        url=HOOK,
        version="1.0",
        incarnation=config.incarnation,
        created_at=world.now,
        scheme="Basic",
        token=config.token,
        credentials=config.credentials,
    )
    assert SECRET not in str(config.token)
    assert CREDENTIALS not in str(config.credentials)
    assert webhooks.show(task_id, config) == TaskPushNotificationConfig(
        id="hook", task_id=task_id, url=HOOK, authentication=AuthenticationInfo(scheme="Basic")
    ), "a client sees no secret"
    assert world.table.list_cursors(key) == [
        Cursor("hook", config.incarnation, start=1, position=0, due_at=world.now + GRACE_MS)
    ]
    assert [message for _, message in world.queue.waiting] == [DeliveryMessage(key, "hook")]
    assert world.table.read_head(key).head.push


def test_a_webhook_without_an_id_gets_one() -> None:
    world, task_id = world_with_task()
    ids = {add(world, task_id, TaskPushNotificationConfig(url=HOOK)).config_id for _ in range(2)}
    assert len(ids) == 2
    assert {config.config_id for config in world.table.list_configs(ME.key(task_id))} == ids


def test_a_webhook_that_is_added_later_begins_at_the_last_event() -> None:
    world, task_id = world_with_task()
    world.send("more", push=False, task_id=task_id)
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook"))
    assert world.table.get_cursor(ME.key(task_id), "hook").start == 2


@pytest.mark.requirement(97, 117)
def test_rule_10_secrets_are_bound_to_their_task_and_configuration() -> None:
    world, task_id = world_with_task()
    config = add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook", token=SECRET))
    sealer = world.service.webhooks().sealer
    key = ME.key(task_id)
    assert sealer.open(str(config.token), webhooks.sealing_context(key, "hook")) == SECRET
    for context in (
        webhooks.sealing_context(key, "other"),
        webhooks.sealing_context(ME.key("other"), "hook"),
        webhooks.sealing_context(key._replace(owner="other"), "hook"),
    ):
        with pytest.raises(ValueError, match="another context"):
            sealer.open(str(config.token), context)


@pytest.mark.requirement(122)
def test_rule_10_no_representation_and_no_log_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    world, task_id = world_with_task()
    request = TaskPushNotificationConfig(
        url=HOOK, id="hook", token=SECRET, authentication=AuthenticationInfo(scheme="Basic", credentials=CREDENTIALS)
    )
    config = add(world, task_id, request)
    world.settle()
    shown = [repr(request), repr(config), str(config), repr(world.table.list_cursors(ME.key(task_id))), caplog.text]
    shown += [repr(world.table.list_attempts(ME.key(task_id))), str(world.queue.waiting)]
    sealed = [str(config.token), str(config.credentials)]
    assert len(world.receiver.posts) > 1
    assert not [text for text in shown for secret in (SECRET, CREDENTIALS, *sealed) if secret in text]


def test_rule_10_a_refusal_does_not_repeat_a_secret() -> None:
    world, task_id = world_with_task()
    with pytest.raises(InvalidParams) as refused:
        add(
            world,
            task_id,
            TaskPushNotificationConfig(
                url="http://x/",
                token=f"{SECRET}\n",
                authentication=AuthenticationInfo(scheme="", credentials=f"{CREDENTIALS}\n"),
            ),
        )
    text = f"{refused.value} {refused.value.violations}"
    assert SECRET not in text
    assert CREDENTIALS not in text


# ---- What may be registered


@pytest.mark.requirement(36, 117)
@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"id": "x" * 129}, ["id"]),
        ({"id": "a b"}, ["id"]),
        ({"id": "漢"}, ["id"]),
        ({"token": "a\r\nX-Evil: 1"}, ["token"]),
        ({"token": "x" * 4097}, ["token"]),
        ({"token": " padded "}, ["token"]),
        ({"scheme": "Basic"}, ["authentication.scheme"]),
        ({"scheme": "Digest"}, ["authentication.scheme"]),
        ({"credentials": "abc"}, ["authentication.scheme"]),
        ({"scheme": "Bea rer", "credentials": "abc"}, ["authentication.scheme"]),
        ({"scheme": "", "credentials": "abc"}, ["authentication.scheme"]),
        ({"scheme": "Basic", "credentials": "a\nb"}, ["authentication.credentials"]),
        ({"url": "http://hooks.example.com/"}, ["url"]),
        ({"url": "https://127.0.0.1/"}, ["url"]),
        ({"url": "https://user@hooks.example.com/"}, ["url"]),
        ({"url": ""}, ["url"]),
        ({"url": "https://hooks.example.com./a2a"}, ["url"]),
    ],
)
def test_rule_09_a_bad_field_is_refused_by_name(fields: dict[str, str], wrong: list[str]) -> None:
    world, task_id = world_with_task()
    assert refusal(world, task_id, webhook(**{"url": HOOK, **fields})) == wrong


def test_every_bad_field_is_named_at_once() -> None:
    world, task_id = world_with_task()
    request = TaskPushNotificationConfig(
        url="ftp://x", id="a b", token="a\nb", authentication=AuthenticationInfo(scheme="Basic", credentials="a\nb")
    )
    assert sorted(refusal(world, task_id, request)) == ["authentication.credentials", "id", "token", "url"]


@pytest.mark.parametrize(
    "fields",
    [
        {"scheme": "Bearer"},
        {"scheme": "bearer"},
        {"scheme": "Basic", "credentials": "dXNlcjpwYXNz"},
        {"scheme": "ApiKey", "credentials": "id=1, key=2"},
        {"token": "x" * 4096},
        {"id": "~" * 128},
    ],
)
def test_a_webhook_with_supported_fields_is_registered(fields: dict[str, str]) -> None:
    world, task_id = world_with_task()
    request = webhook(**{"url": HOOK, **fields})
    assert add(world, task_id, request).scheme == fields.get("scheme")


def test_a_task_takes_twenty_webhooks_and_no_more() -> None:
    world, task_id = world_with_task(policy=TRUSTING)
    for number in range(20):
        add(world, task_id, TaskPushNotificationConfig(url=HOOK, id=f"hook-{number}"))
    with pytest.raises(InvalidParams, match="at most 20"):
        add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="one-more"))
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook-7"))
    assert len(world.table.list_configs(ME.key(task_id))) == 20


def calls_of_a_registration() -> list[str]:
    """The calls of ports that a registration makes."""
    calls = Count()
    world, task_id = world_with_task(policy=TRUSTING, faults=calls)
    before = len(calls.calls)
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook"))
    return calls.calls[before:]


@pytest.mark.parametrize("number", range(1, len(calls_of_a_registration()) + 1))
def test_a_webhook_that_is_registered_while_its_task_goes_on_begins_at_the_last_event_and_at_once(number: int) -> None:
    """A client's message comes, and the queues are worked off, at some moment of the registration."""

    def meanwhile() -> None:
        world.send("more", task_id=task_id, push=False)
        world.wait(100)

    faults = At(late=False, what=meanwhile)
    world, task_id = world_with_task(policy=TRUSTING, faults=faults)
    key = ME.key(task_id)
    last = world.table.read_head(key).last
    faults.after_now(number)
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook"))
    is_before = number <= calls_of_a_registration().index("table.add_config") + 1
    assert world.table.get_cursor(key, "hook").start == (world.table.read_head(key).last if is_before else last)
    world.wait(100)
    assert world.receiver.posts, "nobody waits for the sweeper"


@pytest.mark.parametrize("number", range(1, len(calls_of_a_registration()) + 1))
def test_clients_that_register_at_the_same_time_get_twenty_webhooks_and_no_more(number: int) -> None:
    """Somebody else registers the twentieth at some moment of our registration."""

    def meanwhile() -> None:
        add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="theirs"))

    faults = At(late=False, what=meanwhile)
    world, task_id = world_with_task(policy=TRUSTING, faults=faults)
    for count in range(19):
        add(world, task_id, TaskPushNotificationConfig(url=HOOK, id=f"hook-{count}"))
    faults.after_now(number)
    with suppress(InvalidParams):
        add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="ours"))
    assert faults.met
    assert len(world.table.list_configs(ME.key(task_id))) == 20


def test_an_owner_registers_so_many_webhooks_a_day_and_others_are_not_held_back() -> None:
    world, task_id = world_with_task()
    hooks = replace(world.service.webhooks(), per_day=3)
    world.service = world.service._replace(webhooks=lambda: hooks)
    for number in range(3):
        add(world, task_id, TaskPushNotificationConfig(url=HOOK, id=f"hook-{number}"))
    before = list(world.table.feed)
    with pytest.raises(TooManyRequests, match="3 push notification configurations a day"):
        add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="one-more"))
    with pytest.raises(TooManyRequests):
        world.send("hello")
    assert world.table.feed == before, "a send that asks for one more makes no task"
    webhooks.new_config(
        world.service.webhooks(),
        replace(ME, owner="somebody else").key("task"),
        TaskPushNotificationConfig(url=HOOK),
        "1.0",
    )
    world.now += -world.now % DAY_MS - 3_600_600
    with pytest.raises(TooManyRequests) as refused:
        add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="one-more"))
    assert refused.value.retry_after_s == 3_601
    world.now += 3_601_000
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="one-more"))


def test_rule_09_only_allowed_domains_may_be_registered() -> None:
    world, task_id = world_with_task(policy=EgressPolicy(allowed_domains=("example.com",)))
    assert refusal(world, task_id, TaskPushNotificationConfig(url="https://hooks.example.org/")) == ["url"]
    assert add(world, task_id, TaskPushNotificationConfig(url=HOOK)).url == HOOK


def test_rule_09_the_deployment_s_own_host_is_refused_but_for_the_address_of_a_call() -> None:
    world, task_id = world_with_task(policy=TRUSTING)
    own = ("https://api.example.com",)
    hooks = replace(world.service.webhooks(), own_urls=lambda: own)
    world.service = world.service._replace(webhooks=lambda: hooks)
    assert refusal(world, task_id, TaskPushNotificationConfig(url="https://api.example.com/echo")) == ["url"]
    request = world.request("hello", push=False)
    with pytest.raises(InvalidParams):
        world.sent(
            configured(
                request, task_push_notification_config=TaskPushNotificationConfig(url="https://api.example.com/echo")
            )
        )
    assert add(world, task_id, TaskPushNotificationConfig(url="https://api.example.com/callbacks/a")).url


def test_a_trusted_host_needs_no_challenge() -> None:
    world, task_id = world_with_task(policy=EgressPolicy(trusted_domains=("example.com",)))
    add(world, task_id, TaskPushNotificationConfig(url=HOOK))
    assert [cursor.verification for cursor in world.table.list_cursors(ME.key(task_id))] == [Verification.TRUSTED]


def test_a_host_on_this_machine_is_challenged_as_any_other() -> None:
    world, task_id = world_with_task(policy=EgressPolicy(local_allow=("127.0.0.1:*",)))
    add(world, task_id, TaskPushNotificationConfig(url="http://127.0.0.1:9000/hook"))
    assert [cursor.verification for cursor in world.table.list_cursors(ME.key(task_id))] == [Verification.UNVERIFIED]


def test_without_ownership_checks_every_host_is_trusted() -> None:
    world, task_id = world_with_task()
    hooks = replace(world.service.webhooks(), ownership=False)
    webhooks.add(hooks, ME.key(task_id), "echo", TaskPushNotificationConfig(url=HOOK), "1.0")
    assert [cursor.verification for cursor in world.table.list_cursors(ME.key(task_id))] == [Verification.TRUSTED]


# ---- Read


@pytest.mark.requirement(17, 18)
def test_a_webhook_can_be_read_and_the_first_without_its_id() -> None:
    world, task_id = world_with_task()
    second, first = (add(world, task_id, TaskPushNotificationConfig(url=HOOK, id=name)) for name in ("b", "a"))
    hooks, key = world.service.webhooks(), ME.key(task_id)
    assert webhooks.get(hooks, key, "echo", "b") == second
    assert webhooks.get(hooks, key, "echo", None) == first
    assert webhooks.list_configs(hooks, key, "echo") == [first, second]


@pytest.mark.requirement(17)
def test_a_webhook_that_is_not_there_is_not_found() -> None:
    world, task_id = world_with_task()
    hooks, key = world.service.webhooks(), ME.key(task_id)
    with pytest.raises(TaskNotFound, match="push notification configuration"):
        webhooks.get(hooks, key, "echo", "hook")
    with pytest.raises(TaskNotFound, match="push notification configuration"):
        webhooks.get(hooks, key, "echo", None)
    assert webhooks.list_configs(hooks, key, "echo") == []


# ---- Delete and replace


@pytest.mark.requirement(19)
def test_deleting_takes_configuration_and_cursor_away_and_may_be_repeated() -> None:
    world, task_id = world_with_task()
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook"))
    delete(world, task_id, "hook")
    delete(world, task_id, "hook")
    key = ME.key(task_id)
    assert (world.table.list_configs(key), world.table.list_cursors(key)) == ([], [])


@pytest.mark.parametrize("number", range(1, 8))
@pytest.mark.parametrize("leased", [False, True])
def test_a_delete_leaves_the_webhook_that_is_registered_under_its_id_meanwhile(number: int, leased: bool) -> None:  # noqa: FBT001
    added: list[PushConfig] = []

    def meanwhile() -> None:
        added.append(add(world, task_id, TaskPushNotificationConfig(url=OTHER_HOOK, id="hook")))

    faults = At(late=True, what=meanwhile)
    world, task_id = world_with_task(policy=TRUSTING, faults=faults)
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook"))
    key, claimed_at = ME.key(task_id), world.now
    if leased:
        cursor = world.table.get_cursor(key, "hook")
        world.table.move_cursor(key, cursor, cursors.claim_lease(cursor, "other", now=world.now))
    faults.after_now(number)
    delete(world, task_id, "hook")
    kept = world.table.list_configs(key)
    assert kept == (added if number > 1 else []), "one that came before the delete has read its cursor is deleted"
    assert [cursor.incarnation for cursor in world.table.list_cursors(key)] == [one.incarnation for one in kept]
    assert not leased or world.now >= claimed_at + cursors.CURSOR_LEASE_MS


def deleting(world: World, task_id: str) -> Callable[[], int]:
    """A client that deletes the webhook; gives the time of the answer."""
    hooks = world.service.webhooks()

    def act() -> int:
        webhooks.delete(hooks, ME.key(task_id), "echo", "hook")
        return world.now

    return act


def replacing(world: World, task_id: str) -> Callable[[], int]:
    """A client that puts another webhook in its place; gives the time of the answer."""
    hooks = world.service.webhooks()

    def act() -> int:
        webhooks.add(hooks, ME.key(task_id), "echo", TaskPushNotificationConfig(url=OTHER_HOOK, id="hook"), "1.0")
        return world.now

    return act


@pytest.mark.parametrize("act", [deleting, replacing])
@pytest.mark.parametrize("takes", [1_000, 9_000, 14_900])
def test_rule_08_a_delete_and_a_replacement_wait_out_the_attempt_that_is_under_way(act: Act, takes: int) -> None:
    world, task_id = world_with_task(policy=TRUSTING)
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook"))
    begun = world.now
    world.receiver.takes = takes
    notifier = world.notifier(DeliveryMessage(ME.key(task_id), "hook"))
    answers: list[int] = []
    acting = world.later(500, lambda: answers.append(act(world, task_id)()))
    world.together(notifier, acting)
    (answered,) = answers
    assert [got.at for got in world.receiver.posts] == [begun]
    assert begun + takes <= answered <= begun + takes + 200


@pytest.mark.parametrize("act", [deleting, replacing])
def test_rule_08_a_dead_notifier_s_lease_holds_a_delete_up_no_longer_than_it_lasts(act: Act) -> None:
    world, task_id = world_with_task(policy=TRUSTING)
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook"))
    key, begun = ME.key(task_id), world.now
    cursor = world.table.get_cursor(key, "hook")
    assert world.table.move_cursor(key, cursor, cursors.claim_lease(cursor, "dead", now=begun))
    world.together(act(world, task_id))
    answered = world.now
    assert begun + cursors.CURSOR_LEASE_MS <= answered <= begun + cursors.CURSOR_LEASE_MS + 200


def test_a_delete_without_an_attempt_under_way_answers_at_once() -> None:
    world, task_id = world_with_task()
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook"))
    begun = world.now
    delete(world, task_id, "hook")
    assert world.now == begun


def test_a_replacement_begins_anew_under_another_incarnation() -> None:
    world, task_id = world_with_task(policy=TRUSTING)
    first = add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook", token=SECRET))
    world.settle()
    second = add(world, task_id, TaskPushNotificationConfig(url=OTHER_HOOK, id="hook"))
    key = ME.key(task_id)
    assert world.table.list_configs(key) == [second]
    assert (second.url, second.token) == (OTHER_HOOK, None)
    assert first.incarnation != second.incarnation
    cursor = world.table.get_cursor(key, "hook")
    assert (cursor.incarnation, cursor.position, cursor.start) == (second.incarnation, 0, 7)
    before = len(world.receiver.posts)
    world.settle()
    assert [got.n for got in world.receiver.posts[before:]] == [7]


def test_rule_08_a_late_notifier_cannot_bring_a_deleted_webhook_back() -> None:
    world, task_id = world_with_task(policy=TRUSTING)
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook"))
    key = ME.key(task_id)
    cursor = world.table.get_cursor(key, "hook")
    claimed = cursors.claim_lease(cursor, "late", now=world.now)
    delete(world, task_id, "hook")
    assert not world.table.move_cursor(key, cursor, claimed)
    assert world.table.list_cursors(key) == []


def calls_of_a_replacement() -> int:
    """How many calls of ports a replacement makes."""
    calls = Count()
    world, task_id = world_with_task(policy=TRUSTING, faults=calls)
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook"))
    before = len(calls.calls)
    add(world, task_id, TaskPushNotificationConfig(url=OTHER_HOOK, id="hook"))
    return len(calls.calls) - before


def calls_of_a_delete() -> int:
    """How many calls of ports a delete makes."""
    calls = Count()
    world, task_id = world_with_task(policy=TRUSTING, faults=calls)
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook"))
    before = len(calls.calls)
    delete(world, task_id, "hook")
    return len(calls.calls) - before


def killed(number: int, *, late: bool, leased: bool, act: Callable[[World, str], object]) -> tuple[World, str]:
    """A world in which ``act`` on a webhook died at a call; ``leased``: while an attempt of a dead notifier stood."""
    faults = kill_at(late=late)
    world, task_id = world_with_task(policy=TRUSTING, faults=faults)
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook"))
    if leased:
        cursor = world.table.get_cursor(ME.key(task_id), "hook")
        world.table.move_cursor(ME.key(task_id), cursor, cursors.claim_lease(cursor, "dead", now=world.now))
    faults.after_now(number)
    world.survives(lambda: act(world, task_id))
    assert world.kills == 1
    faults.after_now()
    return world, task_id


@pytest.mark.parametrize("leased", [False, True], ids=["idle", "leased"])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, calls_of_a_replacement() + 1))
def test_rule_08_a_death_anywhere_in_a_replacement_leaves_the_old_or_the_new_webhook_alive(
    number: int,
    late: bool,  # noqa: FBT001
    leased: bool,  # noqa: FBT001
) -> None:
    world, task_id = killed(number, late=late, leased=leased, act=replace_it)
    key = ME.key(task_id)
    (config,) = world.table.list_configs(key)
    (cursor,) = world.table.list_cursors(key)
    assert (cursor.state, cursor.incarnation) == (CursorState.ACTIVE, config.incarnation)
    world.queue.clear()
    world.run(key)
    world.settle()
    assert world.table.get_cursor(key, "hook").position == world.table.read_head(key).last
    told = [got.n for got in world.receiver.effects("hook")]
    assert told == [1, 3, 4, 5, 6, 7], f"of {config.url}"
    assert {json.loads(got.headers["Authorization"][7:])["aud"] for got in world.receiver.posts} == {config.url}
    add(world, task_id, TaskPushNotificationConfig(url=OTHER_HOOK, id="hook"))
    world.settle()
    assert world.table.get_config(key, "hook").url == OTHER_HOOK
    assert world.table.get_cursor(key, "hook").position == 7


def replace_it(world: World, task_id: str) -> None:
    add(world, task_id, TaskPushNotificationConfig(url=OTHER_HOOK, id="hook"))


@pytest.mark.parametrize("leased", [False, True], ids=["idle", "leased"])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, calls_of_a_delete() + 1))
def test_rule_08_a_death_anywhere_in_a_delete_leaves_the_webhook_alive_or_gone(
    number: int,
    late: bool,  # noqa: FBT001
    leased: bool,  # noqa: FBT001
) -> None:
    world, task_id = killed(number, late=late, leased=leased, act=lambda world, task: delete(world, task, "hook"))
    key = ME.key(task_id)
    listed = [standing.cursor.state for standing in list_deliveries(world.table, world.table, key, "echo")]
    assert listed in ([CursorState.ACTIVE], [])
    world.run(key)
    world.settle()
    assert [got.n for got in world.receiver.effects("hook")] == ([1, 3, 4, 5, 6, 7] if listed else [])
    delete(world, task_id, "hook")
    assert (world.table.list_configs(key), world.table.list_cursors(key)) == ([], [])


@pytest.mark.parametrize("number", range(1, calls_of_a_replacement() + 1))
def test_rule_08_a_replacement_waits_also_for_what_another_has_put_there_meanwhile(number: int) -> None:
    """Somebody else replaces the webhook in the middle of our replacement, and is being notified already."""
    claims: list[int] = []

    def meanwhile() -> None:
        add(world, task_id, TaskPushNotificationConfig(url=f"{HOOK}/meanwhile", id="hook"))
        cursor = world.table.get_cursor(key, "hook")
        world.table.move_cursor(key, cursor, cursors.claim_lease(cursor, "other", now=world.now))
        claims.append(world.now)

    faults = At(late=False, what=meanwhile)
    world, task_id = world_with_task(policy=TRUSTING, faults=faults)
    key = ME.key(task_id)
    add(world, task_id, TaskPushNotificationConfig(url=HOOK, id="hook"))
    faults.after_now(number)
    add(world, task_id, TaskPushNotificationConfig(url=OTHER_HOOK, id="hook"))
    (config,) = world.table.list_configs(key)
    waited = world.now >= claims[0] + cursors.CURSOR_LEASE_MS
    assert waited or config.url == f"{HOOK}/meanwhile", "whoever comes last has waited"
