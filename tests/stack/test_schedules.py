"""The schedules of agents in the template that the build makes, and what plays them beside the emulator."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ReadTimeoutError
from moto import mock_aws

from a2a_serverless.domain.queue_messages import TickMessage, from_json
from a2a_serverless.domain.schedules import SCHEDULED_TIME_KEYWORD, Schedule
from a2a_serverless.http.api import ANYBODY
from a2a_serverless.testing.schedules import Ticker
from a2a_serverless_tools.operators.schedules import ScheduleAdmin, set_state
from a2a_serverless_tools.project import ProjectError
from a2a_serverless_tools.stack import sam, scheduler
from a2a_serverless_tools.stack.build import build
from a2a_serverless_tools.stack.guarded_emulator import without_keywords
from a2a_serverless_tools.stack.settings import add_schedules
from tests.adapters.clouds import error, session
from tests.functions.template import resources
from tests.stack.projects import HERE, make_project
from tests.stack.test_settings import check_by_cfn_lint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_serverless_tools.stack.paths import Paths

MORNING = Schedule("morning", "0 7 ? * MON-FRI *", "Good morning.", "Europe/Berlin", owner="alice", tenant="acme")
MINUTELY = Schedule("minutely", "* * * * ? *", "Work.")
SCHEDULES = """    schedules=[
        Schedule("morning", "0 7 ? * MON-FRI *", "Good morning.", "Europe/Berlin"),
        Schedule("minutely", "* * * * ? *", "Work."),
    ],
"""
NOW = 1_790_000_000_000  # 2026-09-21T14:13:20Z, a Monday
DAY_MS = 86_400_000


def described(*schedules: Schedule, agent: str = "digest") -> dict[str, Any]:
    fields = Schedule.__slots__
    return {"id": agent, "schedules": [{name: getattr(one, name) for name in fields} for one in schedules]}


def made(*agents: dict[str, Any]) -> dict[str, Any]:
    """The resources that are added for agents."""
    template: dict[str, Any] = {"Resources": {}}
    add_schedules(template, agents)
    return dict(template["Resources"])


def of_type(found: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [one["Properties"] for one in found.values() if one["Type"] == kind]


def test_agents_without_schedules_add_nothing() -> None:
    assert made(described(), described(agent="other")) == {}


def test_each_schedule_has_an_entry_in_one_group_with_its_zone_and_the_queue() -> None:
    found = made(described(MORNING, MINUTELY), described(), described(MINUTELY, agent="other"))
    schedules = of_type(found, "AWS::Scheduler::Schedule")
    assert len(found) == len(schedules) + 2
    assert [one["Name"] for one in schedules] == ["digest.morning", "digest.minutely", "other.minutely"]
    assert {json.dumps(one["GroupName"]) for one in schedules} == {'{"Ref": "Schedules"}'}
    assert of_type(found, "AWS::Scheduler::ScheduleGroup") == [{"Name": {"Ref": "AWS::StackName"}}]
    morning = schedules[0]
    assert (morning["ScheduleExpression"], morning["ScheduleExpressionTimezone"], morning["FlexibleTimeWindow"]) == (
        *("cron(0 7 ? * MON-FRI *)", "Europe/Berlin", {"Mode": "OFF"}),
    )
    assert "State" not in morning, "a deployment leaves it as it is"
    target = morning["Target"]
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600}
    queues = [arn["Fn::GetAtt"][0] for arn in (target["Arn"], target["DeadLetterConfig"]["Arn"])]
    assert queues == ["WorkQueue", "WorkDeadLetters"]
    assert {*queues} <= resources("AWS::SQS::Queue").keys()


def test_the_message_of_a_schedule_has_ids_and_the_time_and_no_text() -> None:
    (target,) = [one["Target"] for one in of_type(made(described(MORNING)), "AWS::Scheduler::Schedule")]
    assert "Good" not in target["Input"]
    body = target["Input"].replace(SCHEDULED_TIME_KEYWORD, "2026-09-21T14:13:20Z")
    assert from_json(json.loads(body)) == TickMessage(MORNING.key("digest"), NOW)


def test_another_text_changes_no_entry_so_a_paused_schedule_stays_paused() -> None:
    other = replace(MORNING, text="Hello.", overlap="allow")
    assert made(described(MORNING)) == made(described(other))
    assert made(described(MORNING)) != made(described(replace(MORNING, zone="UTC")))


def test_the_role_of_the_schedules_sends_to_two_queues_and_only_the_group_may_have_it() -> None:
    (role,) = of_type(made(described(MORNING)), "AWS::IAM::Role")
    ((policy,), (trust,)) = role["Policies"], role["AssumeRolePolicyDocument"]["Statement"]
    queues = [{"Fn::GetAtt": [name, "Arn"]} for name in ("WorkQueue", "WorkDeadLetters")]
    assert policy["PolicyDocument"]["Statement"] == [
        {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": queues}
    ]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert trust["Condition"]["StringEquals"] == {
        "aws:SourceAccount": {"Ref": "AWS::AccountId"},
        "aws:SourceArn": {"Fn::GetAtt": ["Schedules", "Arn"]},
    }


# ---- The build


@pytest.fixture
def project(tmp_path: Path) -> Paths:
    paths = make_project(tmp_path, has_template=False)
    file = paths.root / "my_agents/mine.py"
    text = file.read_text().replace("import Skill", "import Schedule, Skill")
    file.write_text(text.replace("@agent(\n", f"@agent(\n{SCHEDULES}", 1))
    return paths


@pytest.mark.integration
def test_a_project_s_schedules_are_in_its_template_and_in_the_worker_s_manifest(project: Paths) -> None:
    built = build(project, HERE)
    names = [one["Name"] for one in sam.schedules_in(built.template)]
    assert names == ["mine.morning", "mine.minutely"]
    (described_agent,) = json.loads((built.path / "agents.json").read_text())["agents"]["my_agents.mine:mine"]
    assert [one["text"] for one in described_agent["schedules"]] == ["Good morning.", "Work."]
    check_by_cfn_lint(built.path / "template.yaml")


def test_a_wrong_expression_stops_the_build_by_agent_schedule_and_field(project: Paths) -> None:
    file = project.root / "my_agents/mine.py"
    file.write_text(file.read_text().replace("0 7 ? *", "0 25 ? *"))
    with pytest.raises(ProjectError, match=r"'morning' of the agent 'mine': .* hours is from 0 to 23"):
        build(project, HERE)


# ---- Beside the emulator


def test_tasks_of_an_anonymous_deployment_belong_to_its_only_caller() -> None:
    template = {"Resources": made(described(MORNING))}
    (ours,) = sam.schedules_in(sam.with_switches(template, {"ANONYMOUS_ACCESS": "on"}))
    body = json.loads(ours["Target"]["Input"])
    assert (body["tenant"], body["owner"], body["task"]) == (ANYBODY.tenant, ANYBODY.owner, "digest/morning")
    (unchanged,) = sam.schedules_in(sam.with_switches(template, {}))
    assert json.loads(unchanged["Target"]["Input"])["owner"] == "alice"


def test_the_emulator_itself_sends_no_message_with_a_keyword() -> None:
    sent: list[tuple[object, ...]] = []
    send = without_keywords(lambda *about: sent.append(about))
    plain: dict[str, Any] = {"Arn": "arn"}
    for target in (plain, plain | {"Input": SCHEDULED_TIME_KEYWORD}, plain | {"Input": "{}"}):
        send(target, "event", "schedule")
    assert [about[0] for about in sent] == [plain, plain | {"Input": "{}"}]


class Clock:
    """The clock of a test."""

    time = NOW

    def now(self) -> int:
        return self.time

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


@pytest.fixture
def admin() -> Iterator[ScheduleAdmin]:
    """Schedules as the emulator has them: without their zones."""
    with mock_aws():
        client: Any = session().client
        queue = client("sqs").create_queue(QueueName="work")["QueueUrl"]
        client("scheduler").create_schedule_group(Name="stack")
        for one in of_type(made(described(MORNING, MINUTELY)), "AWS::Scheduler::Schedule"):
            arns = {"Arn": "arn:aws:sqs:us-east-1:123456789012:work", "RoleArn": "arn:aws:iam::123456789012:role/r"}
            target = one["Target"] | arns | {"DeadLetterConfig": {"Arn": arns["Arn"]}}
            known = {name: one[name] for name in ("Name", "ScheduleExpression", "FlexibleTimeWindow")}
            client("scheduler").create_schedule(**known, GroupName="stack", Target=target)
        yield ScheduleAdmin(client, "stack", Clock(), queue)


def received(admin: ScheduleAdmin) -> list[TickMessage]:
    found = admin.client("sqs").receive_message(QueueUrl=admin.queue_url, MaxNumberOfMessages=10).get("Messages", [])
    messages = [from_json(json.loads(one["Body"])) for one in found]
    return sorted(message for message in messages if isinstance(message, TickMessage))


def pass_until(admin: ScheduleAdmin, ticker: Ticker, now: int) -> list[TickMessage]:
    assert isinstance(admin.clock, Clock)
    admin.clock.time = now
    scheduler.look(admin, ticker)
    return received(admin)


def test_the_local_scheduler_sends_what_is_due_once_in_its_zone_unless_it_is_paused(admin: ScheduleAdmin) -> None:
    template = {"Resources": made(described(MORNING, MINUTELY))}
    set_state(admin, "digest", "minutely", "DISABLED")
    scheduler.add_zones(admin, template)
    seven = NOW - NOW % DAY_MS + DAY_MS + 5 * 3_600_000  # in Berlin, on Tuesday
    ticker = Ticker(seven - 1000)
    assert pass_until(admin, ticker, seven - 1) == []
    assert pass_until(admin, ticker, seven) == [TickMessage(MORNING.key("digest"), seven)]
    assert pass_until(admin, ticker, seven + 1000) == []
    set_state(admin, "digest", "minutely", "ENABLED")
    assert pass_until(admin, ticker, seven + 60_000) == [TickMessage(MINUTELY.key("digest"), seven + 60_000)]


@pytest.mark.parametrize("failure", [ReadTimeoutError(endpoint_url="http://127.0.0.1"), error("InternalFailure")])
def test_the_local_scheduler_goes_on_after_the_emulator_did_not_answer(
    admin: ScheduleAdmin, failure: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    failures = [failure]

    def client(service: str) -> Any:
        if failures:
            raise failures.pop()
        return admin.client(service)

    minute = NOW - NOW % 60_000 + 60_000
    ticker = Ticker(minute - 1000)
    assert pass_until(replace(admin, client=client), ticker, minute) == []
    assert type(failure).__name__ in capsys.readouterr().err
    assert pass_until(admin, ticker, minute + 1000) == [TickMessage(MINUTELY.key("digest"), minute)]
