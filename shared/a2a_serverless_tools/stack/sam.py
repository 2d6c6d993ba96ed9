"""Runs `sam build` and `sam deploy` of the project's template, and reads outputs and logs of the deployment."""

import json
import os
import shutil
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from boto3.session import Session
from botocore.exceptions import BotoCoreError, ClientError

from a2a_serverless.http.api import ANYBODY
from a2a_serverless_tools.stack.emulator import REGION, aws_environment, without_aws
from a2a_serverless_tools.stack.environments import package_index
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.library import FILES
from a2a_serverless_tools.stack.packaging import functions_of
from a2a_serverless_tools.stack.paths import Paths
from a2a_serverless_tools.stack.processes import run_logged

if TYPE_CHECKING:
    from a2a_serverless_tools.stack.targets import Build

STACK_NAME = "a2a-serverless"
BUCKET = "a2a-serverless-code"
CONFIGURATION = "samconfig.example.toml"
FUNCTIONS = ("api", "worker", "relay", "notifier", "sweeper", "rotator")
_SETTINGS = {"SAM_CLI_TELEMETRY": "0", "SAM_CLI_POLL_DELAY": "0.5", "AWS_DEFAULT_REGION": REGION}


@dataclass(frozen=True)
class Deployment:
    """A deployed stack. `outputs` are the template's; `rest_url` is where the emulator serves its REST API."""

    endpoint: str
    outputs: Mapping[str, str]

    @property
    def rest_url(self) -> str:
        return f"{self.endpoint}/restapis/{self.outputs['ApiId']}/live/_user_request_"


def with_switches(template: Mapping[str, Any], switches: Mapping[str, str]) -> dict[str, Any]:
    """Return a copy of the template with more variables for every function; used for the emulator only."""
    copy = deepcopy(dict(template))
    for properties in functions_of(copy).values():
        properties.setdefault("Environment", {}).setdefault("Variables", {}).update(switches)
    if switches.get("ANONYMOUS_ACCESS") == "on":  # then all tasks belong to one owner
        for properties in schedules_in(copy):
            target = properties["Target"]
            target["Input"] = json.dumps(json.loads(target["Input"]) | asdict(ANYBODY))
    return copy


def schedules_in(template: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the properties of the agents' schedules in a template."""
    resources = (one for one in template["Resources"].values() if one["Type"] == "AWS::Scheduler::Schedule")
    return [one["Properties"] for one in resources if "GroupName" in one["Properties"]]


def deploy(
    paths: Paths,
    built: "Build",
    endpoint: str,
    parameters: Mapping[str, str],
    switches: Mapping[str, str],
    stack_name: str = STACK_NAME,
) -> Deployment:
    """Deploy a build into the emulator at `endpoint`; return its outputs. Raises `StackError`."""
    client("s3", endpoint).create_bucket(Bucket=BUCKET)
    switched = write_variant(built, with_switches(built.template, switches), paths.state / "switched" / stack_name)
    options = ["--config-env", "local", "--stack-name", stack_name, "--template-file", switched, *overrides(parameters)]
    try:
        run_sam(paths, "deploy", options, without_aws(os.environ) | aws_environment(endpoint))
    except StackError as error:
        log = paths.log("sam-deploy")
        with log.open("a") as out:
            write_function_logs(endpoint, out)
        why = _failures(endpoint, stack_name) or error.why
        raise StackError("sam deploy", why, log=paths.relative(log)) from error
    return outputs(endpoint, stack_name)


def outputs(endpoint: str, stack_name: str = STACK_NAME) -> Deployment:
    """Return the outputs of the stack that is deployed at `endpoint`. Raises `StackError` when there is none."""
    try:
        (stack,) = client("cloudformation", endpoint).describe_stacks(StackName=stack_name)["Stacks"]
    except (BotoCoreError, ClientError) as error:
        raise StackError("stack", f"not deployed at {endpoint}", remedy="a2a-serverless up") from error
    return Deployment(endpoint, {item["OutputKey"]: item["OutputValue"] for item in stack["Outputs"]})


def function_environment(deployment: Deployment, function: str) -> dict[str, str]:
    """Return the environment of a deployed function, by its short name ("api")."""
    name = deployment.outputs[f"{function.title()}FunctionName"]
    configuration = client("lambda", deployment.endpoint).get_function_configuration(FunctionName=name)
    return dict(configuration["Environment"]["Variables"])


def function_log(endpoint: str, function: str) -> list[str]:
    """Return the log lines of a function by its short name, oldest first; empty when it is not deployed."""
    logs = client("logs", endpoint)
    groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
    ours = [name for name in groups if f"{function.title()}Logs" in name]
    events = [event for name in ours for event in logs.filter_log_events(logGroupName=name)["events"]]
    return [str(event["message"]).rstrip() for event in sorted(events, key=lambda event: int(event["timestamp"]))]


def write_function_logs(endpoint: str, out: TextIO) -> None:
    """Write the logs of all functions: they are gone when the emulator stops."""
    for function in FUNCTIONS:
        out.writelines(f"[{function}] {line}\n" for line in function_log(endpoint, function))


def client(service: str, endpoint: str, *, account: str = "test") -> Any:  # noqa: ANN401 (boto3 makes the type)
    """Make a boto3 client of the emulator, independent of the machine's AWS settings."""
    session: Any = Session(account, "test", region_name=REGION)
    return session.client(service, endpoint_url=endpoint)


def overrides(parameters: Mapping[str, str]) -> list[str | Path]:
    """Return the SAM options for template parameters."""
    pairs = (f"ParameterKey={key},ParameterValue={value}" for key, value in parameters.items())
    return ["--parameter-overrides", *pairs]


def write_variant(built: "Build", template: Mapping[str, Any], folder: Path) -> Path:
    """Write a variant of a build's template beside links to the rest of the build in a folder; return its file."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / "template.yaml"
    file.write_text(json.dumps(template, indent=1))
    for path in built.path.iterdir():
        if path.name != file.name:
            (folder / path.name).symlink_to(path)
    return file


def run_sam(paths: Paths, command: str, options: list[str | Path], env: dict[str, str]) -> None:
    """Run SAM with the project's configuration, not the user's samconfig.toml. Raises `StackError`."""
    log = paths.log(f"sam-{command}")
    # python-uv looks for uv on the PATH; SAM's environment has the locked version.
    path = f"{paths.sam.parent}{os.pathsep}{env.get('PATH', '')}"
    words = [paths.sam, command, "--config-file", FILES / CONFIGURATION, *options]
    if lines := run_logged(words, env | {"PATH": path, **_SETTINGS, **package_index()}, log, paths.home):
        causes = [line for line in lines if line.startswith("Error") or "FAILED" in line]
        raise StackError(f"sam {command}", (causes or lines)[-1], log=paths.relative(log))


def _failures(endpoint: str, stack_name: str) -> str:
    """Return CloudFormation's reasons for the resources that failed; empty when it cannot be reached."""
    try:
        events = client("cloudformation", endpoint).describe_stack_events(StackName=stack_name)["StackEvents"]
    except (BotoCoreError, ClientError):
        return ""
    ours = (event for event in events if event["LogicalResourceId"] != stack_name)
    failures = [event for event in ours if event["ResourceStatus"].endswith("_FAILED")]
    return "; ".join(
        f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', 'failed')}" for event in failures
    )
