"""Alarms and dashboard watch what is really emitted, under exactly that name, and the runbook knows every alarm."""

import json
import re
from typing import Any

import pytest

from a2a_serverless.adapters.logs import FIELDS
from a2a_serverless.domain.metrics import METRICS
from tests.functions.template import ROOT, functions, observability, resources, settings, template

NAMESPACE = "A2AServerless"
BASIC = resources("AWS::CloudWatch::Alarm")
FULL = {
    name: one["Properties"]
    for name, one in observability()["Resources"].items()
    if one["Type"] == "AWS::CloudWatch::Alarm"
}
ALARMS = BASIC | FULL
STACK = {"Ref": "AWS::StackName"}
HANDED = template()["Resources"]["FullObservability"]["Properties"]["Parameters"]
OURS = {name: alarm for name, alarm in ALARMS.items() if alarm.get("Namespace") == NAMESPACE}
RUNBOOKS = {"docs/operate.md": "**Do**", "docs/zh/operate.md": "**处理**"}


def watched(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """The metrics of an alarm: their namespaces, names and dimensions."""
    return [one["MetricStat"]["Metric"] for one in alarm.get("Metrics", []) if "MetricStat" in one] or [alarm]


def emitted() -> set[str]:
    """The names that code counts or measures."""
    places = [*(ROOT / "shared").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
    code = "\n".join(path.read_text() for path in places)
    counted = re.findall(r'(?:metrics\.|(?<!\.)\b)count\(\s*(?:context, [\w.]+, )?"([A-Za-z]+)"', code)
    measured = "".join(re.findall(r"metrics\.record\(\{[^}]*\}", code))
    return {*counted, *re.findall(r'"([A-Za-z]+)":', measured)}


def shown() -> list[list[Any]]:
    """The metrics of the dashboard, without their options."""
    dashboard = observability()["Resources"]["Dashboard"]["Properties"]
    widgets = json.loads(dashboard["DashboardBody"]["Fn::Sub"])["widgets"]
    rows = [row for widget in widgets for row in widget["properties"]["metrics"]]
    return [[word for word in row if isinstance(word, str)] for row in rows]


def test_code_emits_the_metrics_that_are_described_and_no_others() -> None:
    assert emitted() == set(METRICS)


@pytest.mark.parametrize("name", OURS)
def test_an_alarm_of_ours_watches_a_metric_under_its_exact_name_and_dimensions(name: str) -> None:
    assert OURS[name]["MetricName"] in METRICS
    assert OURS[name]["Dimensions"] == [{"Name": "service", "Value": STACK if name in BASIC else {"Ref": "Service"}}]
    assert HANDED["Service"] == STACK


def test_an_alarm_that_every_deployment_has_costs_no_metric_while_nothing_is_wrong() -> None:
    assert all(METRICS[alarm["MetricName"]].fault for name, alarm in OURS.items() if name in BASIC)


def test_the_rest_stands_behind_one_parameter_and_is_handed_what_it_names() -> None:
    rest = template()["Resources"]["FullObservability"]
    assert rest["Condition"] == "Full"
    assert template()["Parameters"]["Observability"]["Default"] == "basic"
    assert set(HANDED) == set(observability()["Parameters"])
    text = (ROOT / "observability.yaml").read_text()
    assert all(f"!Ref {name}" in text or f"${{{name}}}" in text for name in HANDED)


def test_the_functions_write_under_the_namespace_and_service_that_alarms_watch() -> None:
    variables = template()["Globals"]["Function"]["Environment"]["Variables"]
    assert variables["POWERTOOLS_METRICS_NAMESPACE"] == NAMESPACE
    assert variables["POWERTOOLS_SERVICE_NAME"] == STACK


@pytest.mark.parametrize("name", sorted(set(ALARMS) - set(OURS)))
def test_an_alarm_on_aws_s_own_metrics_names_a_resource_of_the_template(name: str) -> None:
    known = {
        "AWS/SQS": ({"ApproximateNumberOfMessagesVisible"}, ["QueueName"]),
        "AWS/Lambda": ({"Errors", "Invocations", "IteratorAge", "Throttles"}, ["FunctionName"]),
        "AWS/ApiGateway": ({"5XXError"}, ["ApiName", "Stage"]),
    }
    for metric in watched(ALARMS[name]):
        names, dimensions = known[metric["Namespace"]]
        assert metric["MetricName"] in names
        assert [one["Name"] for one in metric["Dimensions"]] == dimensions
        value = metric["Dimensions"][0]["Value"]
        resource = value.get("Ref") or value["Fn::GetAtt"][0]
        assert resource in {*template()["Resources"], *HANDED, "AWS::StackName"}


@pytest.mark.parametrize(("name", "metric"), [("FunctionErrorsAlarm", "Errors"), ("ThrottlesAlarm", "Throttles")])
def test_one_alarm_of_a_kind_sums_over_the_functions(name: str, metric: str) -> None:
    total, *each = ALARMS[name]["Metrics"]
    names = [one["Id"] for one in each]
    unwatched = {"rotator"} if metric == "Throttles" else set()
    assert {*names} == functions().keys() - unwatched
    assert [one["MetricStat"]["Metric"]["MetricName"] for one in each] == [metric] * len(each)
    refs = [{"Ref": f"{one.title()}Function"} for one in names]
    assert [one["MetricStat"]["Metric"]["Dimensions"][0]["Value"] for one in each] == refs
    assert not any(one["ReturnData"] for one in each)
    # A function that was not called has no data, and a sum with a missing value would be missing.
    assert re.findall(r"FILL\((\w+), 0\)", total["Expression"]) == names
    assert not re.search(r"(?<!FILL\()\b(" + "|".join(names) + r")\b", total["Expression"])


def test_the_api_is_named_as_its_alarm_takes_it_to_be() -> None:
    (api,) = resources("AWS::Serverless::Api").values()
    assert api["DefinitionBody"]["info"]["title"] == STACK


@pytest.mark.requirement(121)
def test_each_metric_and_queue_that_must_wake_an_operator_has_an_alarm() -> None:
    metrics = {name: watched(alarm) for name, alarm in ALARMS.items()}
    queues = {each["Dimensions"][0]["Value"].get("Fn::GetAtt", [""])[0] for some in metrics.values() for each in some}
    assert {"WorkDeadLetters", "DeliveryDeadLetters", "RelayFailures"} <= queues
    needed = {"DeliverySuccess", "LeaseLost", "KeyAge", "5XXError", "ServerErrors"}
    assert needed <= {each["MetricName"] for some in metrics.values() for each in some}
    lost = {"DeliveryExhausted", "ItemsPostponed", "Errors", "Invocations", "ApproximateNumberOfMessagesVisible"}
    lost |= {"OldestDueTask", "OldestDueDelivery", "Throttles"}
    assert lost <= {each["MetricName"] for name in BASIC for each in metrics[name]}


@pytest.mark.parametrize("name", ["SweeperSilentAlarm", "KeyAgeAlarm"])
def test_silence_is_an_alarm_where_it_is_the_fault_but_not_before_the_first_word(name: str) -> None:
    assert ALARMS[name]["TreatMissingData"] == "missing"
    assert ALARMS[name]["InsufficientDataActions"] == ALARMS[name]["AlarmActions"]
    assert not [name for name, alarm in ALARMS.items() if alarm["TreatMissingData"] == "breaching"]


def test_every_alarm_is_described_and_goes_to_the_topic_when_there_is_one_and_so_does_its_end() -> None:
    given, nothing = [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}
    own = {"Fn::If": ["MakesAlarmTopic", [{"Ref": "AlarmTopic"}], nothing]}
    for name, alarm in ALARMS.items():
        assert alarm["AlarmDescription"], name
        topic = {"Fn::If": ["HasAlarmTopic", given, own if name in BASIC else nothing]}
        assert (alarm["AlarmActions"], alarm["OKActions"]) == (topic, topic), name
    assert HANDED["AlarmTopicArn"] == {"Fn::If": ["MakesAlarmTopic", {"Ref": "AlarmTopic"}, {"Ref": "AlarmTopicArn"}]}


def test_an_address_for_alarms_makes_a_topic_unless_there_is_one() -> None:
    topic = template()["Resources"]["AlarmTopic"]
    assert topic["Condition"] == "MakesAlarmTopic"
    assert topic["Properties"]["Subscription"] == [{"Protocol": "email", "Endpoint": settings()["AlarmEmail"]}]
    has_none, has_email = template()["Conditions"]["MakesAlarmTopic"]["Fn::And"]
    assert has_none == {"Fn::Not": [{"Condition": "HasAlarmTopic"}]}
    assert has_email == {"Fn::Not": [{"Fn::Equals": [settings()["AlarmEmail"], ""]}]}


def test_the_dashboard_shows_every_metric_of_ours_with_its_own_dimensions() -> None:
    ours = [row for row in shown() if row[0] == NAMESPACE]
    assert {row[1] for row in ours} == set(METRICS)
    for _, name, *dimensions in ours:
        assert dimensions[:2] == ["service", "${Service}"]
        assert dimensions[2::2] in ([], [METRICS[name].dimension]), name


@pytest.mark.parametrize("page", RUNBOOKS)
def test_the_runbook_has_a_section_for_each_alarm_and_for_no_other(page: str) -> None:
    text = (ROOT / page).read_text()
    assert sorted(re.findall(r"^### (\w+Alarm)$", text, re.MULTILINE)) == sorted(ALARMS)
    for section in text.split("\n### ")[1:]:
        body = section.partition("\n## ")[0]
        assert body.partition("\n")[0] not in ALARMS or RUNBOOKS[page] in body, body[:40]


QUERIES = {
    name: one["Properties"]
    for name, one in observability()["Resources"].items()
    if one["Type"] == "AWS::Logs::QueryDefinition"
}
OWN = {"timestamp", "message", "level", "logger"}
# What Lambda itself writes, as JSON: https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html
LAMBDAS = {"log", "type", "record", "status", "errorType", "requestId", "metrics", "durationMs", "maxMemoryUsedMB"}
LANGUAGE = {"and", "asc", "avg", "as", "bin", "by", "count", "desc", "fields", "filter", "in", "ispresent", "latest"}
LANGUAGE |= {"max", "or", "pct", "sort", "stats"}


@pytest.mark.parametrize("name", QUERIES)
def test_a_saved_query_asks_for_lines_and_fields_that_the_log_has(name: str) -> None:
    query = QUERIES[name]["QueryString"]
    code = "\n".join(path.read_text() for path in (ROOT / "shared/a2a_serverless").rglob("*.py"))
    for line in re.findall(r"message = '([^']+)'", query):
        assert f'logger.info("{line}"' in code or f'"{line}", extra' in code
    named = set(re.findall(r"\bas (\w+)", query))
    words = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^']*'|\b\d+h\b", "", query))) - LANGUAGE - named
    assert words
    assert words <= FIELDS | OWN | (LAMBDAS if "record." in query else set())


def test_the_emulator_which_has_no_queries_makes_none() -> None:
    resources, conditions = observability()["Resources"], observability()["Conditions"]
    assert {resources[name].get("Condition") for name in QUERIES} == {"HasLogGroups"}
    assert conditions["HasLogGroups"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "LogGroups"}, ""]}]}
    condition, groups, none = HANDED["LogGroups"]["Fn::If"]
    assert (condition, bool(groups), none) == ("Streams", True, "")


def test_a_stacks_saved_queries_have_names_of_their_own() -> None:
    names = {one["Name"]["Fn::Sub"] for one in QUERIES.values()}
    assert len(names) == len(QUERIES) == 6
    assert {name.partition("/")[0] for name in names} == {"${Service}"}
