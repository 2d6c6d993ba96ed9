"""Checks of a built template: values with which CloudFormation, Lambda or the functions would fail in the account."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from a2a_serverless.settings import SettingsError, read
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.packaging import functions_of

RANGES: Final = {
    "BLOCKING_SECONDS": (1, 25),
    "WorkerConcurrency": (2, 1000),
    "NotifierConcurrency": (2, 1000),
    "RelayConcurrency": (1, 10),
    "TasksAtOnce": (1, 10),
    "RequestsPerSecond": (1, 1_000_000),
    "RequestBurst": (1, 1_000_000),
    "CostAlarmUsd": (0, 1_000_000_000),
}
CHOICES: Final[dict[str, list[int] | list[str]]] = {
    "TASK_RETENTION_DAYS": [1, 3, 7, 14, 30, 60, 90, 180, 365, 730],
    # https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
    "LogRetentionDays": [
        *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545),
        *(731, 1096, 1827, 2192, 2557, 2922, 3288, 3653),
    ],
    "GatewayAddress": ["open", "closed"],
    "WorkerService": ["lambda.amazonaws.com", "ecs-tasks.amazonaws.com", "ec2.amazonaws.com", "pods.eks.amazonaws.com"],
}
_ARNS: Final = {
    "AgentCredentialsSecretArn": "secretsmanager",
    "AgentCredentialsKeyArn": "kms",
    "AccessLogArn": "logs",
    "DataKeyArn": "kms",
    "PermissionsBoundaryArn": "iam",
}
_RESERVED: Final = {"Worker": "WorkerConcurrency", "Notifier": "NotifierConcurrency"}
_PATTERNS: Final = {
    "PublicBaseUrl": (r"https://[^\s?#]*[^\s?#/]", "must be an https URL without a slash at the end, not"),
    "AlarmEmail": (r"[^@\s]+@[^@\s]+\.[^@\s]+", "is no address:"),
}
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html and .../gettingstarted-limits.html
_RESERVED_NAMES: Final = re.compile(
    r"_HANDLER|_X_AMZN_TRACE_ID|AWS_(REGION|DEFAULT_REGION|EXECUTION_ENV|ACCESS_KEY|ACCESS_KEY_ID|SECRET_ACCESS_KEY|"
    r"SESSION_TOKEN|LAMBDA_(?!EXEC_WRAPPER)\w+)|LAMBDA_(TASK_ROOT|RUNTIME_DIR)"
)
VARIABLE_BYTES: Final = 4096
UNKNOWN_BYTES: Final = 100  # of a value that only the account knows, such as a queue's URL
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
RESOURCES: Final = 500
TEMPLATE_BYTES: Final = 1_000_000
SAMS_RESOURCES: Final = 12  # what SAM adds to the template


def check_template(document: Mapping[str, Any]) -> None:
    """Raises StackError, which names every bad value and what is allowed."""
    constants = document.get("Metadata", {}).get("Settings", {})
    whys = [*_bad_constants(constants), *_bad_variables(document), *_too_large(document)]
    if whys:
        raise StackError("build", "; ".join(whys), remedy='docs/parameters.md, "Constants"')


def lint(template: Path, program: Path) -> None:
    """Raises StackError with the errors that cfn-lint finds in a template; does nothing if it is not installed."""
    if not program.is_file():
        return
    words: list[str | Path] = [program, "--non-zero-exit-code", "error", "--format", "parseable", "--", template]
    result = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - cfn-lint, by path
    if result.returncode:
        errors = [line for line in result.stdout.splitlines() if re.search(":E[0-9]{4}:", line)]
        raise StackError("build", "cfn-lint: " + "\n  ".join(errors or [result.stderr.strip()]))


def _bad_constants(constants: Mapping[str, Any]) -> Iterator[str]:
    environment = {name: str(value) for name, value in constants.get("Environment", {}).items()}
    try:
        read(environment)
    except SettingsError as error:
        yield str(error)
    yield from _bad_values({**constants, **environment})
    yield from _bad_texts(constants)
    for function, limit in _RESERVED.items():
        reserved, least = constants.get(f"{function}Reserved", 0), constants.get(limit, 0)
        if reserved and reserved < least:
            yield f"{function}Reserved must be 0, or not less than {limit} ({least}), not {reserved}"


def _bad_values(constants: Mapping[str, Any]) -> Iterator[str]:
    for name, (least, most) in RANGES.items():
        value = str(constants.get(name, least))
        if not value.isdecimal() or not least <= int(value) <= most:
            yield f"{name} must be from {least} to {most}, not {value}"
    for name, choices in CHOICES.items():
        if name in constants and str(constants[name]) not in map(str, choices):
            yield f"{name} must be one of {', '.join(map(str, choices))}, not {constants[name]}"


def _bad_texts(constants: Mapping[str, Any]) -> Iterator[str]:
    for name, service in _ARNS.items():
        arn = str(constants.get(name) or "")
        if arn and not re.fullmatch(rf"arn:aws[a-z-]*:{service}:[^\s]+", arn):
            yield f"{name} is no ARN of {service}: {arn}"
    for name, (pattern, why) in _PATTERNS.items():
        text = str(constants.get(name) or "")
        if text and not re.fullmatch(pattern, text):
            yield f"{name} {why} {text}"


def _bad_variables(document: Mapping[str, Any]) -> Iterator[str]:
    shared = document.get("Globals", {}).get("Function", {}).get("Environment", {}).get("Variables", {})
    for name, properties in functions_of(document).items():
        variables = shared | properties.get("Environment", {}).get("Variables", {})
        yield from (f"{name} sets {one}, which Lambda reserves" for one in variables if _RESERVED_NAMES.fullmatch(one))
        sizes = (len(one.encode()) if isinstance(one, str) else UNKNOWN_BYTES for one in variables.values())
        size = sum(map(len, variables)) + sum(sizes)
        if size > VARIABLE_BYTES:
            yield f"{name} has about {size} bytes of variables, and Lambda takes {VARIABLE_BYTES}"


def _too_large(document: Mapping[str, Any]) -> Iterator[str]:
    count = len(document["Resources"]) + SAMS_RESOURCES
    if count > RESOURCES:
        yield f"the template has about {count} resources, and CloudFormation takes {RESOURCES}: use fewer schedules"
    if (size := len(json.dumps(document))) > TEMPLATE_BYTES:
        yield f"the template has {size} bytes, and CloudFormation takes {TEMPLATE_BYTES}"
