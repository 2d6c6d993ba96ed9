"""The secrets of agents by name: from AWS in a function, from the environment on a developer's machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.agent import SecretNotRead

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.adapters.aws import Aws

PARAMETER: Final = "ssm:"
KEPT_S: Final = 300


def secrets_in_aws(places_json: str) -> Callable[[str], str]:
    """Reads secrets at their places: ``places_json`` is a JSON object of Secrets Manager's ids, or ``ssm:/parameter``.

    Powertools keeps each for five minutes. Raises SecretNotRead for a name that is not listed, and Powertools' error
    when AWS refuses.
    """
    places: dict[str, str] = json.loads(places_json or "{}")

    def read(name: str) -> str:
        from aws_lambda_powertools.utilities import parameters

        if (place := places.get(name)) is None:
            raise SecretNotRead(f"The secret {name!r} is not in [tool.a2a-serverless] secrets of pyproject.toml.")
        if place.startswith(PARAMETER):
            return str(parameters.get_parameter(place.removeprefix(PARAMETER), decrypt=True, max_age=KEPT_S))
        return str(parameters.get_secret(place, max_age=KEPT_S))

    return read


def secret_at(place: str, aws: Aws) -> str:
    """The secret at a place, read from AWS each time. Raises the SDK's error when AWS refuses."""
    if place.startswith(PARAMETER):
        name = place.removeprefix(PARAMETER)
        return str(aws.client("ssm").get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"])
    return str(aws.secrets.get_secret_value(SecretId=place)["SecretString"])


def secrets_in_environment(environment: Mapping[str, str]) -> Callable[[str], str]:
    """Reads secrets from variables such as ``A2A_SECRET_WEATHER``. Raises SecretNotRead, which names the variable."""

    def read(name: str) -> str:
        if value := environment.get(variable_of(name)):
            return value
        raise SecretNotRead(f"The secret {name!r} is not set: give it in the variable {variable_of(name)}.")

    return read


def variable_of(name: str) -> str:
    """The environment variable with a secret on a developer's machine."""
    return f"A2A_SECRET_{name.upper().replace('-', '_')}"
