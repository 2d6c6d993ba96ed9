"""Gives a project's environment variables and secrets to the functions that run its agents."""

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from a2a_serverless.adapters.agent_secrets import PARAMETER, variable_of
from a2a_serverless_tools.project import Project, ProjectError, otel_variables

VARIABLE, PRICES = "AGENT_SECRETS", "MODEL_PRICES"
_ARN = "arn:${AWS::Partition}:%s:${AWS::Region}:${AWS::AccountId}:%s"


def give(template: dict[str, Any], function: dict[str, Any], project: Project) -> None:
    """Add the project's variables to a function of a built template, and the right to read its secrets to the role.

    Raises ProjectError for a variable that the template sets already.
    """
    variables = function.setdefault("Environment", {}).setdefault("Variables", {})
    shared = template.get("Globals", {}).get("Function", {}).get("Environment", {}).get("Variables", {})
    if taken := sorted({*variables, *shared, VARIABLE, PRICES} & {*project.environment}):
        raise ProjectError(f"[tool.a2a-serverless.environment] sets {', '.join(taken)}, which the template sets")
    variables.update(project.environment)
    if project.prices:
        variables[PRICES] = json.dumps(project.prices)
    if project.secrets:
        variables[VARIABLE] = json.dumps(project.secrets)
        _allow(template, function, project.secrets.values())


def give_otel(template: dict[str, Any], function: dict[str, Any], project: Project) -> None:
    """Add where spans go to a function of a built template, and the right to read the collector's headers to its role.

    A variable that the project's environment sets stays as it is.
    """
    variables = function.setdefault("Environment", {}).setdefault("Variables", {})
    variables.update(otel_variables(project) | variables)
    if project.otel and project.otel.headers_secret:
        _allow(template, function, [project.otel.headers_secret])


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


def _allow(template: dict[str, Any], function: dict[str, Any], places: Iterable[str]) -> None:
    """Add the right to read these secrets to the role of a function."""
    resources: defaultdict[str, list[object]] = defaultdict(list)
    for place in places:
        if place.startswith(PARAMETER):
            name = place.removeprefix(PARAMETER).lstrip("/")
            resources["ssm:GetParameter"].append(_resource("ssm", f"parameter/{name}"))
        else:  # a secret's ARN ends with a hyphen and six characters that its name does not have
            secret = place if place.startswith("arn:") else _resource("secretsmanager", f"secret:{place}-??????")
            resources["secretsmanager:GetSecretValue"].append(secret)
    policy = template["Resources"][function["Role"]["Fn::GetAtt"][0]]["Properties"]["Policies"][0]
    policy["PolicyDocument"]["Statement"] += [
        {"Effect": "Allow", "Action": action, "Resource": found} for action, found in resources.items()
    ]


def _resource(service: str, name: str) -> object:
    return {"Fn::Sub": _ARN % (service, name)}
