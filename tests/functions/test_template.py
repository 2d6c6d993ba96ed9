import inspect
import json
import os
import re
from typing import Any

import pytest
import yaml

from a2a_serverless.aws import queue_worker
from a2a_serverless.http.runtime import STREAMING_ROUTES
from a2a_serverless.settings import Settings, read
from sample_agents import models
from tests.functions.template import ROOT, functions, resources, settings, template
from tests.functions.transformed import of_type
from tests.test_settings import LOCAL_SWITCHES, QUOTAS

VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")
OTHERS = ("AWS_LAMBDA_", "MALLOC_", "POWERTOOLS_")  # read by the runtime, the C library and a library
NAMES = sorted(functions())
BUILT = {"AGENT_SECRETS", "APPLICATION", "DOCUMENTS_URL", "MODEL_PRICES"}  # what the build sets for a project
OF_A_CONTAINER = {"DRAIN_SECONDS", "HEALTH_ADDRESS", "TASKS_AT_ONCE", "WORKER_NAME"}
LOCAL = {*LOCAL_SWITCHES, *BUILT, *OF_A_CONTAINER, "AGENTS_FILE"} - {"WEBHOOK_OWNERSHIP"}


def mappings(kind: str) -> dict[str, dict[str, Any]]:
    events = {name: properties.get("Events", {}).values() for name, properties in functions().items()}
    return {name: event["Properties"] for name, found in events.items() for event in found if event["Type"] == kind}


def statements() -> list[tuple[str, dict[str, Any]]]:
    policies = [(name, policy) for name, role in resources("AWS::IAM::Role").items() for policy in role["Policies"]]
    entries = [(name, entry) for name, policy in policies for entry in policy["PolicyDocument"]["Statement"]]
    return [(name, entry["Fn::If"][1] if "Fn::If" in entry else entry) for name, entry in entries]


def test_a_worker_outside_of_lambda_may_do_with_its_queue_what_its_code_does() -> None:
    calls = set(re.findall(r"_client\.(\w+)\(", inspect.getsource(queue_worker)))
    queue = {"Fn::GetAtt": ["WorkQueue", "Arn"]}
    allowed = [one["Action"] for role, one in statements() if (role, one.get("Resource")) == ("WorkerRole", queue)]
    assert len(calls) == 3
    assert {f"sqs:{call.title().replace('_', '')}" for call in calls} <= {action for one in allowed for action in one}


def test_template_functions_folders_and_events_name_the_same_functions() -> None:
    folders = sorted(app.parent.name for app in ROOT.glob("functions/*/app.py"))
    with_events = sorted({event.name.partition("-")[0] for event in ROOT.glob("events/*.json")})
    assert NAMES == folders == with_events


@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_built_by_uv_from_its_own_folder(name: str) -> None:
    resource = template()["Resources"][f"{name.title()}Function"]
    assert resource["Metadata"] == {"BuildMethod": "python-uv"}
    assert resource["Properties"]["CodeUri"] == f"functions/{name}/"


@pytest.mark.parametrize("name", NAMES)
def test_a_functions_folder_has_its_handler_and_its_requirements(name: str) -> None:
    files = {path.name for path in (ROOT / "functions" / name).iterdir() if path.is_file()}
    assert {"app.py", "requirements.txt"} <= files
    assert "\n    handler = start_handler(" in (ROOT / "functions" / name / "app.py").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_function_has_a_role_and_a_log_group_of_its_own(name: str) -> None:
    properties = functions()[name]
    assert properties["Role"] == {"Fn::GetAtt": [f"{name.title()}Role", "Arn"]}
    assert properties["LoggingConfig"] == {"LogGroup": {"Ref": f"{name.title()}Logs"}}
    assert resources("AWS::Logs::LogGroup")[f"{name.title()}Logs"]["RetentionInDays"] == settings()["LogRetentionDays"]


def test_no_level_keeps_metrics_out_of_the_log() -> None:
    """A line of the embedded metric format has no level; Lambda takes it for INFO."""
    shared = template()["Globals"]["Function"]["LoggingConfig"]
    assert (shared["LogFormat"], shared["ApplicationLogLevel"]) == ("JSON", "INFO")


def test_every_variable_that_code_reads_is_set_by_the_template_and_the_other_way_round() -> None:
    required = re.findall(r'(?:need|get)\("([A-Z_]+)"', _code())
    read = {models.VARIABLE, *required, *(name.upper() for name in Settings.model_fields if name != "values")}
    given = {name for properties in functions().values() for name in properties["Environment"]["Variables"]}
    given |= set(template()["Globals"]["Function"]["Environment"]["Variables"])
    assert {name for name in given if not name.startswith(OTHERS)} <= read
    assert {name for name in read - LOCAL if not name.startswith("AWS_")} <= given


def test_no_mapping_loses_partial_failures_and_the_streams_retries_end() -> None:
    queues, streams = mappings("SQS"), mappings("DynamoDB")
    assert (sorted(queues), sorted(streams)) == (["notifier", "worker"], ["relay"])
    for mapping in (*queues.values(), *streams.values()):
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert streams["relay"]["MaximumRetryAttempts"] == 5
    assert streams["relay"]["BisectBatchOnFunctionError"] is True


def test_a_queue_hides_a_message_six_times_as_long_as_its_function_may_run() -> None:
    for name, mapping in mappings("SQS").items():
        queue = resources("AWS::SQS::Queue")[mapping["Queue"]["Fn::GetAtt"][0]]
        assert queue["VisibilityTimeout"] == 6 * functions()[name]["Timeout"]


def test_the_functions_that_a_queue_starts_may_send_to_it_again_and_no_other_may_loop() -> None:
    """Lambda ends the 17th invocation of a chain of messages otherwise: a task of four hours has more."""
    queues = sorted(mappings("SQS"))
    assert {name: made["RecursiveLoop"] for name, made in functions().items() if "RecursiveLoop" in made} == (
        dict.fromkeys(queues, "Allow")
    )
    transformed = [made["Properties"] for made in of_type("AWS::Lambda::Function").values()]
    assert [made.get("RecursiveLoop") for made in transformed].count("Allow") == len(queues)


def test_the_relay_sees_inserted_events_and_nothing_else() -> None:
    (wanted,) = mappings("DynamoDB")["relay"]["FilterCriteria"]["Filters"]
    assert json.loads(wanted["Pattern"]) == {
        "eventName": ["INSERT"],
        "dynamodb": {"Keys": {"sk": {"S": [{"prefix": "EVENT#"}]}}},
    }


def test_the_api_cannot_be_told_its_own_address_because_the_api_gateway_refers_to_it() -> None:
    variables = functions()["api"]["Environment"]["Variables"]
    assert '"Api"' not in json.dumps(variables)
    assert "${Api}" not in json.dumps(variables)


@pytest.mark.parametrize(
    ("action", "roles"),
    [
        ("secretsmanager:PutSecretValue", {"RotatorRole"}),
        ("secretsmanager:GetSecretValue", {"RotatorRole", "NotifierRole", "WorkerRole"}),
        ("kms:GenerateDataKey", {"ApiRole"}),
        ("kms:Decrypt", {"ApiRole", "NotifierRole", "WorkerRole"}),  # the worker its agents' credentials only
        ("dynamodb:Scan", set()),
        ("s3:DeleteObject", set()),
        ("s3:ListBucket", set()),
        ("lambda:InvokeFunction", {"RotatorScheduleRole"}),
    ],
)
def test_only_the_roles_in_the_table_have_a_powerful_action(action: str, roles: set[str]) -> None:
    assert {role for role, statement in statements() if action in _listed(statement["Action"])} == roles


def test_models_are_named_to_those_who_run_agents_who_may_call_bedrock_only_then() -> None:
    told = {name: one["Environment"]["Variables"].get("MODELS") for name, one in functions().items()}
    assert {name for name, value in told.items() if value == {"Ref": "Models"}} == {"api", "worker"}
    assert template()["Parameters"]["Models"]["Default"] == ""
    policies = [(name, policy) for name, role in resources("AWS::IAM::Role").items() for policy in role["Policies"]]
    entries = [(name, entry) for name, policy in policies for entry in policy["PolicyDocument"]["Statement"]]
    may = [(name, entry["Fn::If"][0], entry["Fn::If"][2]) for name, entry in entries if "bedrock:" in json.dumps(entry)]
    assert may == [(name, "HasBedrock", {"Ref": "AWS::NoValue"}) for name in ("ApiRole", "WorkerRole")]
    empty = {"Fn::Equals": [{"Ref": "Models"}, ""]}
    assert template()["Conditions"]["HasBedrock"] == {"Fn::Not": [empty]}


def test_the_worker_alone_knows_of_the_agents_credentials_and_may_read_no_other_secret() -> None:
    known = [name for name, one in functions().items() if "AGENT_CREDENTIALS" in json.dumps(one)]
    assert known == ["worker"]
    read, opened = (one for role, one in statements() if role == "WorkerRole" and "secretsmanager" in json.dumps(one))
    assert (read["Action"], read["Resource"]) == ("secretsmanager:GetSecretValue", the("AgentCredentialsSecretArn"))
    assert (opened["Action"], opened["Resource"]) == ("kms:Decrypt", the("AgentCredentialsKeyArn"))
    assert opened["Condition"]["StringEquals"] == {
        "kms:ViaService": {"Fn::Sub": "secretsmanager.${AWS::Region}.${AWS::URLSuffix}"},
        "kms:EncryptionContext:SecretARN": settings()["AgentCredentialsSecretArn"],
    }
    assert (settings()["AgentCredentialsSecretArn"], settings()["AgentCredentialsKeyArn"]) == ("", "")


def the(constant: str) -> dict[str, Any]:
    return {"Fn::Sub": ["${Arn}", {"Arn": settings()[constant]}]}


def test_queues_buckets_and_tables_are_encrypted_private_and_kept() -> None:
    for queue in resources("AWS::SQS::Queue").values():
        assert queue["SqsManagedSseEnabled"] is True
    (bucket,) = resources("AWS::S3::Bucket").values()
    assert bucket["BucketEncryption"]
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    table = resources("AWS::DynamoDB::Table")["Table"]
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    for name in ("Table", "Blobs", "SealingKey"):
        assert template()["Resources"][name]["DeletionPolicy"] == "RetainExceptOnCreate"


def test_the_scheduler_and_lambda_do_not_retry_the_sweeper() -> None:
    """The scheduler invokes asynchronously: its own retries and those of Lambda are two settings."""
    sweeper = functions()["sweeper"]
    assert sweeper["EventInvokeConfig"] == {"MaximumRetryAttempts": 0}
    assert sweeper["Events"]["EachMinute"]["Properties"]["RetryPolicy"] == {"MaximumRetryAttempts": 0}
    (made,) = of_type("AWS::Lambda::EventInvokeConfig").values()
    assert (made["Properties"]["FunctionName"], made["Properties"]["Qualifier"]) == (
        {"Ref": "SweeperFunction"},
        "$LATEST",
    )
    assert made["Properties"]["MaximumRetryAttempts"] == 0


def test_every_address_of_the_api_asks_for_tls_1_2() -> None:
    (api,), (domain,) = (of_type(f"AWS::ApiGateway::{kind}").values() for kind in ("RestApi", "DomainName"))
    assert api["Properties"]["SecurityPolicy"] == domain["Properties"]["SecurityPolicy"] == "TLS_1_2"


def test_every_method_of_the_stage_is_throttled() -> None:
    (stage,) = of_type("AWS::ApiGateway::Stage").values()
    assert stage["Properties"]["MethodSettings"] == [
        {
            "ResourcePath": "/*",
            "HttpMethod": "*",
            "ThrottlingRateLimit": settings()["RequestsPerSecond"],
            "ThrottlingBurstLimit": settings()["RequestBurst"],
        }
    ]
    assert 0 < settings()["RequestsPerSecond"] <= settings()["RequestBurst"]


def test_each_request_is_a_line_of_the_access_log_once_there_is_one_and_the_line_is_json() -> None:
    (api,) = resources("AWS::Serverless::Api").values()
    condition, setting, otherwise = api["AccessLogSetting"]["Fn::If"]
    assert (condition, otherwise, settings()["AccessLogArn"]) == ("HasAccessLog", {"Ref": "AWS::NoValue"}, "")
    line = json.loads(setting["Format"])
    assert {"time", "request", "path", "status"} <= set(line)
    assert all(value.startswith("$context.") for value in line.values())
    assert "authorizer" not in setting["Format"]  # nothing about who signs in


def test_no_line_of_the_access_log_has_an_address_by_which_a_task_is_reached() -> None:
    """The path of a request to a callback or an event is a secret; the path of its route is not."""
    (api,) = resources("AWS::Serverless::Api").values()
    fields = set(json.loads(api["AccessLogSetting"]["Fn::If"][1]["Format"]).values())
    assert fields == {
        *("$context.requestTime", "$context.requestId", "$context.identity.sourceIp", "$context.httpMethod"),
        *("$context.resourcePath", "$context.status", "$context.responseLatency", "$context.responseLength"),
    }, "API Gateway's $context.path would be the path of the request"


def test_the_logs_of_every_function_are_in_the_outputs_and_in_the_saved_queries() -> None:
    groups = [{"Ref": name} for name in resources("AWS::Logs::LogGroup")]
    separator, listed = template()["Outputs"]["LogGroups"]["Value"]["Fn::Join"]
    assert (separator, sorted(map(str, listed))) == (" ", sorted(map(str, groups)))
    queries = template()["Resources"]["FullObservability"]["Properties"]["Parameters"]["LogGroups"]["Fn::If"]
    assert queries == ["Streams", {"Fn::Join": [",", listed]}, ""]


def test_streaming_routes_have_both_forms_and_the_others_are_buffered() -> None:
    (api,) = resources("AWS::Serverless::Api").values()
    streaming = {}
    for path, methods in api["DefinitionBody"]["paths"].items():
        for method, operation in methods.items():
            integration = operation["x-amazon-apigateway-integration"]
            streaming[f"{method.upper()} {path}"] = "Fn::If" in integration
            for form in integration["Fn::If"][1:] if "Fn::If" in integration else [integration]:
                assert _is_whole(form), path
    assert {route.partition(" ")[2] for route, streams in streaming.items() if streams} == STREAMING_ROUTES
    assert not {route.partition(" ")[2] for route, streams in streaming.items() if not streams} & STREAMING_ROUTES


def test_the_program_that_streams_is_in_the_api_functions_folder_and_may_be_run() -> None:
    wrapper = functions()["api"]["Environment"]["Variables"]["AWS_LAMBDA_EXEC_WRAPPER"]
    assert wrapper == {"Fn::If": ["Streams", "/var/task/stream", {"Ref": "AWS::NoValue"}]}
    assert os.access(ROOT / "functions/api/stream", os.X_OK)


def test_no_route_takes_any_method_or_ends_in_a_slash() -> None:
    (api,) = resources("AWS::Serverless::Api").values()
    for path, methods in api["DefinitionBody"]["paths"].items():
        assert path == "/" or not path.endswith("/")
        assert set(methods) <= {"get", "post", "delete", "options"}
        assert ("options" in methods) == (path != "/" and not path.startswith(("/callbacks/", "/events/")))


def test_no_switch_of_local_runs_is_in_the_template() -> None:
    text = (ROOT / "template.yaml").read_text()
    assert not [name for name in LOCAL if name in text]
    assert settings()["Environment"]["WEBHOOK_OWNERSHIP"] == "enforce"


def test_the_template_has_at_most_sixteen_parameters_each_with_a_valid_default() -> None:
    parameters = template()["Parameters"]
    assert len(parameters) <= 16
    for name, parameter in parameters.items():
        allowed = parameter.get("AllowedPattern", "") or "|".join(parameter.get("AllowedValues", [".*"]))
        assert re.fullmatch(allowed, parameter["Default"]), name


def test_a_constant_of_the_environment_is_the_default_that_code_has_too() -> None:
    given = {name: str(value) for name, value in settings()["Environment"].items()}
    others = {"values": {}, **dict.fromkeys(QUOTAS, 0)}
    assert read(given).model_copy(update=others) == read({})


def test_both_templates_together_have_at_most_a_thousand_lines() -> None:
    names = ("template.yaml", "observability.yaml")
    assert sum(len((ROOT / name).read_text().splitlines()) for name in names) <= 1000
    assert not [name for name in names if repeated_keys(yaml.compose((ROOT / name).read_text()))]


def repeated_keys(node: yaml.Node | None) -> list[str]:
    """Keys that a mapping has twice, which readers take in different ways; what it merges counts, too."""
    if isinstance(node, yaml.SequenceNode):
        return [key for one in node.value for key in repeated_keys(one)]
    if not isinstance(node, yaml.MappingNode):
        return []
    merged = [pair for key, value in node.value if key.value == "<<" for pair in value.value]
    keys = [key.value for key, _ in [*node.value, *merged] if key.value != "<<"]
    return [key for key in keys if keys.count(key) > 1] + [key for _, one in node.value for key in repeated_keys(one)]


def test_every_constant_is_explained_and_used() -> None:
    text = (ROOT / "template.yaml").read_text()
    block = text[text.index("  Settings:") : text.index("\n# All are optional")]
    explained = dict(re.findall(r"^ +(\w+): (?:&\w+ )?(?!&)\S+ # (\S.+)$", block, re.MULTILINE))
    assert set(explained) == {*settings()["Environment"], *settings()} - {"Environment"}
    for anchor in re.findall(r"&(\w+)", block):
        assert f"*{anchor}" in text.partition("\nParameters:")[2], anchor


def test_every_parameter_is_described_used_and_shown_in_a_group() -> None:
    text = (ROOT / "template.yaml").read_text()
    groups = template()["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert sorted(name for group in groups for name in group["Parameters"]) == sorted(template()["Parameters"])
    for name, parameter in template()["Parameters"].items():
        assert parameter["Description"]
        assert f"!Ref {name}" in text or f"${{{name}}}" in text


def _code() -> str:
    package = ROOT / "shared/a2a_serverless"
    places = [package / "settings.py", *package.glob("aws/*.py"), *(ROOT / "functions").glob("*/*.py")]
    return "\n".join(path.read_text() for path in places)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_whole(integration: dict[str, Any]) -> bool:
    streams = integration.get("responseTransferMode") == "STREAM"
    uri = integration["uri"]["Fn::Sub"]
    right = uri.endswith("/response-streaming-invocations" if streams else "/invocations")
    return right and integration["type"] == "aws_proxy" and ("timeoutInMillis" in integration) == streams


# https://docs.aws.amazon.com/bedrock/latest/userguide/model-lifecycle-legacy.html
ENDED = {"amazon.nova-canvas-v1:0": "2026-09-30"}


def test_no_template_document_or_example_names_a_model_that_has_ended() -> None:
    files = [ROOT / "template.yaml", *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.py")]
    named = {name for file in files for name in re.findall(r"[a-z]+\.[a-z][a-z0-9-]+-v\d+:\d+", file.read_text())}
    assert {"amazon.nova-lite-v1:0", "stability.stable-image-core-v1:1"} <= named
    assert not named & ENDED.keys()


def test_terraform_s_example_has_the_capabilities_that_the_template_needs_and_parameters_of_it() -> None:
    """Roles with names of their own would need another one."""
    example = (ROOT / "examples/terraform/main.tf").read_text()
    assert "Transform" in template()
    assert not any("RoleName" in one["Properties"] for one in of_type("AWS::IAM::Role").values())
    assert {*re.findall(r"CAPABILITY_\w+", example)} == {"CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"}
    (parameters,) = re.findall(r"parameters += \{(.*)\}", example)
    assert {*re.findall(r"(\w+) =", parameters)} <= template()["Parameters"].keys()
