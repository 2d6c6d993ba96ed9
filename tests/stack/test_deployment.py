import json
import re
import urllib.request

import pytest
import yaml

from a2a_serverless_tools.stack import local_stack, sam
from tests.observed import asked
from tests.stack.local import LocalStack, eventually

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]


def invocations(stack: LocalStack, function: str) -> list[str]:
    lines = sam.function_log(stack.deployment.endpoint, function)
    return [line for line in lines if line.startswith("REPORT")]


def test_up_says_what_it_does_and_how_long_each_step_took(stack: LocalStack) -> None:
    done = [line for line in stack.said.splitlines() if line.startswith("✓")]
    assert len(done) == 5
    assert all(re.search(r"\d\.\d s\)$", line) for line in done)


def test_the_api_and_the_receiver_answer_beside_the_emulator(stack: LocalStack) -> None:
    assert asked(stack.options.api_url, "agents")["agents"]
    with urllib.request.urlopen(f"{stack.running.receiver.url}/") as answer:
        assert answer.status == 200


def test_the_template_deploys_and_names_what_it_made(stack: LocalStack) -> None:
    assert stack.output("ApiUrl") == f"https://{stack.output('ApiId')}.execute-api.us-east-1.amazonaws.com/live"
    assert stack.output("JwksUrl") == f"{stack.output('ApiUrl')}/.well-known/jwks.json"


def test_the_custom_resource_has_made_the_first_keys(stack: LocalStack) -> None:
    secret = stack.client("secretsmanager").get_secret_value(SecretId=stack.output("KeyRingSecretId"))
    assert json.loads(secret["SecretString"]) != {}


def test_the_rest_api_hands_requests_to_the_api_function(stack: LocalStack) -> None:
    assert asked(stack.deployment.rest_url, "agents")["agents"]


def test_a_new_event_in_the_table_reaches_the_relay_and_nothing_else_does(stack: LocalStack) -> None:
    table = stack.client("dynamodb")
    before = len(invocations(stack, "relay"))
    for sort_key in ("HEAD", "EVENT#000000000001"):
        item = {"pk": {"S": "probe#relay"}, "sk": {"S": sort_key}}
        table.put_item(TableName=stack.output("TableName"), Item=item)
    eventually(lambda: len(invocations(stack, "relay")) > before)
    assert len(invocations(stack, "relay")) == before + 1


@pytest.mark.parametrize(("queue", "function"), [("WorkQueueUrl", "worker"), ("DeliveryQueueUrl", "notifier")])
def test_a_message_in_a_queue_reaches_its_function(stack: LocalStack, queue: str, function: str) -> None:
    before = len(invocations(stack, function))
    stack.client("sqs").send_message(QueueUrl=stack.output(queue), MessageBody=json.dumps({"v": 1, "kind": "probe"}))
    eventually(lambda: len(invocations(stack, function)) > before)


def test_the_sweeper_is_scheduled_each_minute(stack: LocalStack) -> None:
    schedules = stack.client("scheduler")
    names = [schedule["Name"] for schedule in schedules.list_schedules()["Schedules"]]
    sweeper = next(name for name in names if "Sweeper" in name)
    assert schedules.get_schedule(Name=sweeper)["ScheduleExpression"] == "rate(1 minute)"


def test_the_local_stack_is_the_template_with_switches_in_the_environments(stack: LocalStack) -> None:
    built = stack.running.build.template
    sent = stack.client("cloudformation").get_template(StackName=sam.STACK_NAME, TemplateStage="Original")
    here = yaml.safe_load(sent["TemplateBody"])
    switches = local_stack.local_switches(stack.options)
    for name, resource in here["Resources"].items():
        for one in (resource, built["Resources"][name]):
            one.pop("Metadata", None)  # where SAM notes its own ids
        if resource["Type"] == "AWS::Serverless::Function":
            own = built["Resources"][name]["Properties"]
            variables = resource["Properties"].pop("Environment")["Variables"]
            assert variables == own.pop("Environment")["Variables"] | switches
            assert resource["Properties"].pop("CodeUri").startswith("s3://")
            assert own.pop("CodeUri")
    for document in (here, built):  # SAM has sent it along
        assert (
            document["Resources"]["FullObservability"]["Properties"]
            .pop("TemplateURL")
            .endswith(".yaml" if document is built else ".template")
        )
    assert here == built
