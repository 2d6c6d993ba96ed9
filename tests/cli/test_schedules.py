"""The commands for schedules, with Scheduler and SQS by moto, whose schedules are those of a built template."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws

from a2a_serverless.domain.queue_messages import TickMessage, from_json
from a2a_serverless.domain.schedules import Schedule
from a2a_serverless_tools.operators.schedules import ScheduleAdmin
from a2a_serverless_tools.stack.settings import add_schedules
from tests.adapters.clouds import session
from tests.cli.shell import Shell
from tests.client.deployment import Deployment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless_tools.operators.deployed import StackName
    from tests.cli.shell import Done

MORNING = Schedule("morning", "0 7 ? * MON-FRI *", "Good morning.", "Europe/Berlin")
HOURLY = Schedule("hourly", "0 * * * ? *", "Work.", owner="alice", tenant="acme")
NOW = 1_790_000_000_000  # Monday, 2026-09-21T14:13:20Z


class Clock:
    def now(self) -> int:
        return NOW

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


@dataclass
class Scene:
    """A shell, and the account of an operator."""

    shell: Shell = field(default_factory=lambda: Shell(Deployment()))

    def __post_init__(self) -> None:
        self.client: Any = partial(session().client)
        self.queue = self.client("sqs").create_queue(QueueName="work")["QueueUrl"]
        self.shell.schedules = self.admin

    def admin(self, stack: StackName) -> ScheduleAdmin:
        return ScheduleAdmin(self.client, stack.name, Clock(), self.queue)

    def deploy(self, *schedules: Schedule) -> None:
        template: dict[str, Any] = {"Resources": {}}
        agents = [{"id": "digest", "schedules": [_described(one) for one in schedules]}]
        add_schedules(template, agents)
        scheduler = self.client("scheduler")
        scheduler.create_schedule_group(Name="a2a-serverless")
        for made in template["Resources"].values():
            if made["Type"] == "AWS::Scheduler::Schedule":
                target = made["Properties"]["Target"] | {"Arn": "arn:aws:sqs:us-east-1:123456789012:work"}
                target |= {"RoleArn": "arn:aws:iam::123456789012:role/schedules"}
                target |= {"DeadLetterConfig": {"Arn": "arn:aws:sqs:us-east-1:123456789012:dead"}}
                properties = made["Properties"] | {"GroupName": "a2a-serverless", "Target": target}
                scheduler.create_schedule(**properties)

    def stored(self, name: str) -> dict[str, Any]:
        found = self.client("scheduler").get_schedule(GroupName="a2a-serverless", Name=name)
        changing = ("ResponseMetadata", "LastModificationDate")
        return {field: value for field, value in found.items() if field not in changing}

    def run(self, *words: str) -> Done:
        return self.shell.run("schedules", *words)


def _described(schedule: Schedule) -> dict[str, Any]:
    return {name: getattr(schedule, name) for name in Schedule.__slots__}


@pytest.fixture
def scene() -> Iterator[Scene]:
    with mock_aws():
        yield Scene()


def test_the_schedules_are_listed_with_their_next_times(scene: Scene) -> None:
    scene.deploy(MORNING, HOURLY)
    assert scene.run("list").out == (
        "digest  hourly   enabled  0 * * * ? *        UTC            2026-09-21T15:00:00Z\n"
        "digest  morning  enabled  0 7 ? * MON-FRI *  Europe/Berlin  2026-09-22T05:00:00Z\n"
    )
    (hourly, morning) = json.loads(scene.run("list", "--json").out)["schedules"]
    assert morning == {
        "agent": "digest",
        "schedule": "morning",
        "state": "enabled",
        "cron": "0 7 ? * MON-FRI *",
        "zone": "Europe/Berlin",
        "next": ["2026-09-22T05:00:00Z", "2026-09-23T05:00:00Z", "2026-09-24T05:00:00Z"],
    }
    assert hourly["next"][0] == "2026-09-21T15:00:00Z"


def test_a_stack_without_schedules_has_none(scene: Scene) -> None:
    done = scene.run("list")
    assert (done.code, done.out) == (0, "")
    assert "There are no schedules" in done.err
    assert json.loads(scene.run("list", "--json").out) == {"schedules": []}


def test_a_paused_schedule_keeps_all_but_its_state_until_it_is_resumed(scene: Scene) -> None:
    scene.deploy(MORNING, HOURLY)
    before = scene.stored("digest.morning")
    done = scene.run("pause", "digest", "morning")
    assert done.out == "digest  morning  paused  0 7 ? * MON-FRI *  Europe/Berlin\n"
    assert scene.stored("digest.morning") == before | {"State": "DISABLED"}
    assert json.loads(scene.run("list", "--json").out)["schedules"][1]["next"] == []
    assert json.loads(scene.run("resume", "digest", "morning", "--json").out)["state"] == "enabled"
    assert scene.stored("digest.morning") == before
    assert scene.stored("digest.hourly")["State"] == "ENABLED"


def test_a_schedule_is_played_now_also_while_it_is_paused(scene: Scene) -> None:
    scene.deploy(HOURLY)
    scene.run("pause", "digest", "hourly")
    done = scene.run("run", "digest", "hourly", "--json")
    assert json.loads(done.out)["scheduledTime"] == "2026-09-21T14:13:20Z"
    (message,) = scene.client("sqs").receive_message(QueueUrl=scene.queue)["Messages"]
    assert from_json(json.loads(message["Body"])) == TickMessage(HOURLY.key("digest"), NOW)


@pytest.mark.parametrize("command", ["pause", "resume", "run"])
def test_an_unknown_schedule_is_named_with_what_helps(command: str, scene: Scene) -> None:
    scene.deploy(HOURLY)
    done = scene.run(command, "digest", "nightly")
    assert done.code == 1
    assert "the agent 'digest' has no schedule 'nightly' in the stack a2a-serverless" in done.err
    assert "`schedules list`" in done.err
