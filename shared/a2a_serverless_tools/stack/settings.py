"""Applies a project's settings to the template: its constants to the text, everything else to what SAM has built."""

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

import yaml

from a2a_serverless.adapters.agent_secrets import PARAMETER, variable_of
from a2a_serverless.domain.queue_messages import TickMessage, to_json
from a2a_serverless.domain.schedules import LATEST_MS, SCHEDULED_TIME_KEYWORD, Schedule
from a2a_serverless_tools.project import Function, Project, ProjectError, otel_variables
from a2a_serverless_tools.stack.packaging import functions_of
from a2a_serverless_tools.stack.trimming import API

VARIABLE, PRICES = "AGENT_SECRETS", "MODEL_PRICES"
_METHODS = ("get", "post", "put", "patch", "delete", "head", "options")  # the emulator drops ANY
_ADDRESSES = frozenset({"PUBLIC_BASE_URL", "GATEWAY_URL", "ApiUrl", "JwksUrl"})  # variables, and outputs of the stack
_ARN = "arn:${AWS::Partition}:%s:${AWS::Region}:${AWS::AccountId}:%s"
_INTEGER = "tag:yaml.org,2002:int"
# What Lambda needs in a VPC, with AWS's advice: it does so itself, and no code of a function may.
NETWORK = [
    *("ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"),
    *("ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"),
]
# What the services of stored data do by a key of yours, in the name of a role; SQS keeps a data key as long as it may.
STORING, REUSE_S = ("dynamodb", "s3", "secretsmanager", "sqs"), 86_400
KEY_ACTIONS = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
_FROM_CODE = {"ArnLike": {"lambda:SourceFunctionArn": {"Fn::Sub": _ARN % ("lambda", "function:*")}}}


def set_constants(text: str, constants: Mapping[str, int | str]) -> str:
    """Return a template with other values for constants in its ``Metadata.Settings``. Raises ProjectError.

    Everything else stays as it is written: anchors, comments, and whether a constant is a text or a number.
    """
    if not constants:
        return text
    place = "[tool.a2a-serverless.constants]"
    nodes = dict(_scalars(_entry(_entry(yaml.compose(text, Loader=yaml.CSafeLoader), "Metadata"), "Settings")))
    if unknown := sorted(constants.keys() - nodes.keys()):
        names = ", ".join(nodes) or "none"
        raise ProjectError(f"{place} sets {', '.join(unknown)}; the constants of the template are {names}")
    for name in sorted(constants, key=lambda name: int(nodes[name].start_mark.index), reverse=True):
        node, value = nodes[name], constants[name]
        if node.tag == _INTEGER and not isinstance(value, int):
            raise ProjectError(f"{place} sets {name} to {value!r}, which is no number")
        start, end = node.start_mark.index, node.end_mark.index
        anchor = re.match(r"(&\S+\s+)?", text[start:end])
        literal = str(value) if node.tag == _INTEGER else json.dumps(str(value), ensure_ascii=False)
        text = f"{text[:start]}{anchor[0] if anchor else ''}{literal}{text[end:]}"
    return text


def _entry(node: Any, name: str) -> Any:  # noqa: ANN401 - nodes of YAML, or None
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for key, value in pairs if key.value == name), None)


def _scalars(node: Any) -> Iterator[tuple[str, yaml.ScalarNode]]:  # noqa: ANN401 - a node of YAML, or None
    for key, value in node.value if isinstance(node, yaml.MappingNode) else []:
        if isinstance(value, yaml.ScalarNode):
            yield key.value, value
        else:
            yield from _scalars(value)


def set_limits(template: dict[str, Any], function: dict[str, Any], limits: Function) -> None:
    """Set memory and timeout of a function of a built template. A queue hides messages for six timeouts."""
    if limits.memory is not None:
        function["MemorySize"] = limits.memory
    if limits.timeout is None:
        return
    if isinstance(function["Timeout"], dict):  # the api's: another one where answers are not streamed
        function["Timeout"]["Fn::If"][1] = limits.timeout
    else:
        function["Timeout"] = limits.timeout
    for event in function.get("Events", {}).values():
        if event["Type"] == "SQS":
            queue = template["Resources"][event["Properties"]["Queue"]["Fn::GetAtt"][0]]
            queue["Properties"]["VisibilityTimeout"] = 6 * limits.timeout


def give(template: dict[str, Any], function: dict[str, Any], project: Project) -> None:
    """Set the project's variables, secrets, network and statements for a function of a built template, and its role.

    Raises ProjectError for a variable that the template sets already.
    """
    variables = function.setdefault("Environment", {}).setdefault("Variables", {})
    shared = template.get("Globals", {}).get("Function", {}).get("Environment", {}).get("Variables", {})
    if conflicts := sorted({*variables, *shared, VARIABLE, PRICES} & {*project.environment}):
        raise ProjectError(f"[tool.a2a-serverless.environment] sets {', '.join(conflicts)}, which the template sets")
    statements: list[dict[str, Any]] = []
    variables.update(project.environment)
    if project.prices:
        variables[PRICES] = json.dumps(project.prices)
    if project.secrets:
        variables[VARIABLE] = json.dumps(project.secrets)
        statements += _reading(project.secrets.values())
    if project.vpc:
        function["VpcConfig"] = {
            "SubnetIds": [*project.vpc.subnets],
            "SecurityGroupIds": [*project.vpc.security_groups],
        }
        statements.append({"Effect": "Allow", "Action": NETWORK, "Resource": "*"})
        statements.append({"Effect": "Deny", "Action": NETWORK, "Resource": "*", "Condition": _FROM_CODE})
    for own in project.statements:
        resources = [{"Fn::Sub": one} if "${AWS::" in one else one for one in own.resources]
        condition = {"Condition": own.condition} if own.condition else {}
        statements.append({"Effect": "Allow", "Action": [*own.actions], "Resource": resources, **condition})
    if statements:
        _statements_of(template, function).extend(statements)


def give_otel(template: dict[str, Any], function: dict[str, Any], project: Project) -> None:
    """Add where spans go to a function of a built template, and the right to read the collector's headers to its role.

    A variable that the project's environment sets stays as it is.
    """
    variables = function.setdefault("Environment", {}).setdefault("Variables", {})
    variables.update(otel_variables(project) | variables)
    if project.otel and project.otel.headers_secret:
        _statements_of(template, function).extend(_reading([project.otel.headers_secret]))


def serve_application(template: dict[str, Any], application: str, path: str) -> None:
    """Let the api serve an application at every path of a built template; the agents are mounted in it at ``path``.

    Addresses of the agents get the path, unless a constant gives the address. Bodies of requests may be binary.
    """
    functions, resources = functions_of(template), template["Resources"]
    functions[API].setdefault("Environment", {}).setdefault("Variables", {})["APPLICATION"] = application
    api = resources.get("Api", {}).get("Properties", {})
    routes = api.get("DefinitionBody", {}).get("paths", {})
    if routes:
        buffered, streaming = routes["/"]["get"], routes["/{agent}"]["post"]
        routes.clear()
        routes |= {"/": dict.fromkeys(_METHODS, buffered), "/{proxy+}": dict.fromkeys(_METHODS, streaming)}
        api["BinaryMediaTypes"] = [*api.get("BinaryMediaTypes", ()), "*/*"]
    for variables in (one.get("Environment", {}).get("Variables", {}) for one in functions.values()):
        variables |= {name: _below(variables[name], path) for name in _ADDRESSES & variables.keys()}
    outputs = template.get("Outputs", {})
    for name in _ADDRESSES & outputs.keys():
        outputs[name]["Value"] = _below(outputs[name]["Value"], path)


def _below(value: Any, path: str) -> Any:  # noqa: ANN401 - a value of a template
    """An address of the deployment with a path behind it."""
    if isinstance(value, list):
        return [_below(one, path) for one in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Fn::Sub": str(url)} if url.startswith("https://"):
            return {"Fn::Sub": url + path}
    return {name: _below(one, path) for name, one in value.items()}


def add_schedules(template: dict[str, Any], agents: Iterable[Mapping[str, Any]]) -> None:
    """Add the schedules of these agents, as the manifest describes them, with a group and a role; nothing without one.

    The group has the stack's name, a schedule ``AGENT.NAME``. The role may send to the work queue, and to its dead
    letters what could not be sent there for an hour.
    """
    schedules = [(agent["id"], Schedule(**one)) for agent in agents for one in agent["schedules"]]
    if not schedules:
        return
    resources = template["Resources"]
    resources["Schedules"] = {
        "Type": "AWS::Scheduler::ScheduleGroup",
        "Properties": {"Name": {"Ref": "AWS::StackName"}},
    }
    source = {"aws:SourceAccount": {"Ref": "AWS::AccountId"}, "aws:SourceArn": {"Fn::GetAtt": ["Schedules", "Arn"]}}
    trust = {"Effect": "Allow", "Principal": {"Service": "scheduler.amazonaws.com"}, "Action": "sts:AssumeRole"}
    work, dead_letters = ({"Fn::GetAtt": [queue, "Arn"]} for queue in ("WorkQueue", "WorkDeadLetters"))
    send = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": [work, dead_letters]}
    resources["SchedulesRole"] = {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": _policy(trust | {"Condition": {"StringEquals": source}}),
            "Policies": [{"PolicyName": "schedules", "PolicyDocument": _policy(send)}],
        },
    }
    for agent, schedule in schedules:
        body = to_json(TickMessage(schedule.key(agent), 0)) | {"at": SCHEDULED_TIME_KEYWORD}
        name = f"{agent}.{schedule.name}"
        resources[f"Schedule{sha256(name.encode()).hexdigest()[:16]}"] = {
            "Type": "AWS::Scheduler::Schedule",
            "Properties": {
                "Name": name,
                "GroupName": {"Ref": "Schedules"},
                "ScheduleExpression": f"cron({schedule.cron})",
                "ScheduleExpressionTimezone": schedule.zone,
                "FlexibleTimeWindow": {"Mode": "OFF"},
                "Target": {
                    "Arn": work,
                    "RoleArn": {"Fn::GetAtt": ["SchedulesRole", "Arn"]},
                    "Input": json.dumps(body),
                    "RetryPolicy": {"MaximumEventAgeInSeconds": LATEST_MS // 1000},
                    "DeadLetterConfig": {"Arn": dead_letters},
                },
            },
        }


def set_defaults(template: dict[str, Any], parameters: Mapping[str, str]) -> None:
    """Make these the defaults of the template's parameters of these names: a deployment need not repeat them."""
    for name, value in parameters.items():
        if name in template.get("Parameters", {}):
            template["Parameters"][name]["Default"] = value


def bound_roles(template: dict[str, Any]) -> None:
    """Give each role of the template, also those that SAM makes, the boundary that the constants name, if any."""
    boundary = template.get("Metadata", {}).get("Settings", {}).get("PermissionsBoundaryArn")
    if not boundary:
        return
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::IAM::Role":
            resource["Properties"]["PermissionsBoundary"] = boundary
        for event in resource.get("Properties", {}).get("Events", {}).values():
            if event["Type"] == "ScheduleV2":
                event["Properties"]["PermissionsBoundary"] = boundary


def encrypt(template: dict[str, Any]) -> None:
    """Encrypt what the template stores by the key that the constants name, if any, and let each role use it.

    A role may use it only as one of the services asks that store something. CloudWatch's logs are not among them.
    """
    key = template.get("Metadata", {}).get("Settings", {}).get("DataKeyArn")
    if not key:
        return
    by_default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    rules = {
        "ServerSideEncryptionConfiguration": [{"BucketKeyEnabled": True, "ServerSideEncryptionByDefault": by_default}]
    }
    properties: dict[str, dict[str, Any]] = {
        "AWS::DynamoDB::Table": {"SSESpecification": {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}},
        "AWS::S3::Bucket": {"BucketEncryption": rules},
        "AWS::SQS::Queue": {"KmsMasterKeyId": key, "KmsDataKeyReusePeriodSeconds": REUSE_S},
        "AWS::SecretsManager::Secret": {"KmsKeyId": key},
    }
    asked = [{"Fn::Sub": f"{service}.${{AWS::Region}}.${{AWS::URLSuffix}}"} for service in STORING]
    condition = {"StringEquals": {"kms:ViaService": asked}}
    use = {"Effect": "Allow", "Action": [*KEY_ACTIONS], "Resource": key, "Condition": condition}
    for resource in template["Resources"].values():
        resource.get("Properties", {}).update(properties.get(resource["Type"], {}))
        if resource["Type"] == "AWS::SQS::Queue":
            resource["Properties"].pop("SqsManagedSseEnabled", None)
        if resource["Type"] == "AWS::IAM::Role":
            resource["Properties"]["Policies"].append({"PolicyName": "key", "PolicyDocument": _policy(use)})


def remove_models(template: dict[str, Any], function: dict[str, Any]) -> None:
    """Remove the right to call models from the role of a function that runs no agent."""
    statements = _statements_of(template, function)
    statements[:] = [one for one in statements if one.get("Fn::If", [""])[0] != "HasBedrock"]


def remove_cost_alarm(template: dict[str, Any]) -> None:
    """Remove the budget unless the constants ask for it. A condition does not do: many regions do not know its type."""
    constants = template.get("Metadata", {}).get("Settings", {})
    if not (constants.get("AlarmEmail") and constants.get("CostAlarmUsd")):
        template["Resources"].pop("CostAlarm", None)


def _policy(statement: Mapping[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [statement]}


def local_secrets(project: Project, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the secrets for a run on this machine, from the environment. Raises ProjectError, with what is missing.

    Their places are of this run only, so that an ARN of an account is not needed.
    """
    missing = [variable_of(name) for name in project.secrets if not environment.get(variable_of(name))]
    if missing:
        raise ProjectError(f"secrets of this project are not set: give them in {', '.join(missing)}")
    return {name: environment[variable_of(name)] for name in project.secrets}


def local_place(name: str) -> str:
    """Return the place of a secret in the emulator."""
    return f"agent-secrets/{name}"


def _statements_of(template: dict[str, Any], function: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the list of the statements of a function's role."""
    policy = template["Resources"][function["Role"]["Fn::GetAtt"][0]]["Properties"]["Policies"][0]
    statements: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return statements


def _reading(places: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield statements that allow to read these secrets."""
    resources: defaultdict[str, list[object]] = defaultdict(list)
    for place in places:
        if place.startswith(PARAMETER):
            name = place.removeprefix(PARAMETER).lstrip("/")
            resources["ssm:GetParameter"].append(_resource("ssm", f"parameter/{name}"))
        else:  # a secret's ARN ends with a hyphen and six characters that its name does not have
            secret = place if place.startswith("arn:") else _resource("secretsmanager", f"secret:{place}-??????")
            resources["secretsmanager:GetSecretValue"].append(secret)
    for action, arns in resources.items():
        yield {"Effect": "Allow", "Action": action, "Resource": arns}


def _resource(service: str, name: str) -> object:
    return {"Fn::Sub": _ARN % (service, name)}
